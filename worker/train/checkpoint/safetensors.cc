// Writer and strict reader of safetensors. The reader trusts nothing: the header's length, nesting,
// keys and types are checked, sizes are multiplied with overflow checks, and the tensors must fill
// the data exactly, without hole or overlap, as the reference implementation demands.

#include "worker/train/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/system/file.h"

namespace tune::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t kLengthBytes = 8;
constexpr int kHeaderDepthMax = 3;  // header, tensor, list

constexpr std::array<std::pair<std::string_view, std::size_t>, 15> kElementBytes = {{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E4M3", 1},
    {"U16", 2},
    {"I16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"U32", 4},
    {"I32", 4},
    {"F32", 4},
    {"U64", 8},
    {"I64", 8},
    {"F64", 8},
}};

Error damaged(const std::string& what) {
    return Error{Code::kDataLoss, "not a complete safetensors file: " + what};
}

/// Parses the header; nlohmann/json keeps the last of two equal keys, the format forbids them.
Result<nlohmann::ordered_json> parse_header(std::string_view text) {
    std::vector<std::set<std::string>> keys;
    std::string error;
    const auto watch = [&](int depth, nlohmann::ordered_json::parse_event_t event,
                           nlohmann::ordered_json& value) {
        using Event = nlohmann::ordered_json::parse_event_t;
        if (depth > kHeaderDepthMax) error = "its header is nested too deeply";
        if (event == Event::object_start) keys.emplace_back();
        if (event == Event::object_end) keys.pop_back();
        if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
            error = "its header has '" + value.get<std::string>() + "' twice";
        return error.empty();
    };
    auto header = nlohmann::ordered_json::parse(text, watch, /*allow_exceptions=*/false);
    if (!error.empty()) return damaged(error);
    if (header.is_discarded() || !header.is_object())
        return damaged("its header is not a JSON object");
    return header;
}

/// A JSON array of non-negative integers.
Result<std::vector<std::uint64_t>> integers(const nlohmann::ordered_json& json,
                                            const std::string& what) {
    std::vector<std::uint64_t> values;
    if (!json.is_array()) return damaged(what + " is not a list");
    for (const auto& item : json) {
        if (!item.is_number_unsigned()) return damaged(what + " holds something other than sizes");
        values.push_back(item.get<std::uint64_t>());
    }
    return values;
}

/// Bytes of a tensor, or nothing when that overflows what a file can hold.
std::optional<std::uint64_t> byte_count(const std::vector<std::uint64_t>& shape,
                                        std::size_t element_bytes) {
    std::uint64_t count = element_bytes;
    for (const std::uint64_t size : shape)
        if (size > (1ull << 62) || __builtin_mul_overflow(count, size, &count) ||
            count > (1ull << 62))
            return std::nullopt;
    return count;
}

struct Entry {
    TensorBytes tensor;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

Result<Entry> parse_entry(const std::string& name, const nlohmann::ordered_json& json) {
    if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
        !json["dtype"].is_string() || !json.contains("shape") || !json.contains("data_offsets"))
        return damaged("'" + name + "' has not exactly dtype, shape and data_offsets");
    Entry entry;
    entry.tensor.name = name;
    entry.tensor.dtype = json["dtype"].get<std::string>();
    TUNE_TRY(shape, integers(json["shape"], "the shape of '" + name + "'"));
    TUNE_TRY(offsets, integers(json["data_offsets"], "the offsets of '" + name + "'"));
    const std::size_t element = safetensors_element_bytes(entry.tensor.dtype);
    if (element == 0)
        return damaged("'" + name + "' has the unknown dtype '" + entry.tensor.dtype + "'");
    if (offsets.size() != 2 || offsets[0] > offsets[1])
        return damaged("the offsets of '" + name + "' are not a begin and an end");
    const auto bytes = byte_count(shape, element);
    if (!bytes || *bytes != offsets[1] - offsets[0])
        return damaged("'" + name + "' has a size that does not match its shape and dtype");
    entry.tensor.shape.assign(shape.begin(), shape.end());
    entry.begin = offsets[0];
    entry.end = offsets[1];
    return entry;
}

Result<std::map<std::string, std::string>> parse_metadata(const nlohmann::ordered_json& json) {
    std::map<std::string, std::string> metadata;
    if (!json.is_object()) return damaged("its __metadata__ is not an object");
    for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) return damaged("its __metadata__ holds more than texts");
        metadata[key] = value.get<std::string>();
    }
    return metadata;
}

