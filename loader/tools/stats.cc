// Threads take shards in turn and keep sums of their own, which are merged in the order of the
// shards (Chan, Golub and LeVeque 1979), so that the result does not depend on timing.

#include "loader/tools/stats.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/system/file.h"
#include "loader/format/convert_dtype.h"
#include "loader/tools/progress.h"
#include "loader/tools/row_reader.h"

namespace tune::loader {
namespace {

/// Count, mean and spread of numbers.
struct Moments {
    double count = 0;
    double mean = 0;
    double squares = 0;  // of the differences from the mean
    double low = HUGE_VAL;
    double high = -HUGE_VAL;
    std::int64_t nan_count = 0;

    void add(double value) {
        if (std::isnan(value)) {
            ++nan_count;
            return;
        }
        count += 1;
        const double difference = value - mean;
        mean += difference / count;
        squares += difference * (value - mean);
        low = std::min(low, value);
        high = std::max(high, value);
    }

    void merge(const Moments& other) {
        nan_count += other.nan_count;
        if (other.count == 0) return;
        const double total = count + other.count;
        const double difference = other.mean - mean;
        squares += other.squares + difference * difference * count * other.count / total;
        mean += difference * other.count / total;
        count = total;
        low = std::min(low, other.low);
        high = std::max(high, other.high);
    }
};

struct ColumnStats {
    std::int64_t count = 0;
    std::int64_t nulls = 0;
    Moments numbers;
    Moments lengths;

    void merge(const ColumnStats& other) {
        count += other.count;
        nulls += other.nulls;
        numbers.merge(other.numbers);
        lengths.merge(other.lengths);
    }
};

bool holds_numbers(const ColumnInfo& column) {
    return column.fixed || column.encoding.starts_with("list:");
}

void add_values(const Column& column, std::size_t count, ColumnStats& stats) {
    const ColumnInfo& info = *column.info;
    const std::size_t width = dtype_bytes(info.dtype);
    const ConvertElements convert = converter(info.dtype, Dtype::kFloat64);
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
        if (!is_valid(column, i)) {
            ++stats.nulls;
            continue;
        }
        ++stats.count;
        const std::span<const std::byte> payload = column.sample(i);
        if (!info.fixed)
            stats.lengths.add(
                static_cast<double>(payload.size() / (holds_numbers(info) ? width : 1)));
        if (!holds_numbers(info)) continue;
        values.resize(payload.size() / width);
        convert(payload.data(), reinterpret_cast<std::byte*>(values.data()), values.size());
        for (const double value : values) stats.numbers.add(value);
    }
}

Json moments_json(const Moments& moments) {
    if (moments.count == 0) return nullptr;
    return {{"mean", json_number(moments.mean)},
            {"std", json_number(std::sqrt(moments.squares / moments.count))},
            {"min", json_number(moments.low)},
            {"max", json_number(moments.high)}};
}

Json column_json(const ColumnInfo& column, const ColumnStats& stats) {
    Json json = {{"encoding", column.encoding}, {"count", stats.count}, {"nulls", stats.nulls}};
    if (holds_numbers(column)) {
        Json numbers = moments_json(stats.numbers);
        if (numbers.is_object()) json.update(numbers);
        json["elements"] = static_cast<std::int64_t>(stats.numbers.count) + stats.numbers.nan_count;
        json["nan"] = stats.numbers.nan_count;
    }
    if (!column.fixed) json["length"] = moments_json(stats.lengths);
    return json;
}

std::optional<Json> read_cached(const std::filesystem::path& path, const std::string& digest) {
    const Result<std::string> text = read_file(path);
    if (!text) return std::nullopt;
    Result<Json> json = parse_json(*text);
    if (!json || !json->is_object() || json->value("digest", "") != digest) return std::nullopt;
    return *std::move(json);
}

std::filesystem::path cache_folder() {
    if (const char* stated = std::getenv("XDG_CACHE_HOME"); stated && *stated)
        return std::filesystem::path(stated) / "tune" / "stats";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home && *home ? home : "/tmp") / ".cache" / "tune" / "stats";
}

}  // namespace

Result<Json> compute_stats(const RowSet& rows, int threads) {
    const std::vector<std::int64_t> begins = shard_begins(rows.catalogue);
    const std::size_t shard_count = begins.size() - 1;
    const std::vector<ColumnInfo>& columns = rows.catalogue.columns;
    std::vector<std::vector<ColumnStats>> found(shard_count);
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::optional<Error> error;
    Progress progress;
    std::int64_t done = 0;  // guarded by mutex, as progress is
    const auto work = [&] {
        for (std::size_t s = next++; s < shard_count; s = next++) {
            found[s].resize(columns.size());
            Result<void> read =
                read_rows(rows, begins[s], begins[s + 1], kRowsAtOnce,
                          [&](const RowBatch& batch) -> Result<void> {
                              for (std::size_t c = 0; c < columns.size(); ++c)
                                  add_values(batch.columns[c], batch.count, found[s][c]);
                              return {};
                          });
            const std::lock_guard lock(mutex);
            if (!read && !error) error = std::move(read).error();
            if (error) return;
            ++done;
            if (progress.is_due())
                progress.show("read " + grouped(done) + " of " +
                              grouped(static_cast<std::int64_t>(shard_count), "shard"));
        }
    };
    std::vector<std::thread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    if (error) return *std::move(error);
    Json json = {{"digest", rows.catalogue.digest},
                 {"samples", rows.catalogue.sample_count()},
                 {"columns", Json::object()}};
    for (std::size_t c = 0; c < columns.size(); ++c) {
        ColumnStats total;
        for (const std::vector<ColumnStats>& shard : found) total.merge(shard[c]);
        json["columns"][columns[c].name] = column_json(columns[c], total);
    }
    return json;
}

Result<Json> cached_stats(const std::filesystem::path& directory, const RowSet& rows, int threads,
                          bool fresh) {
    // Other columns or filters of the same data are another entry.
    std::string key = rows.catalogue.digest;
    for (const ColumnInfo& column : rows.catalogue.columns)
        key += "\n" + column.name + " " + column.encoding + (column.has_mask ? "?" : "");
    const std::string digest = digest_of(key);
    std::error_code ignored;
    const std::filesystem::path beside = directory / "_tune_stats.json";
    const std::filesystem::path cached = cache_folder() / (digest + ".json");
    if (!fresh)
        for (const std::filesystem::path& path : {beside, cached})
            if (auto json = read_cached(path, digest)) return *std::move(json);
    TUNE_TRY(json, compute_stats(rows, threads));
    json["digest"] = digest;
    const bool is_folder = std::filesystem::is_directory(directory, ignored);
    if (is_folder && write_file_atomic(beside, to_text(json) + "\n")) return json;
    std::filesystem::create_directories(cache_folder(), ignored);
    // Numbers that could not be kept are still the answer.
    static_cast<void>(write_file_atomic(cached, to_text(json) + "\n"));
    return json;
}

}  // namespace tune::loader
