// Shards of mosaicml-streaming's JSONWriter, CSVWriter, TSVWriter and XSVWriter: a file of text and
// a file that says where its rows lie (u32 n, u32 offsets[n + 1], JSON). A shard is parsed as a
// whole when first needed. CSV knows no quotes here: upstream refuses values that would need them.

#include <cstring>
#include <numeric>

#include "base/text/counted.h"
#include "loader/format/compression.h"
#include "loader/rows/formats.h"
#include "loader/rows/table_decoder.h"
#include "loader/rows/text/text_row.h"
#include "loader/source/open_source.h"
#include "loader/source/shard_store.h"

namespace tune::loader {
namespace {

class SplitShards {
public:
    /// `is_kept`: `source` reads a cache, whose files were unpacked and checked when they came.
    SplitShards(std::shared_ptr<const ObjectSource> source, Index index, bool checks_hashes,
                bool is_kept)
        : source_(std::move(source)),
          index_(std::move(index)),
          checks_hashes_(checks_hashes),
          is_kept_(is_kept) {}

    [[nodiscard]] Result<Catalogue> plan(const DatasetOptions& options);
    [[nodiscard]] Result<ShardCache::ShardPtr> load(std::size_t shard) const;

private:
    [[nodiscard]] Result<OwnedBytes> read_file(const ShardInfo& shard, const FileInfo& raw,
                                               const std::optional<FileInfo>& zip) const;
    [[nodiscard]] Result<ShardCache::ShardPtr> parse(const ShardInfo& shard) const;
    [[nodiscard]] Result<void> add_row(const ShardInfo& shard, std::string_view row,
                                       TextRows& rows) const;

