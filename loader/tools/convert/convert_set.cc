// The plan of a conversion is written first: a digest of input and options, and nothing else, since
// the steps follow from them. A step is written under a name of its own and renamed when it is
// complete, so whatever has its final name is whole. A run with the same digest keeps those steps.
// Of a step that was sent to an object store only its index stays here, or the size of its file.

#include "loader/tools/convert/convert_set.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/id.h"
#include "base/system/file.h"
#include "loader/format/hash.h"
#include "loader/format/mds/writer.h"
#include "loader/source/local_source.h"
#include "loader/source/object_sink.h"
#include "loader/source/open_source.h"
#include "loader/tables/parquet_writer.h"
#include "loader/tools/progress.h"
#include "loader/tools/row_reader.h"

namespace tune::loader {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kParquetGroupRows = 65'536;
/// Bytes of one step, in shards' size limits.
constexpr std::uint64_t kShardsPerStep = 4;

struct Step {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

std::string step_name(std::size_t number, ConvertTarget target) {
    std::string digits = std::to_string(number);
    digits.insert(0, 5 - std::min<std::size_t>(5, digits.size()), '0');
    return target == ConvertTarget::kMds ? digits : "part-" + digits + ".parquet";
}

/// Runs of whole shards.
std::vector<Step> plan_steps(const Catalogue& catalogue, std::uint64_t step_bytes) {
    std::vector<Step> steps;
    const auto samples = static_cast<std::uint64_t>(catalogue.sample_count());
    const std::uint64_t sample_bytes = std::max<std::uint64_t>(catalogue.bytes / samples, 1);
    std::int64_t at = 0;
    Step step;
    for (const std::int64_t count : catalogue.shard_samples) {
        at += count;
        step.end = at;
        if (static_cast<std::uint64_t>(step.end - step.begin) * sample_bytes < step_bytes) continue;
        steps.push_back(step);
        step.begin = at;
    }
    if (step.end > step.begin) steps.push_back(step);
    return steps;
}

/// A list as an array of MDS; everything else is stored as it is given out.
class MdsValues {
public:
    Value value(const Column& column, std::size_t row) {
        const ColumnInfo& info = *column.info;
        const std::span<const std::byte> payload = column.sample(row);
        if (!info.encoding.starts_with("list:")) return payload;
        std::int64_t per_item = 1;
        for (const std::int64_t dimension : info.shape) per_item *= dimension;
        ArrayView array{info.dtype, {}, payload};
        array.shape.push_back(static_cast<std::int64_t>(payload.size() / dtype_bytes(info.dtype)) /
                              per_item);
        array.shape.insert(array.shape.end(), info.shape.begin(), info.shape.end());
        return array;
    }
};

class Conversion {
public:
    Conversion(const ConvertSetOptions& options, RowSet rows)
        : options_(options),
          rows_(std::move(rows)),
          output_(options.output.empty()  // for a store
                      ? fs::path()
                      : without_slash(fs::absolute(options.output).lexically_normal())),
          folder_(work_folder(options, output_)),
          steps_(plan_steps(rows_.catalogue, kShardsPerStep * options.size_limit)) {}

    [[nodiscard]] Result<ConvertReport> run() {
        if (is_far()) {
            TUNE_TRY(sink, open_sink(options_.output_url));
            sink_ = std::move(sink);
        }
        TUNE_TRY_VOID(plan_columns());
        TUNE_TRY_VOID(is_far() ? check_far_target() : check_target());
        TUNE_TRY_VOID(prepare());
        TUNE_TRY_VOID(run_steps());
        return finish();
    }

private:
    static fs::path without_slash(fs::path path) {
        return path.has_filename() ? path : path.parent_path();
    }

    static fs::path work_folder(const ConvertSetOptions& options, const fs::path& output) {
        if (options.output_url.empty())
            return output.parent_path() / ("." + output.filename().string() + ".converting");
        const auto url = std::as_bytes(std::span(options.output_url));
        return fs::temp_directory_path() /
               ("tune-convert-" + hash_hex("xxh3_64", url).value() + ".converting");
    }

