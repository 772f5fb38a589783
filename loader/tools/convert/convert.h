#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/tools/convert/column_plan.h"
#include "loader/tools/convert/splits.h"

namespace tune::loader {

struct ConvertOptions {
    /// Tables with the same columns, read one after the other.
    std::vector<std::filesystem::path> inputs = {};
    std::filesystem::path output = {};
    bool overwrite = false;
    ColumnRequest columns = {};
    /// None: all rows into `output` itself; else each into a folder of its name.
    std::vector<Split> splits = {};
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> size_limit = std::uint64_t{1} << 26;
    std::string compression = {};
    std::vector<std::string> hashes = {"xxh3_64"};
    /// Set by a signal handler; the conversion then ends with kCancelled.
    const std::atomic<bool>* cancelled = nullptr;
};

struct ConvertedSet {
    std::filesystem::path directory;
    std::int64_t samples = 0;
    std::int64_t shards = 0;
    std::uint64_t bytes = 0;
};

struct ConvertReport {
    std::vector<ConvertedSet> sets;
    std::vector<PlannedColumn> columns;
};

/// Writes the data set beside `output` under a hidden name and moves it there when it is complete;
/// on any error nothing is left. Errors: kResourceAlreadyExists when `output` holds something and
/// `overwrite` is false; those of tables, columns and writer, with file, line and column.
[[nodiscard]] Result<ConvertReport> convert(const ConvertOptions& options);

}  // namespace tune::loader