    std::shared_ptr<const ObjectSource> source_;
    Index index_;
    bool checks_hashes_;
    bool is_kept_;
    std::vector<TextColumn> columns_;
    std::vector<std::size_t> places_;  // of each column among those of the shards
};

TextKind kind_of(const std::string& type) {
    return type == "int" ? TextKind::kInteger : type == "float" ? TextKind::kReal : TextKind::kText;
}

Result<Catalogue> SplitShards::plan(const DatasetOptions& options) {
    TUNE_TRY_VOID(refuse_table_options(options, "made of text shards"));
    const ShardInfo& first = index_.shards.front();
    Catalogue catalogue{.format = first.format, .digest = index_digest(index_)};
    for (const ShardInfo& shard : index_.shards) {
        if (shard.format != first.format || shard.column_names != first.column_names ||
            shard.column_encodings != first.column_encodings)
            return data_loss("shard '" + shard.raw_data.basename +
                             "' has another format or other columns than the first shard");
        if (!shard.compression.empty()) TUNE_TRY_VOID(parse_compression(shard.compression));
        const FileInfo& file = shard.zip_data ? *shard.zip_data : shard.raw_data;
        catalogue.shard_samples.push_back(shard.samples);
        catalogue.shard_names.push_back(file.basename);
        catalogue.bytes += file.bytes;
    }
    std::vector<std::pair<std::string, TextKind>> columns;
    for (std::size_t i = 0; i < first.column_names.size(); ++i)
        columns.emplace_back(first.column_names[i], kind_of(first.column_encodings[i]));
    TUNE_TRY(planned, plan_text_columns(options, columns));
    columns_ = std::move(planned);
    for (const TextColumn& column : columns_) {
        catalogue.columns.push_back(column.info);
        for (std::size_t i = 0; i < first.column_names.size(); ++i)
            if (first.column_names[i] == column.name) places_.push_back(i);
    }
    return catalogue;
}

Result<OwnedBytes> SplitShards::read_file(const ShardInfo& shard, const FileInfo& raw,
                                          const std::optional<FileInfo>& zip) const {
    if (is_kept_) {
        OwnedBytes kept{std::make_unique<std::byte[]>(raw.bytes), raw.bytes};
        TUNE_TRY_VOID(
            source_->read({raw.basename, raw.bytes, ""}, 0, {kept.data.get(), kept.size}));
        return kept;
    }
    const FileInfo& file = zip ? *zip : raw;
    TUNE_TRY(object, source_->stat(file.basename));
    if (object.bytes != file.bytes)
        return data_loss("it has " + std::to_string(object.bytes) + " bytes, the index states " +
                         std::to_string(file.bytes));
    OwnedBytes stored{std::make_unique<std::byte[]>(file.bytes), file.bytes};
    TUNE_TRY_VOID(source_->read(object, 0, {stored.data.get(), stored.size}));
    TUNE_TRY_VOID(check_file(stored.bytes(), file, checks_hashes_));
    if (!zip) return stored;
    TUNE_TRY(compression, parse_compression(shard.compression));
    TUNE_TRY(unpacked, decompress(compression, stored.bytes(), raw.bytes));
    TUNE_TRY_VOID(check_file(unpacked.bytes(), raw, checks_hashes_));
    return unpacked;
}

Result<void> SplitShards::add_row(const ShardInfo& shard, std::string_view row,
                                  TextRows& rows) const {
    if (!row.ends_with(shard.newline)) return data_loss("its newline is missing");
    row.remove_suffix(shard.newline.size());
    if (shard.format == "json") return rows.add_json(row);
    std::vector<std::string_view> fields;
    while (true) {
        const std::size_t at = row.find(shard.separator);
        fields.push_back(row.substr(0, at));
        if (at == std::string_view::npos) break;
        row.remove_prefix(at + shard.separator.size());
    }
    if (fields.size() != shard.column_names.size())
        return data_loss("it has " + std::to_string(fields.size()) + " fields for " +
                         counted(static_cast<std::int64_t>(shard.column_names.size()), "column"));
    return rows.add_fields(fields, places_);
}

Result<ShardCache::ShardPtr> SplitShards::parse(const ShardInfo& shard) const {
    TUNE_TRY(meta, read_file(shard, *shard.raw_meta, shard.zip_meta));
    TUNE_TRY(data, read_file(shard, shard.raw_data, shard.zip_data));
    const std::string_view text(reinterpret_cast<const char*>(data.data.get()), data.size);
    const auto u32_at = [&](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, meta.data.get() + at, sizeof value);
        return value;
    };
    const auto samples = static_cast<std::size_t>(shard.samples);
    if (meta.size < 4 * (samples + 2) || u32_at(0) != samples)
        return data_loss("its meta file does not hold the " + std::to_string(samples) +
                         " rows that the index states");
    TextRows rows(columns_);
    std::size_t begin = u32_at(4);
    for (std::size_t i = 0; i < samples; ++i) {
        const std::size_t end = u32_at(4 * (i + 2));
        if (begin > end || end > text.size())
            return data_loss("the offset of row " + std::to_string(i) + " is out of order");
        Result<void> added = add_row(shard, text.substr(begin, end - begin), rows);
        if (!added)
            return Error{added.error().code,
                         "row " + std::to_string(i) + ": " + added.error().message};
        begin = end;
    }
    return ShardCache::ShardPtr(rows.finish());
}

Result<ShardCache::ShardPtr> SplitShards::load(std::size_t number) const {
    const ShardInfo& shard = index_.shards[number];
    Result<ShardCache::ShardPtr> loaded = parse(shard);
    if (loaded) return loaded;
    Error error = std::move(loaded).error();
    if (error.context.empty())
        error.context = "shard '" + source_->url() + "/" +
                        (shard.zip_data ? *shard.zip_data : shard.raw_data).basename + "'";
    return error;
}

}  // namespace

Result<RowSet> open_split_shards(const DatasetOptions& options, Index index,
                                 std::shared_ptr<CachedSource> files) {
    std::shared_ptr<const ObjectSource> source = files;
    if (!source) {
        TUNE_TRY(here, open_source(data_place(options)));
        source = std::move(here);
    }
    auto shards = std::make_shared<SplitShards>(
        std::move(source), std::move(index), options.verify == Verify::kHashes, files != nullptr);
    RowSet rows;
    TUNE_TRY(catalogue, shards->plan(options));
    rows.catalogue = std::move(catalogue);
    if (rows.catalogue.sample_count() == 0) return invalid_parameter("the data set has no samples");
    const auto needs = [&] {
        // Two files each.
        const std::size_t count = rows.catalogue.shard_samples.size();
        std::vector<std::uint32_t> begins;
        for (std::uint32_t shard = 0; shard <= count; ++shard) begins.push_back(2 * shard);
        std::vector<std::uint32_t> units(2 * count);
        std::iota(units.begin(), units.end(), 0u);
        return UnitNeeds(rows.catalogue.shard_samples, std::move(begins), std::move(units));
    };
    decode_shards(
        options, files.get(), needs, [shards](std::size_t shard) { return shards->load(shard); },
        rows);
    return rows;
}

}  // namespace tune::loader
