// Tables to a data set. Rows go through a packer into one writer, or into one writer per split, as
// a dealer decides. Everything is written to a hidden folder beside the output and moved into place
// at the end; an existing output is moved aside first and removed after that. The folder's owner
// removes it on every other way out.

#include "loader/tools/convert/convert.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/id.h"
#include "loader/format/mds/writer.h"
#include "loader/format/table.h"
#include "loader/tools/progress.h"

namespace tune::loader {
namespace {

namespace fs = std::filesystem;

Error with_file(Error error, const fs::path& path) {
    if (error.context.empty() && error.message.find(path.string()) == std::string::npos)
        error.context = path.string();
    return error;
}

/// A directory that is removed unless it was moved to its place.
class PartialOutput {
public:
    explicit PartialOutput(const fs::path& output)
        : output_(fs::absolute(output).lexically_normal()) {
        if (!output_.has_filename()) output_ = output_.parent_path();  // a trailing slash
        path_ = output_.parent_path() /
                ("." + output_.filename().string() + ".partial-" + random_hex(4));
    }
    ~PartialOutput() {
        std::error_code ignored;
        if (!is_moved_) fs::remove_all(path_, ignored);
    }
    PartialOutput(const PartialOutput&) = delete;
    PartialOutput& operator=(const PartialOutput&) = delete;

    [[nodiscard]] const fs::path& path() const { return path_; }

    [[nodiscard]] Result<void> check_target(bool overwrite) const {
        std::error_code error;
        if (!fs::exists(output_, error)) return {};
        if (!fs::is_directory(output_, error))
            return Error{Code::kResourceAlreadyExists,
                         "'" + output_.string() + "' exists and is not a directory"};
        if (!overwrite && !fs::is_empty(output_, error))
            return Error{
                Code::kResourceAlreadyExists,
                "'" + output_.string() + "' is not empty; give another directory, or --overwrite"};
        return {};
    }

    /// Into the place of `output`; what was there before goes only after that.
    [[nodiscard]] Result<void> move_into_place() {
        const fs::path old =
            output_.parent_path() / ("." + output_.filename().string() + ".old-" + random_hex(4));
        std::error_code error;
        const bool replaces = fs::exists(output_, error);
        if (replaces) fs::rename(output_, old, error);
        if (!error) fs::rename(path_, output_, error);
        if (error)
            return Error{Code::kInternalError, "cannot move the data set to '" + output_.string() +
                                                   "': " + error.message()};
        is_moved_ = true;
        if (replaces) fs::remove_all(old, error);
        return {};
    }

private:
    fs::path output_;
    fs::path path_;
    bool is_moved_ = false;
};

/// The tables, and what is wanted of them.
struct Source {
    std::vector<std::unique_ptr<TableReader>> tables;
    std::vector<PlannedColumn> columns;
    std::int64_t row_count = 0;  // only when there are splits
};

Result<Source> open_source(const ConvertOptions& options) {
    Source source;
    std::vector<std::string> natural;
    for (const fs::path& path : options.inputs) {
        TUNE_TRY(table, open_table(path));
        if (!source.tables.empty() &&
            table->column_names() != source.tables.front()->column_names())
            return Error{Code::kInvalidParameterValue, "'" + path.string() +
                                                           "' has other columns than '" +
                                                           options.inputs.front().string() + "'"};
        if (needs_natural_encodings(options.columns)) {
            Result<std::vector<std::string>> found = table->natural_encodings();
            if (!found) return with_file(std::move(found).error(), path);
            if (!natural.empty() && natural != *found)
                return Error{Code::kInvalidParameterValue,
                             "'" + path.string() + "' has columns of other types than '" +
                                 options.inputs.front().string() +
                                 "'; state the encodings with --columns"};
            natural = *std::move(found);
        }
        if (!options.splits.empty()) {
            Result<std::int64_t> rows = table->row_count();
            if (!rows) return with_file(std::move(rows).error(), path);
            source.row_count += *rows;
        }
        source.tables.push_back(std::move(table));
    }
    natural.resize(source.tables.front()->column_names().size());
    TUNE_TRY(columns,
             plan_columns(options.columns, source.tables.front()->column_names(), natural));
    source.columns = std::move(columns);
    return source;
}

/// Turns a row of the table into a sample: packs what is to be packed.
class RowPacker {
public:
    RowPacker(const std::vector<PlannedColumn>& columns, const std::vector<std::string>& names)
        : columns_(columns), names_(names), packed_(columns.size()) {
        for (const PlannedColumn& column : columns)
            sources_.insert(sources_.end(), column.sources.begin(), column.sources.end());
    }

    /// The table's columns in the order in which pack() takes them.
    [[nodiscard]] const std::vector<std::size_t>& sources() const { return sources_; }

