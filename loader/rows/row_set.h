#pragma once
// A data set as the rest of the loader sees it, whatever it is stored in: shards of rows, typed
// columns, and something that copies rows into batches. Internal to the loader.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/batch_decoder.h"
#include "loader/batch_supply.h"
#include "loader/dataset.h"
#include "loader/order/epoch.h"

namespace tune::loader {

/// What the order of samples is made from, and what batches will hold.
struct Catalogue {
    /// "mds", "parquet", ...
    std::string format = {};
    /// Samples of each shard, in order. Sample ids count through them.
    std::vector<std::int64_t> shard_samples = {};
    /// Where each shard lies, for messages and listings: "part-0.parquet, row group 3".
    std::vector<std::string> shard_names = {};
    /// The columns that were asked for, sorted by name, as batches hold them.
    std::vector<ColumnInfo> columns = {};
    /// Of all that the order and the contents of samples depend on.
    std::string digest = {};
    /// Stored bytes of all shards; 0 when that is not known.
    std::uint64_t bytes = 0;
    /// Samples among which a shuffle may jump without decoding shards again and again; 0: any
    /// number.
    std::int64_t block_samples_max = 0;

    [[nodiscard]] std::int64_t sample_count() const;
};

struct RowSet {
    Catalogue catalogue;
    /// Parts of the shards that are mixed, in their order, and what an epoch takes of each; a
    /// format that leaves it empty is one stream.
    std::vector<Stream> streams = {};
    std::unique_ptr<BatchDecoder> decoder;
    /// Brings what the decoder reads; nullptr: it is all on this machine.
    std::shared_ptr<BatchSupply> supply = {};
};

/// A way in which data sets are stored.
struct Format {
    std::string name = {};
    /// Whether the directory (or file) of `options` holds this.
    std::function<bool(const DatasetOptions& options)> detects = {};
    std::function<Result<RowSet>(const DatasetOptions& options)> open = {};
};

/// Adds a format to those that open_rows knows; one of the same name is replaced. Thread-safe. For
/// libraries that are linked apart: see use_arrow_formats() in loader/tables/formats.h.
void add_format(Format format);

/// The data set of `options`, in options.format or the first format that detects it. Errors:
/// kResourceDoesNotExist when there is nothing, kNotImplemented for a format that this program was
/// built without, those of the format.
[[nodiscard]] Result<RowSet> open_rows(const DatasetOptions& options);

/// What open_source() takes for the data of `options`: a folder, a file or a URL.
[[nodiscard]] std::string data_place(const DatasetOptions& options);

/// The options for this column; those of a column that has none otherwise.
[[nodiscard]] ColumnOptions options_of(const DatasetOptions& options, std::string_view column);

/// Errors: kInvalidParameterValue for a name in `columns` or `column_options` that is not among
/// `names`, or that stands there twice.
[[nodiscard]] Result<void> check_names(const DatasetOptions& options,
                                       const std::vector<std::string>& names);
[[nodiscard]] bool is_wanted(const DatasetOptions& options, std::string_view column);

/// Gives `column` the element type that was asked for. Errors: kInvalidParameterValue for a column
/// that holds no numbers, or a type that does not hold every value unless that is allowed.
[[nodiscard]] Result<void> apply_dtype(const ColumnOptions& wanted, ColumnInfo& column);

/// Errors: kInvalidParameterValue when `options` ask for what only tables have.
[[nodiscard]] Result<void> refuse_table_options(const DatasetOptions& options,
                                                std::string_view format);

/// xxh3_128 of a text.
[[nodiscard]] std::string digest_of(std::string_view text);

}  // namespace tune::loader