    [[nodiscard]] bool is_far() const { return !options_.output_url.empty(); }

    [[nodiscard]] bool to_mds() const { return options_.target == ConvertTarget::kMds; }

    [[nodiscard]] Result<void> check_target() const {
        std::error_code error;
        if (!fs::exists(output_, error)) return {};
        const bool is_free = fs::is_directory(output_, error) && fs::is_empty(output_, error);
        if (is_free || (options_.overwrite && fs::is_directory(output_, error))) return {};
        return Error{
            Code::kResourceAlreadyExists,
            "'" + output_.string() + "' is not empty; give another directory, or --overwrite"};
    }

    /// Steps of an earlier run of the same conversion may be there.
    [[nodiscard]] Result<void> check_far_target() const {
        const Result<std::string> earlier = read_file(folder_ / "plan.json");
        if (earlier && *earlier == plan_text()) return {};
        if (options_.overwrite && to_mds()) return {};
        TUNE_TRY(source, loader::open_source(options_.output_url));
        const Result<std::vector<ObjectInfo>> objects = source->list("");
        if (!objects && objects.error().code == Code::kResourceDoesNotExist) return {};
        if (!objects) return objects.error();
        if (options_.overwrite)
            return Error{Code::kNotImplemented,
                         "'" + options_.output_url +
                             "' holds something already, and Parquet files beside it would be one "
                             "table with it; delete it first, or give another URL"};
        return Error{
            Code::kResourceAlreadyExists,
            "'" + options_.output_url + "' holds something already; --overwrite replaces it"};
    }

    [[nodiscard]] Result<void> plan_columns() {
        for (const ColumnInfo& column : rows_.catalogue.columns) {
            if (!to_mds()) {
                columns_.emplace_back(column.name, column.encoding);
                continue;
            }
            TUNE_TRY(encoding, mds_encoding(column));
            columns_.emplace_back(column.name, std::move(encoding));
        }
        return {};
    }

    [[nodiscard]] std::string plan_text() const {
        Json plan = {{"input", rows_.catalogue.digest},
                     {"columns", columns_},
                     {"target", to_mds() ? "mds" : "parquet"},
                     {"steps", steps_.size()},
                     {"size_limit", options_.size_limit},
                     {"compression", options_.compression},
                     {"hashes", options_.hashes}};
        return to_text(plan) + "\n";
    }

    [[nodiscard]] Result<void> prepare() const {
        const Result<std::string> earlier = read_file(folder_ / "plan.json");
        if (earlier && *earlier == plan_text()) return {};
        std::error_code error;
        fs::remove_all(folder_, error);
        fs::create_directories(folder_, error);
        if (error)
            return Error{Code::kInternalError,
                         "cannot make '" + folder_.string() + "': " + error.message()};
        return write_file_atomic(folder_ / "plan.json", plan_text());
    }

    [[nodiscard]] Result<void> run_steps() {
        const auto work = [&] {
            for (std::size_t i = next_++; i < steps_.size(); i = next_++) {
                Result<void> done = run_step(i);
                const std::lock_guard lock(mutex_);
                if (!done && !error_) error_ = std::move(done).error();
                if (error_) return;
            }
        };
        std::vector<std::thread> helpers;
        for (int i = 1; i < options_.threads; ++i) helpers.emplace_back(work);
        work();
        for (std::thread& helper : helpers) helper.join();
        if (!error_) return {};
        const bool has_steps = samples_done_ > 0;
        if (has_steps)
            error_->message += "; what was finished is kept; the same command continues from there";
        return *error_;
    }

    [[nodiscard]] Result<void> run_step(std::size_t number) {
        const fs::path path = folder_ / step_name(number, options_.target);
        std::error_code error;
        if (fs::exists(path, error)) {
            note_progress(steps_[number].end - steps_[number].begin);
            return {};
        }
        const fs::path partial = path.string() + ".partial";
        fs::remove_all(partial, error);
        TUNE_TRY_VOID(to_mds() ? write_mds(steps_[number], partial)
                               : write_parquet(steps_[number], partial));
        if (is_far()) TUNE_TRY_VOID(send_step(partial, step_name(number, options_.target)));
        fs::rename(partial, path, error);
        if (error)
            return Error{Code::kInternalError,
                         "cannot rename '" + partial.string() + "': " + error.message()};
        return {};
    }