    /// `sample` points into `row` and the packer until the next call.
    [[nodiscard]] Result<void> pack(const std::vector<Value>& row, std::vector<Value>& sample) {
        sample.clear();
        std::size_t at = 0;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const PlannedColumn& column = columns_[c];
            if (!column.packed_dtype) {
                sample.push_back(row[at++]);
                continue;
            }
            std::string& bytes = packed_[c];
            bytes.clear();
            for (const std::size_t source : column.sources) {
                Result<void> added = append_element(*column.packed_dtype, row[at++], bytes);
                if (added) continue;
                Error error = std::move(added).error();
                error.context = "column '" + names_[source] + "'";
                return error;
            }
            sample.push_back(std::as_bytes(std::span(bytes)));
        }
        return {};
    }

private:
    const std::vector<PlannedColumn>& columns_;
    const std::vector<std::string>& names_;
    std::vector<std::size_t> sources_;
    std::vector<std::string> packed_;
};

Result<std::vector<MdsWriter>> open_writers(const ConvertOptions& options,
                                            const std::vector<PlannedColumn>& columns,
                                            const fs::path& directory) {
    MdsWriterOptions writer_options;
    for (const PlannedColumn& column : columns)
        writer_options.columns.emplace_back(column.name, column.encoding);
    writer_options.compression = options.compression;
    writer_options.hashes = options.hashes;
    writer_options.size_limit = options.size_limit;
    std::vector<MdsWriter> writers;
    for (std::size_t i = 0; i < std::max<std::size_t>(options.splits.size(), 1); ++i) {
        writer_options.directory =
            options.splits.empty() ? directory : directory / options.splits[i].name;
        TUNE_TRY(writer, MdsWriter::open(writer_options));
        writers.push_back(std::move(writer));
    }
    return writers;
}

constexpr std::int64_t kRowsBetweenChecks = 256;

/// Reads one table into the writers. `dealer` may be nullptr: everything goes to the first.
Result<void> convert_table(TableReader& table, const ConvertOptions& options, RowPacker& packer,
                           SplitDealer* dealer, std::vector<MdsWriter>& writers,
                           Progress& progress) {
    std::vector<Value> row;
    std::vector<Value> sample;
    for (std::int64_t rows = 0;; ++rows) {
        TUNE_TRY(more, table.next(row));
        if (!more) return {};
        Result<void> written = packer.pack(row, sample);
        if (written) written = writers[dealer ? dealer->next() : 0].write(sample);
        if (!written) {
            Error error = std::move(written).error();
            const std::string column = error.context.empty() ? "" : ", " + error.context;
            return Error{error.code, table.place() + column + ": " + error.message};
        }
        if (rows % kRowsBetweenChecks != 0) continue;
        if (options.cancelled && options.cancelled->load())
            return Error{Code::kCancelled, "stopped; nothing was written"};
        if (progress.is_due())
            progress.show("converted " + grouped(rows, "row") + ", " + percent(table.progress()) +
                          " of this file");
    }
}

}  // namespace

Result<ConvertReport> convert(const ConvertOptions& options) {
    TUNE_CHECK(!options.inputs.empty(), "there is nothing to convert");
    PartialOutput output(options.output);
    TUNE_TRY_VOID(output.check_target(options.overwrite));
    TUNE_TRY(source, open_source(options));
    RowPacker packer(source.columns, source.tables.front()->column_names());
    for (std::size_t i = 0; i < source.tables.size(); ++i)
        if (Result<void> selected = source.tables[i]->select(packer.sources()); !selected)
            return with_file(std::move(selected).error(), options.inputs[i]);
    TUNE_TRY(writers, open_writers(options, source.columns, output.path()));
    std::optional<SplitDealer> dealer;
    if (!options.splits.empty()) dealer.emplace(options.splits, source.row_count, options.seed);
    Progress progress;
    for (std::size_t i = 0; i < source.tables.size(); ++i) {
        Result<void> converted = convert_table(*source.tables[i], options, packer,
                                               dealer ? &*dealer : nullptr, writers, progress);
        if (!converted) return with_file(std::move(converted).error(), options.inputs[i]);
    }
    ConvertReport report;
    for (std::size_t i = 0; i < writers.size(); ++i) {
        ConvertedSet set;
        set.directory =
            options.splits.empty() ? options.output : options.output / options.splits[i].name;
        set.samples = writers[i].samples_written();
        if (set.samples == 0)
            return Error{Code::kInvalidParameterValue,
                         "'" + set.directory.string() + "' would have no samples"};
        TUNE_TRY(index, writers[i].finish());
        for (const ShardInfo& shard : index.shards) {
            ++set.shards;
            set.bytes += shard.zip_data ? shard.zip_data->bytes : shard.raw_data.bytes;
        }
        report.sets.push_back(std::move(set));
    }
    TUNE_TRY_VOID(output.move_into_place());
    report.columns = std::move(source.columns);
    return report;
}

}  // namespace tune::loader
