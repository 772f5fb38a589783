// An untrusted Parquet file: footer, page headers and pages, by the way that data sets take.
// Property: an error that names the file, or rows inside of their columns. Arrow itself is not
// compiled for fuzzing, so libFuzzer is guided by our part of the way alone.

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "loader/tables/parquet_table.h"
#include "tests/fuzz/fuzz.h"

namespace tune::fuzz {
namespace {

using namespace tune::loader;

constexpr const char* kName = "x.parquet";
/// Of each row group: enough to see its pages' beginnings and ends wrong.
constexpr std::int64_t kRowsMax = 256;
constexpr std::size_t kGroupsMax = 8;

/// A folder that holds the input.
class OneFile final : public ObjectSource {
public:
    explicit OneFile(std::string_view bytes) : bytes_(bytes) {}

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view) const override { return info(); }
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view) const override {
        return std::vector{info()};
    }
    [[nodiscard]] Result<void> read(const ObjectInfo&, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override {
        FUZZ_CHECK(offset <= bytes_.size() && bytes.size() <= bytes_.size() - offset);
        if (!bytes.empty()) std::memcpy(bytes.data(), bytes_.data() + offset, bytes.size());
        return {};
    }
    [[nodiscard]] const std::string& url() const override { return url_; }

    [[nodiscard]] ObjectInfo info() const { return {kName, bytes_.size()}; }

private:
    const std::string url_ = "memory";
    const std::string_view bytes_;
};

void check_error(const Error& error) {
    FUZZ_CHECK(error.text().find(kName) != std::string::npos);
}

void check_batch(const Catalogue& catalogue, const BatchSlot& slot, std::size_t count) {
    for (std::size_t c = 0; c < catalogue.columns.size(); ++c) {
        const ColumnInfo& column = catalogue.columns[c];
        const BatchSlot::ColumnBuffer& buffer = slot.columns[c];
        if (column.fixed) {
            FUZZ_CHECK(buffer.data.size() == count * column.sample_bytes);
        } else {
            FUZZ_CHECK(buffer.offsets.size() == count + 1);
            FUZZ_CHECK(std::ranges::is_sorted(buffer.offsets));
            FUZZ_CHECK(buffer.offsets.back() == buffer.data.size());
        }
        if (column.has_mask) FUZZ_CHECK(buffer.valid.size() == count);
    }
}

void read_rows(const RowSet& rows) {
    BatchSlot slot(rows.catalogue.columns.size());
    std::int64_t begin = 0;
    for (std::size_t shard = 0; shard < std::min(rows.catalogue.shard_samples.size(), kGroupsMax);
         ++shard) {
        const std::int64_t samples = rows.catalogue.shard_samples[shard];
        std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(samples, kRowsMax)));
        std::iota(ids.begin(), ids.end(), begin);
        begin += samples;
        if (ids.empty()) continue;
        if (const Result<void> done = rows.decoder->fill(ids, slot); !done)
            check_error(done.error());
        else
            check_batch(rows.catalogue, slot, ids.size());
    }
}

/// The column that is read, if the file can be opened.
std::string open_and_read(const std::shared_ptr<const OneFile>& source,
                          const DatasetOptions& options) {
    ParquetTable table{.format = "parquet", .source = source, .files = {{source->info()}}};
    const Result<RowSet> rows = open_parquet_table(options, std::move(table));
    if (!rows) {
        // One about the filter is about the caller.
        if (options.filters.empty()) check_error(rows.error());
        return {};
    }
    read_rows(*rows);
    const std::vector<ColumnInfo>& columns = rows->catalogue.columns;
    return columns.empty() ? std::string() : columns.front().name;
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::loader;
    const auto source = std::make_shared<const OneFile>(text_of(data, size));
    DatasetOptions options;
    options.directory = kName;
    options.threads = 0;
    options.nulls = Nulls::kMask;
    const std::string column = open_and_read(source, options);
    if (column.empty()) return 0;
    // By their statistics, and then by their values.
    for (const FilterValue& value :
         {FilterValue(std::int64_t{7}), FilterValue(std::string("w1"))}) {
        options.filters = {{{column, FilterOp::kGreaterEqual, {value}}}};
        static_cast<void>(open_and_read(source, options));
    }
    return 0;
}