    /// Leaves of a folder of MDS its index, which stays here: who lists the URL would take it for a
    /// data set. Leaves of a Parquet file its size.
    [[nodiscard]] Result<void> send_step(const fs::path& step, const std::string& name) const {
        std::error_code error;
        if (!to_mds()) {
            const std::uintmax_t bytes = fs::file_size(step, error);
            TUNE_TRY_VOID(sink_->put(step, name));
            return write_file_atomic(step, std::to_string(bytes));
        }
        TUNE_TRY(objects, LocalSource(step).list(""));
        for (const ObjectInfo& object : objects) {
            if (object.path == "index.json") continue;
            if (options_.cancelled && options_.cancelled->load())
                return Error{Code::kCancelled, "stopped"};
            TUNE_TRY_VOID(sink_->put(step / object.path, name + "/" + object.path));
            fs::remove(step / object.path, error);
        }
        return {};
    }

    [[nodiscard]] Result<std::uint64_t> parquet_bytes(std::size_t step) const {
        const fs::path path = folder_ / step_name(step, options_.target);
        std::error_code error;
        if (!is_far()) return static_cast<std::uint64_t>(fs::file_size(path, error));
        TUNE_TRY(text, read_file(path));
        std::uint64_t bytes = 0;
        std::from_chars(text.data(), text.data() + text.size(), bytes);
        return bytes;
    }

    [[nodiscard]] Result<void> write_mds(const Step& step, const fs::path& path) {
        TUNE_TRY(writer, MdsWriter::open({.directory = path,
                                          .columns = columns_,
                                          .compression = options_.compression,
                                          .hashes = options_.hashes,
                                          .size_limit = options_.size_limit}));
        MdsValues values;
        std::vector<Value> sample;
        TUNE_TRY_VOID(visit(step, kRowsAtOnce, [&](const RowBatch& batch) -> Result<void> {
            for (std::size_t i = 0; i < batch.count; ++i) {
                sample.clear();
                for (const Column& column : batch.columns)
                    sample.push_back(values.value(column, i));
                if (Result<void> written = writer.write(sample); !written)
                    return Error{written.error().code,
                                 "sample " +
                                     std::to_string(batch.first_id + static_cast<std::int64_t>(i)) +
                                     ": " + written.error().text()};
            }
            return {};
        }));
        TUNE_TRY_VOID(writer.finish());
        return {};
    }

    [[nodiscard]] Result<void> write_parquet(const Step& step, const fs::path& path) {
        TUNE_TRY(writer, open_parquet_writer(path, rows_.catalogue.columns));
        TUNE_TRY_VOID(visit(step, kParquetGroupRows, [&](const RowBatch& batch) {
            return writer->write(batch.columns, batch.count);
        }));
        return writer->finish();
    }

    [[nodiscard]] Result<void> visit(const Step& step, std::int64_t rows_at_once,
                                     const std::function<Result<void>(const RowBatch&)>& write) {
        return read_rows(rows_, step.begin, step.end, rows_at_once,
                         [&](const RowBatch& batch) -> Result<void> {
                             if (options_.cancelled && options_.cancelled->load())
                                 return Error{Code::kCancelled, "stopped"};
                             TUNE_TRY_VOID(write(batch));
                             note_progress(static_cast<std::int64_t>(batch.count));
                             return {};
                         });
    }

    void note_progress(std::int64_t samples) {
        const std::lock_guard lock(mutex_);
        samples_done_ += samples;
        if (!progress_.is_due()) return;
        const std::int64_t all = rows_.catalogue.sample_count();
        progress_.show(progress_bar(static_cast<double>(samples_done_) / static_cast<double>(all)) +
                       " " + grouped(samples_done_) + " of " + grouped(all, "sample"));
    }