/// Entries sorted by place must fill [0, size) without overlap or hole.
Result<void> check_layout(const std::vector<Entry>& entries, std::uint64_t size) {
    std::uint64_t place = 0;
    for (const Entry& entry : entries) {
        if (entry.begin != place)
            return damaged("'" + entry.tensor.name + "' overlaps its neighbour or leaves a hole");
        place = entry.end;
    }
    if (place != size)
        return damaged("its tensors take " + std::to_string(place) + " bytes, the file has " +
                       std::to_string(size));
    return {};
}

/// The order of the reference implementation: larger elements first, then by name.
void sort_for_file(std::vector<TensorBytes>& tensors) {
    std::sort(tensors.begin(), tensors.end(), [](const TensorBytes& a, const TensorBytes& b) {
        const std::size_t left = safetensors_element_bytes(a.dtype);
        const std::size_t right = safetensors_element_bytes(b.dtype);
        return left != right ? left > right : a.name < b.name;
    });
}

}  // namespace

std::size_t safetensors_element_bytes(std::string_view dtype) {
    for (const auto& [name, bytes] : kElementBytes)
        if (name == dtype) return bytes;
    return 0;
}

std::string write_safetensors(std::vector<TensorBytes> tensors,
                              const std::map<std::string, std::string>& metadata) {
    sort_for_file(tensors);
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::size_t place = 0;
    for (const TensorBytes& tensor : tensors) {
        std::vector<std::uint64_t> shape(tensor.shape.begin(), tensor.shape.end());
        const auto bytes = byte_count(shape, safetensors_element_bytes(tensor.dtype));
        TUNE_CHECK(bytes && *bytes == tensor.data.size(), "size, shape and dtype differ");
        TUNE_CHECK(!header.contains(tensor.name), "tensor names must differ");
        header[tensor.name] = {{"dtype", tensor.dtype},
                               {"shape", std::move(shape)},
                               {"data_offsets", {place, place + tensor.data.size()}}};
        place += tensor.data.size();
    }
    std::string text =
        header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    text.append((8 - text.size() % 8) % 8, ' ');  // tensors begin at a multiple of 8
    const std::uint64_t length = text.size();
    std::string file;
    file.reserve(kLengthBytes + text.size() + place);
    file.append(reinterpret_cast<const char*>(&length), kLengthBytes);
    file += text;
    for (const TensorBytes& tensor : tensors)
        file.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    return file;
}

Result<Safetensors> Safetensors::parse(std::string bytes) {
    std::uint64_t length = 0;
    if (bytes.size() < kLengthBytes)
        return damaged("it has only " + std::to_string(bytes.size()) + " bytes");
    std::memcpy(&length, bytes.data(), kLengthBytes);
    if (length > kSafetensorsHeaderBytesMax || length > bytes.size() - kLengthBytes)
        return damaged("its header claims " + std::to_string(length) + " bytes");
    TUNE_TRY(header, parse_header(std::string_view(bytes).substr(kLengthBytes, length)));

    Safetensors file;
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
        if (name == "__metadata__") {
            TUNE_TRY(metadata, parse_metadata(value));
            file.metadata_ = std::move(metadata);
            continue;
        }
        TUNE_TRY(entry, parse_entry(name, value));
        entries.push_back(std::move(entry));
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const std::uint64_t data_begin = kLengthBytes + length;
    TUNE_TRY_VOID(check_layout(entries, bytes.size() - data_begin));
    file.bytes_ = std::make_unique<const std::string>(std::move(bytes));
    const auto* data = reinterpret_cast<const std::byte*>(file.bytes_->data()) + data_begin;
    for (Entry& entry : entries) {
        entry.tensor.data = {data + entry.begin, entry.end - entry.begin};
        file.tensors_.push_back(std::move(entry.tensor));
    }
    return file;
}

Result<Safetensors> Safetensors::read(const std::string& path) {
    constexpr std::size_t kFileBytesMax = std::size_t{1} << 40;
    TUNE_TRY(bytes, read_file(path, kFileBytesMax));
    auto file = parse(std::move(bytes));
    if (!file) return Error{file.error().code, file.error().message, path};
    return file;
}

const TensorBytes* Safetensors::find(std::string_view name) const {
    for (const TensorBytes& tensor : tensors_)
        if (tensor.name == name) return &tensor;
    return nullptr;
}

}  // namespace tune::train
