// Plain files of JSONL, CSV and TSV. Opening reads every file once, in windows that are cut behind
// the last whole record: each window is a shard, its records are counted and the kinds of their
// values seen. A shard is read and parsed again when it is needed.

#include <algorithm>
#include <map>

#include "base/text/counted.h"
#include "base/text/text.h"
#include "loader/cache/remote_set.h"
#include "loader/format/text/csv_parser.h"
#include "loader/rows/formats.h"
#include "loader/rows/table_decoder.h"
#include "loader/rows/text/text_row.h"

namespace tune::loader {
namespace {

constexpr std::size_t kTextWindowBytes = std::size_t{8} << 20;
/// Windows that are fetched at once when a file that lies afar is scanned.
constexpr std::size_t kBlocksReadAhead = 8;
/// A record longer than this is taken for damage (a quote that is never closed).
constexpr std::size_t kRecordBytesMax = std::size_t{256} << 20;

struct Piece {
    std::size_t file = 0;
    std::uint64_t begin = 0;
    std::size_t bytes = 0;
    std::int64_t records = 0;
    std::int64_t first_line = 1;
};

/// What was seen of a JSON column: bits of 1 << JsonKind, and whether all numbers were whole.
struct SeenKinds {
    unsigned kinds = 0;
    bool is_whole = true;

    [[nodiscard]] TextKind kind() const {
        const unsigned numbers = bit(JsonKind::kNumber) | bit(JsonKind::kBoolean);
        const unsigned values = kinds & ~bit(JsonKind::kNull);
        if (values == bit(JsonKind::kText) || values == 0) return TextKind::kText;
        if ((values & ~numbers) != 0) return TextKind::kJson;
        return is_whole ? TextKind::kInteger : TextKind::kReal;
    }

    void see(const JsonMember& member) {
        kinds |= bit(member.kind);
        if (member.kind == JsonKind::kNumber && is_whole) {
            TypeGuess guess;
            guess.see(member.text);
            is_whole = guess.encoding() == "int";
        }
    }

    static unsigned bit(JsonKind kind) { return 1U << static_cast<unsigned>(kind); }
};

/// The end of the last whole record of `text`; 0 when there is none. Quotes hide line ends in CSV.
std::size_t last_record_end(std::string_view text, bool has_quotes) {
    if (!has_quotes) return text.rfind('\n') + 1;
    std::size_t end = 0;
    bool is_quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '"') is_quoted = !is_quoted;
        if (text[at] == '\n' && !is_quoted) end = at + 1;
    }
    return end;
}

bool is_blank(std::string_view line) {
    return trimmed(line).empty();
}

class TextFiles {
public:
    TextFiles(std::shared_ptr<const ObjectSource> source, std::vector<ObjectInfo> files,
              std::string format)
        : source_(std::move(source)),
          files_(std::move(files)),
          format_(std::move(format)),
          separator_(format_ == "tsv" ? '\t' : ',') {}

    [[nodiscard]] Result<Catalogue> plan(const DatasetOptions& options);
    [[nodiscard]] Result<ShardCache::ShardPtr> load(std::size_t number) const;
    /// Which of `units` each shard is read from. REQUIRES: plan() before.
    [[nodiscard]] UnitNeeds needs(const ExtentUnits& units) const;

private:
    [[nodiscard]] bool is_json() const { return format_ == "jsonl"; }
    [[nodiscard]] Result<void> scan_file(std::size_t file);
    [[nodiscard]] Result<void> scan_json(std::string_view text, Piece& piece);
    [[nodiscard]] Result<void> scan_csv(std::string_view text, Piece& piece);
    [[nodiscard]] Result<void> read_header(CsvParser& parser);
    [[nodiscard]] Result<ShardCache::ShardPtr> parse(const Piece& piece) const;
    [[nodiscard]] Result<void> parse_csv(std::string_view text, const Piece& piece,
                                         TextRows& rows) const;
    [[nodiscard]] Error in_file(Error error, std::size_t file) const;

    std::shared_ptr<const ObjectSource> source_;
    std::vector<ObjectInfo> files_;
    std::string format_;
    char separator_;
    std::vector<Piece> pieces_;
    std::vector<TextColumn> columns_;
    std::vector<std::size_t> places_;

    // Of the scan.
    std::map<std::string, SeenKinds, std::less<>> seen_;
    std::vector<std::string> header_;
    std::vector<TypeGuess> guesses_;
    std::vector<bool> has_values_;
};

Error TextFiles::in_file(Error error, std::size_t file) const {
    const std::string& path = files_[file].path;
    if (error.context.empty())
        error.context = "'" + source_->url() + (path.empty() ? "" : "/" + path) + "'";
    return error;
}

