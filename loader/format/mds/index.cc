// Reading and writing of index.json. The reader collects the first error with the path of its field
// and goes on, so that each function is a plain list of fields; numbers are bounded first, so that
// no sum below can overflow, and then compared with each other (sizes, counts, offsets of a shard).
// The writer prints keys and numbers in upstream's order and style, because its bytes are compared
// with upstream's and hashed.

#include "loader/format/mds/index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/system/file.h"
#include "base/text/counted.h"
#include "base/text/text.h"
#include "loader/format/hash.h"
#include "loader/format/mds/encoding.h"
#include "loader/format/python_json.h"

namespace tune::loader {
namespace {

/// Reads the fields of one JSON object; the first error is kept, with the field's name.
class Fields {
public:
    Fields(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

    void fail(std::string message, Code code = Code::kDataLoss) {
        if (!error_) error_ = Error{code, place_ + ": " + std::move(message)};
    }

    /// The field, or nullptr after recording that it is missing.
    const Json* get(const char* name) {
        const auto found = json_.find(name);
        if (found == json_.end()) {
            fail(std::string("'") + name + "' is missing");
            return nullptr;
        }
        return &*found;
    }

    std::string text(const char* name) {
        const Json* field = get(name);
        if (!field) return {};
        if (field->is_string()) return field->get<std::string>();
        fail(std::string("'") + name + "' is not text");
        return {};
    }

    std::int64_t count(const char* name) {
        const Json* field = get(name);
        if (!field) return 0;
        // The largest counts that can be true are 2^32; the limit keeps sums from overflowing.
        if (field->is_number_integer() && *field >= 0 && *field <= (std::int64_t{1} << 40))
            return field->get<std::int64_t>();
        fail(std::string("'") + name + "' is not a count that a shard can have");
        return 0;
    }

    std::vector<std::string> texts(const char* name) {
        std::vector<std::string> values;
        const Json* field = get(name);
        if (!field) return values;
        if (!field->is_array()) fail(std::string("'") + name + "' is not a list");
        if (field->is_array())
            for (const Json& element : *field) {
                if (!element.is_string()) fail(std::string("'") + name + "' holds no text");
                if (element.is_string()) values.push_back(element.get<std::string>());
            }
        return values;
    }

private:
    const Json& json_;
    std::string place_;
    std::optional<Error> error_;
};

bool stays_inside(const std::string& basename) {
    if (basename.empty() || basename.front() == '/' || basename.find('\0') != std::string::npos)
        return false;
    const std::filesystem::path path(basename);
    return std::none_of(path.begin(), path.end(),
                        [](const std::filesystem::path& part) { return part == ".."; });
}

Result<FileInfo> parse_file(const Json& json, const std::string& place) {
    if (!json.is_object()) return Error{Code::kDataLoss, place + " is not an object"};
    Fields fields(json, place);
    FileInfo file;
    file.basename = fields.text("basename");
    file.bytes = static_cast<std::uint64_t>(fields.count("bytes"));
    if (const Json* hashes = fields.get("hashes")) {
        if (!hashes->is_object()) fields.fail("'hashes' is not an object");
        if (hashes->is_object())
            for (const auto& [name, value] : hashes->items()) {
                if (!value.is_string()) fields.fail("hash '" + name + "' is not text");
                if (value.is_string()) file.hashes[name] = value.get<std::string>();
            }
    }
    if (!stays_inside(file.basename))
        fields.fail("the file name '" + file.basename + "' leads out of the data set's directory");
    if (fields.error()) return *fields.error();
    return file;
}

void parse_column_sizes(Fields& fields, ShardInfo& shard) {
    const Json* sizes = fields.get("column_sizes");
    if (!sizes) return;
    if (!sizes->is_array()) return fields.fail("'column_sizes' is not a list");
    for (const Json& size : *sizes) {
        const bool fits = size.is_number_integer() && size >= 0 && size <= 0xffffffffLL;
        if (!size.is_null() && !fits) return fields.fail("'column_sizes' holds an impossible size");
        // Upstream takes 0 for "varies".
        if (size.is_null() || size == 0)
            shard.column_sizes.emplace_back();
        else
            shard.column_sizes.emplace_back(size.get<std::uint32_t>());
    }
}

void check_columns(Fields& fields, const ShardInfo& shard) {
    if (shard.column_names.empty()) return fields.fail("it has no columns");
    if (shard.column_names.size() != shard.column_encodings.size() ||
        shard.column_names.size() != shard.column_sizes.size())
        return fields.fail("column_names, column_encodings and column_sizes differ in length");
    for (std::size_t i = 1; i < shard.column_names.size(); ++i)
        if (shard.column_names[i - 1] >= shard.column_names[i])
            return fields.fail("its columns are not sorted by name");
    for (std::size_t i = 0; i < shard.column_names.size(); ++i) {
        const Result<Encoding> encoding = parse_encoding(shard.column_encodings[i]);
        if (!encoding)
            return fields.fail("column '" + shard.column_names[i] +
                               "': " + encoding.error().message);
        if (encoding->size != shard.column_sizes[i])
            return fields.fail("column '" + shard.column_names[i] + "' of encoding " +
                               shard.column_encodings[i] + " has a wrong size in column_sizes");
    }
}

void parse_size_limit(Fields& fields, ShardInfo& shard) {
    const Json* limit = fields.get("size_limit");
    if (!limit || limit->is_null()) return;
    if (limit->is_number_integer() && *limit >= 0) {
        shard.size_limit = limit->get<std::uint64_t>();
    } else if (limit->is_string()) {
        Result<std::uint64_t> bytes = parse_bytes(limit->get<std::string>());
        if (!bytes) return fields.fail("size_limit: " + bytes.error().message);
        shard.size_limit = *bytes;
    } else {
        fields.fail("'size_limit' is not a number of bytes");
    }
}

/// What must hold of any MDS file with these numbers.
void check_sizes(Fields& fields, const ShardInfo& shard) {
    if (shard.raw_data.bytes >= (std::uint64_t{1} << 32))
        return fields.fail("it is larger than the 4 GiB that a shard can have");
    if (shard.raw_data.bytes < 8 + 4 * static_cast<std::uint64_t>(shard.samples))
        fields.fail("its " + std::to_string(shard.raw_data.bytes) + " bytes cannot hold " +
                    counted(shard.samples, "sample"));
}

bool is_split_format(std::string_view format) {
    return format == "json" || format == "csv" || format == "tsv" || format == "xsv";
}

/// json names its columns and their types in one object, the others in two lists.
void parse_text_columns(Fields& fields, ShardInfo& shard) {
    shard.newline = fields.text("newline");
    if (shard.format == "json") {
        const Json* columns = fields.get("columns");
        if (!columns) return;
        if (!columns->is_object()) return fields.fail("'columns' is not an object");
        for (const auto& [name, type] : columns->items()) {
            if (!type.is_string())
                return fields.fail("the type of column '" + name + "' is no text");
            shard.column_names.push_back(name);
            shard.column_encodings.push_back(type.get<std::string>());
        }
    } else {
        shard.column_names = fields.texts("column_names");
        shard.column_encodings = fields.texts("column_encodings");
        shard.separator = shard.format == "csv"   ? ","
                          : shard.format == "tsv" ? "\t"
                                                  : fields.text("separator");
        if (shard.separator.empty()) fields.fail("'separator' is empty");
    }
    if (shard.newline.empty()) fields.fail("'newline' is empty");
    shard.column_sizes.resize(shard.column_names.size());
}

Result<void> parse_meta_files(const Json& json, const std::string& place, ShardInfo& shard) {
    const auto find = [&](const char* name) -> const Json* {
        const auto found = json.find(name);
        return found == json.end() || found->is_null() ? nullptr : &*found;
    };
    const Json* raw = find("raw_meta");
    if (!raw) return Error{Code::kDataLoss, place + ": 'raw_meta' is missing"};
    TUNE_TRY(raw_meta, parse_file(*raw, place + ", raw_meta"));
    shard.raw_meta = std::move(raw_meta);
    if (const Json* zip = find("zip_meta")) {
        TUNE_TRY(zip_meta, parse_file(*zip, place + ", zip_meta"));
        shard.zip_meta = std::move(zip_meta);
    }
    if (shard.zip_meta.has_value() != shard.zip_data.has_value())
        return Error{Code::kDataLoss, place + ": zip_meta must be there exactly when zip_data is"};
    return {};
}

void check_text_shard(Fields& fields, const ShardInfo& shard) {
    if (shard.column_names.empty()) return fields.fail("it has no columns");
    if (shard.column_names.size() != shard.column_encodings.size())
        return fields.fail("column_names and column_encodings differ in length");
    for (std::size_t i = 0; i < shard.column_names.size(); ++i) {
        const std::string& type = shard.column_encodings[i];
        if (type != "str" && type != "int" && type != "float")
            return fields.fail("column '" + shard.column_names[i] + "' has the type '" + type +
                               "'; only str, int and float are known");
        if (i > 0 && shard.column_names[i - 1] >= shard.column_names[i])
            return fields.fail("its columns are not sorted by name");
    }
    if (shard.raw_data.bytes >= (std::uint64_t{1} << 32) ||
        shard.raw_meta->bytes >= (std::uint64_t{1} << 32))
        return fields.fail("it is larger than the 4 GiB that a shard can have");
    if (shard.raw_meta->bytes < 8 + 4 * static_cast<std::uint64_t>(shard.samples))
        fields.fail("the " + std::to_string(shard.raw_meta->bytes) +
                    " bytes of its meta file cannot hold " + counted(shard.samples, "sample"));
}

Result<ShardInfo> parse_shard(const Json& json, std::size_t number) {
    const std::string place = "shard " + std::to_string(number) + " of the index";
    if (!json.is_object()) return Error{Code::kDataLoss, place + " is not an object"};
    Fields fields(json, place);
    ShardInfo shard;
    shard.format = fields.text("format");
    const bool is_mds = shard.format == "mds";
    if (!fields.error() && !is_mds && !is_split_format(shard.format))
        fields.fail(
            "its format '" + shard.format + "' is not supported; mds, json, csv, tsv and xsv are",
            Code::kNotImplemented);
    if (const Json* version = fields.get("version"); version && *version != 2)
        fields.fail("its version is " + version->dump() + ", only 2 is known");
    if (is_mds) {
        shard.column_names = fields.texts("column_names");
        shard.column_encodings = fields.texts("column_encodings");
        parse_column_sizes(fields, shard);
    } else if (!fields.error()) {
        parse_text_columns(fields, shard);
    }
    shard.hashes = fields.texts("hashes");
    shard.samples = fields.count("samples");
    parse_size_limit(fields, shard);
    if (const Json* compression = fields.get("compression"); compression && !compression->is_null())
        shard.compression = fields.text("compression");
    const Json* raw = fields.get("raw_data");
    const Json* zip = fields.get("zip_data");
    if (fields.error()) return *fields.error();
    TUNE_TRY(raw_data, parse_file(*raw, place + ", raw_data"));
    shard.raw_data = std::move(raw_data);
    if (!zip->is_null()) {
        TUNE_TRY(zip_data, parse_file(*zip, place + ", zip_data"));
        shard.zip_data = std::move(zip_data);
    }
    if (shard.zip_data.has_value() == shard.compression.empty())
        fields.fail("zip_data must be there exactly when there is a compression");
    if (is_mds) {
        check_columns(fields, shard);
        check_sizes(fields, shard);
    } else {
        TUNE_TRY_VOID(parse_meta_files(json, place, shard));
        check_text_shard(fields, shard);
    }
    if (fields.error()) return *fields.error();
    return shard;
}

Json file_json(const FileInfo& file) {
    return {{"basename", file.basename}, {"bytes", file.bytes}, {"hashes", file.hashes}};
}

/// The fields that stand both in the index and in the shard itself.
Json config_json(const ShardInfo& shard) {
    Json json;
    if (shard.format != "mds") {
        json = {
            {"compression", shard.compression.empty() ? Json(nullptr) : Json(shard.compression)},
            {"format", shard.format},
            {"hashes", shard.hashes},
            {"newline", shard.newline},
            {"size_limit", shard.size_limit ? Json(*shard.size_limit) : Json(nullptr)},
            {"version", 2}};
        if (shard.format == "json") {
            json["columns"] = Json::object();
            for (std::size_t i = 0; i < shard.column_names.size(); ++i)
                json["columns"][shard.column_names[i]] = shard.column_encodings[i];
            return json;
        }
        json["column_encodings"] = shard.column_encodings;
        json["column_names"] = shard.column_names;
        if (shard.format == "xsv") json["separator"] = shard.separator;
        return json;
    }
    json["column_encodings"] = shard.column_encodings;
    json["column_names"] = shard.column_names;
    json["column_sizes"] = Json::array();
    for (const std::optional<std::uint32_t>& size : shard.column_sizes)
        json["column_sizes"].push_back(size ? Json(*size) : Json(nullptr));
    json["compression"] = shard.compression.empty() ? Json(nullptr) : Json(shard.compression);
    json["format"] = "mds";
    json["hashes"] = shard.hashes;
    json["size_limit"] = shard.size_limit ? Json(*shard.size_limit) : Json(nullptr);
    json["version"] = 2;
    return json;
}

}  // namespace

std::int64_t Index::sample_count() const {
    std::int64_t count = 0;
    for (const ShardInfo& shard : shards) count += shard.samples;
    return count;
}

Result<Index> parse_index(std::string_view text) {
    Result<Json> json = parse_json(text);
    if (!json) return Error{Code::kDataLoss, "the index is not JSON: " + json.error().message};
    if (!json->is_object()) return Error{Code::kDataLoss, "the index is not a JSON object"};
    const auto version = json->find("version");
    if (version == json->end() || *version != 2)
        return Error{Code::kDataLoss,
                     "the index has version " +
                         (version == json->end() ? std::string("none") : version->dump()) +
                         ", only 2 is known"};
    const auto shards = json->find("shards");
    if (shards == json->end() || !shards->is_array())
        return Error{Code::kDataLoss, "the index has no list of shards"};
    Index index;
    for (const Json& shard_json : *shards) {
        TUNE_TRY(shard, parse_shard(shard_json, index.shards.size()));
        index.shards.push_back(std::move(shard));
    }
    return index;
}

Result<Index> read_index(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / "index.json";
    TUNE_TRY(text, read_file(path));
    Result<Index> index = parse_index(text);
    if (index) return index;
    Error error = std::move(index).error();
    error.context = path.string();
    return error;
}

std::string index_text(const Index& index) {
    Json json = {{"shards", Json::array()}, {"version", 2}};
    for (const ShardInfo& shard : index.shards) {
        Json entry = config_json(shard);
        entry["raw_data"] = file_json(shard.raw_data);
        entry["samples"] = shard.samples;
        entry["zip_data"] = shard.zip_data ? file_json(*shard.zip_data) : Json(nullptr);
        if (shard.raw_meta) {
            entry["raw_meta"] = file_json(*shard.raw_meta);
            entry["zip_meta"] = shard.zip_meta ? file_json(*shard.zip_meta) : Json(nullptr);
        }
        json["shards"].push_back(std::move(entry));
    }
    return python_json(json);
}

std::string shard_config(const ShardInfo& shard) {
    return python_json(config_json(shard));
}

std::string index_digest(const Index& index) {
    Json json = Json::array();
    for (const ShardInfo& shard : index.shards)
        json.push_back({shard.raw_data.basename, shard.raw_data.bytes, shard.raw_data.hashes,
                        shard.samples, shard.column_names, shard.column_encodings});
    const std::string text = python_json(json);
    return hash_hex("xxh3_128", std::as_bytes(std::span(text))).value();
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, int>, 4> kUnits = {
        {{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40}}};
    const std::string lower = lower_ascii(text);
    std::string_view digits = lower;
    int shift = 0;
    for (const auto& [suffix, unit_shift] : kUnits)
        if (digits.ends_with(suffix)) {
            digits.remove_suffix(suffix.size());
            shift = unit_shift;
            break;
        }
    if (shift == 0 && digits.ends_with('b')) digits.remove_suffix(1);
    double number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                              std::chars_format::fixed);
    const double bytes = std::ldexp(number, shift);
    if (error != std::errc{} || end != digits.data() + digits.size() || !(bytes >= 0) ||
        bytes > 1e18)
        return Error{Code::kInvalidParameterValue,
                     "'" + std::string(text) +
                         "' is not a number of bytes; write for example 500000, 100kb or 64mb"};
    return static_cast<std::uint64_t>(bytes);
}

}  // namespace tune::loader