    [[nodiscard]] Result<ConvertReport> finish() {
        ConvertedSet set{.directory = options_.output, .samples = rows_.catalogue.sample_count()};
        if (is_far()) set.directory = options_.output_url;
        if (to_mds()) {
            TUNE_TRY(index, merged_index());
            set.shards = static_cast<std::int64_t>(index.shards.size());
            for (const ShardInfo& shard : index.shards)
                set.bytes += (shard.zip_data ? *shard.zip_data : shard.raw_data).bytes;
            TUNE_TRY_VOID(write_file_atomic(folder_ / "index.json", index_text(index)));
        } else {
            set.shards = static_cast<std::int64_t>(steps_.size());
            for (std::size_t i = 0; i < steps_.size(); ++i) {
                TUNE_TRY(bytes, parquet_bytes(i));
                set.bytes += bytes;
            }
        }
        TUNE_TRY_VOID(is_far() ? finish_there() : finish_here());
        ConvertReport report;
        report.sets.push_back(std::move(set));
        for (const auto& [name, encoding] : columns_) {
            PlannedColumn column{.name = name};
            column.encoding = encoding;
            report.columns.push_back(std::move(column));
        }
        return report;
    }

    [[nodiscard]] Result<void> finish_there() const {
        if (to_mds()) TUNE_TRY_VOID(sink_->put(folder_ / "index.json", "index.json"));
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
        return {};
    }

    [[nodiscard]] Result<void> finish_here() const {
        std::error_code error;
        const fs::path old =
            output_.parent_path() / ("." + output_.filename().string() + ".old-" + random_hex(4));
        const bool replaces = fs::exists(output_, error);
        error.clear();
        if (replaces) fs::rename(output_, old, error);
        if (!error) fs::rename(folder_, output_, error);
        if (error)
            return Error{Code::kInternalError, "cannot move the data set to '" + output_.string() +
                                                   "': " + error.message()};
        fs::remove(output_ / "plan.json", error);
        if (replaces) fs::remove_all(old, error);
        return {};
    }

    /// One index over the shards of all steps, by their paths.
    [[nodiscard]] Result<Index> merged_index() const {
        Index merged;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const std::string name = step_name(i, options_.target);
            TUNE_TRY(index, read_index(folder_ / name));
            for (ShardInfo& shard : index.shards) {
                shard.raw_data.basename = name + "/" + shard.raw_data.basename;
                if (shard.zip_data)
                    shard.zip_data->basename = name + "/" + shard.zip_data->basename;
                merged.shards.push_back(std::move(shard));
            }
        }
        return merged;
    }

    const ConvertSetOptions& options_;
    RowSet rows_;
    fs::path output_;
    fs::path folder_;
    std::vector<Step> steps_;
    std::shared_ptr<const ObjectSink> sink_;  // of an output_url
    std::vector<std::pair<std::string, std::string>> columns_;
    std::atomic<std::size_t> next_ = 0;

    std::mutex mutex_;
    std::optional<Error> error_;     // guarded by mutex_
    std::int64_t samples_done_ = 0;  // guarded by mutex_
    Progress progress_;              // guarded by mutex_
};

}  // namespace

Result<std::string> mds_encoding(const ColumnInfo& column) {
    if (column.has_mask)
        return Error{Code::kNotImplemented, "column '" + column.name +
                                                "' may hold nulls, which MDS has not; refuse "
                                                "them, or fill something in"};
    if (column.encoding.starts_with("list:"))
        return "ndarray:" + std::string(dtype_name(column.dtype));
    TUNE_TRY_VOID(parse_encoding(column.encoding));
    return column.encoding;
}

Result<ConvertReport> convert_set(const ConvertSetOptions& options) {
    DatasetOptions input = options.input;
    input.reads_once = true;
    TUNE_TRY(rows, open_rows(input));
    Conversion conversion(options, std::move(rows));
    return conversion.run();
}

}  // namespace tune::loader