Result<void> TextFiles::scan_json(std::string_view text, Piece& piece) {
    std::vector<JsonMember> members;
    std::deque<std::string> unescaped;
    for (std::int64_t line = piece.first_line; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1);
        const std::string_view row = text.substr(0, end + 1);
        text.remove_prefix(end + 1);
        if (is_blank(row)) continue;
        Result<void> parsed = parse_json_row(row, members, unescaped);
        if (!parsed)
            return data_loss("line " + std::to_string(line) + ", " + parsed.error().message);
        for (const JsonMember& member : members) {
            auto known = seen_.find(member.name);
            if (known == seen_.end()) known = seen_.emplace(member.name, SeenKinds{}).first;
            known->second.see(member);
        }
        ++piece.records;
    }
    return {};
}

Result<void> TextFiles::read_header(CsvParser& parser) {
    std::vector<std::string_view> fields;
    TUNE_TRY_VOID(parser.next(fields));
    const std::vector<std::string> names(fields.begin(), fields.end());
    if (!header_.empty()) {
        if (names == header_) return {};
        return data_loss("line 1 names other columns than the first file");
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i].empty() ||
            std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
                names.begin() + static_cast<std::ptrdiff_t>(i))
            return data_loss("line 1: column " + std::to_string(i + 1) +
                             " has no name, or the name of another");
    header_ = names;
    guesses_.resize(names.size());
    has_values_.resize(names.size());
    return {};
}

Result<void> TextFiles::scan_csv(std::string_view text, Piece& piece) {
    CsvParser parser(text, separator_);
    std::vector<std::string_view> fields;
    if (piece.begin == 0 && !parser.at_end()) TUNE_TRY_VOID(read_header(parser));
    while (!parser.at_end()) {
        Result<void> parsed = parser.next(fields);
        if (!parsed) return data_loss(parsed.error().message);
        if (fields.size() == 1 && fields[0].empty() && header_.size() > 1) continue;
        if (fields.size() != header_.size())
            return data_loss("line " + std::to_string(piece.first_line + parser.record_line() - 1) +
                             ": " + std::to_string(fields.size()) + " fields for " +
                             counted(static_cast<std::int64_t>(header_.size()), "column"));
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].empty()) continue;  // no value, whatever the type
            guesses_[i].see(fields[i]);
            has_values_[i] = true;
        }
        ++piece.records;
    }
    return {};
}

Result<void> TextFiles::scan_file(std::size_t number) {
    const ObjectInfo& file = files_[number];
    std::string window;
    Piece piece{.file = number};
    std::uint64_t read = 0;
    while (read < file.bytes || !window.empty()) {
        const std::size_t wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(kTextWindowBytes, file.bytes - read));
        const std::size_t kept = window.size();
        window.resize(kept + wanted);
        TUNE_TRY_VOID(source_->read(
            file, read, std::as_writable_bytes(std::span(window.data() + kept, wanted))));
        read += wanted;
        std::size_t end = last_record_end(window, !is_json());
        if (read == file.bytes) end = window.size();
        if (end == 0) {
            if (window.size() > kRecordBytesMax)
                return data_loss("line " + std::to_string(piece.first_line) +
                                 ": a record of more than 256 MiB (a quote that is not closed?)");
            continue;
        }
        const std::string_view text = std::string_view(window).substr(0, end);
        TUNE_TRY_VOID(is_json() ? scan_json(text, piece) : scan_csv(text, piece));
        piece.bytes = end;
        if (piece.records > 0) pieces_.push_back(piece);
        piece = {number, piece.begin + end, 0, 0,
                 piece.first_line + std::count(text.begin(), text.end(), '\n')};
        window.erase(0, end);
    }
    return {};
}

Result<Catalogue> TextFiles::plan(const DatasetOptions& options) {
    TUNE_TRY_VOID(refuse_table_options(options, "made of text files"));
    for (std::size_t file = 0; file < files_.size(); ++file)
        if (Result<void> scanned = scan_file(file); !scanned)
            return in_file(std::move(scanned).error(), file);
    std::vector<std::pair<std::string, TextKind>> columns;
    for (const auto& [name, seen] : seen_) columns.emplace_back(name, seen.kind());
    for (std::size_t i = 0; i < header_.size(); ++i) {
        const std::string guess = has_values_[i] ? guesses_[i].encoding() : "str";
        columns.emplace_back(header_[i], guess == "int"   ? TextKind::kInteger
                                         : guess == "str" ? TextKind::kText
                                                          : TextKind::kReal);
    }
    TUNE_TRY(planned, plan_text_columns(options, columns));
    columns_ = std::move(planned);
    Catalogue catalogue{.format = format_};
    std::string described = format_;
    for (const ObjectInfo& file : files_) catalogue.bytes += file.bytes;
    for (const Piece& piece : pieces_) {
        catalogue.shard_samples.push_back(piece.records);
        catalogue.shard_names.push_back(files_[piece.file].path + " from byte " +
                                        std::to_string(piece.begin));
        described += "\n" + catalogue.shard_names.back() + " " + std::to_string(piece.bytes) + " " +
                     std::to_string(piece.records);
    }
    for (const TextColumn& column : columns_) {
        catalogue.columns.push_back(column.info);
        described += "\n" + column.name + " " + column.info.encoding;
        for (std::size_t i = 0; i < header_.size(); ++i)
            if (header_[i] == column.name) places_.push_back(i);
    }
    catalogue.digest = digest_of(described);
    if (const std::int64_t samples = catalogue.sample_count(); samples > 0)
        catalogue.block_samples_max = std::max<std::int64_t>(
            1024,
            static_cast<std::int64_t>(options.decompressed_bytes_max / 2 /
                                      (catalogue.bytes / static_cast<std::uint64_t>(samples) + 1)));
    return catalogue;
}

Result<void> TextFiles::parse_csv(std::string_view text, const Piece& piece, TextRows& rows) const {
    CsvParser parser(text, separator_);
    std::vector<std::string_view> fields;
    if (piece.begin == 0 && !parser.at_end()) TUNE_TRY_VOID(parser.next(fields));
    while (!parser.at_end()) {
        TUNE_TRY_VOID(parser.next(fields));
        if (fields.size() == 1 && fields[0].empty() && header_.size() > 1) continue;
        if (fields.size() != header_.size()) return data_loss("it was changed since it was opened");
        Result<void> added = rows.add_fields(fields, places_);
        if (!added)
            return Error{added.error().code,
                         "line " + std::to_string(piece.first_line + parser.record_line() - 1) +
                             ", " + added.error().message};
    }
    return {};
}

Result<ShardCache::ShardPtr> TextFiles::parse(const Piece& piece) const {
    std::string text(piece.bytes, '\0');
    TUNE_TRY_VOID(source_->read(files_[piece.file], piece.begin,
                                std::as_writable_bytes(std::span(text.data(), text.size()))));
    TextRows rows(columns_);
    if (!is_json()) {
        TUNE_TRY_VOID(parse_csv(text, piece, rows));
        return ShardCache::ShardPtr(rows.finish());
    }
    std::string_view left = text;
    for (std::int64_t line = piece.first_line; !left.empty(); ++line) {
        const std::size_t end = std::min(left.find('\n'), left.size() - 1);
        const std::string_view row = left.substr(0, end + 1);
        left.remove_prefix(end + 1);
        if (is_blank(row)) continue;
        Result<void> added = rows.add_json(row);
        if (!added)
            return Error{added.error().code,
                         "line " + std::to_string(line) + ", " + added.error().message};
    }
    return ShardCache::ShardPtr(rows.finish());
}

Result<ShardCache::ShardPtr> TextFiles::load(std::size_t number) const {
    Result<ShardCache::ShardPtr> loaded = parse(pieces_[number]);
    if (loaded) return loaded;
    return in_file(std::move(loaded).error(), pieces_[number].file);
}

UnitNeeds TextFiles::needs(const ExtentUnits& units) const {
    std::vector<std::int64_t> samples;
    std::vector<std::uint32_t> begins = {0};
    std::vector<std::uint32_t> wanted;
    for (const Piece& piece : pieces_) {
        samples.push_back(piece.records);
        units.add_units(files_[piece.file].path, piece.begin, piece.bytes, wanted);
        begins.push_back(static_cast<std::uint32_t>(wanted.size()));
    }
    return {samples, std::move(begins), std::move(wanted)};
}

}  // namespace

Result<RowSet> open_text_files(const DatasetOptions& options, const std::string& format) {
    TUNE_TRY(place, open_data(options));
    const std::vector<std::string> extensions = text_extensions(format);
    TUNE_TRY(files, find_files(*place.source, extensions));
    const std::shared_ptr<const ExtentUnits> units = ExtentUnits::blocks(files, kTextWindowBytes);
    if (place.cache) TUNE_TRY_VOID(place.cache->keep(units, units->digest(), kBlocksReadAhead));
    auto state = std::make_shared<TextFiles>(place.source, std::move(files), format);
    RowSet rows;
    TUNE_TRY(catalogue, state->plan(options));
    rows.catalogue = std::move(catalogue);
    if (rows.catalogue.shard_samples.empty())
        return Error{Code::kInvalidParameterValue, "the data set has no samples",
                     data_place(options)};
    decode_shards(
        options, place.cache.get(), [&] { return state->needs(*units); },
        [state](std::size_t shard) { return state->load(shard); }, rows);
    return rows;
}

}  // namespace tune::loader
