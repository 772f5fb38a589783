#pragma once
// A data set of any format into MDS or Parquet, on several threads, in steps that survive a kill.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/dataset.h"
#include "loader/tools/convert/convert.h"

namespace tune::loader {

enum class ConvertTarget { kMds, kParquet };

struct ConvertSetOptions {
    /// What is read; nulls must be refused or filled for MDS.
    DatasetOptions input = {};
    std::filesystem::path output = {};
    /// An object store in place of `output`.
    std::string output_url = {};
    ConvertTarget target = ConvertTarget::kMds;
    bool overwrite = false;
    int threads = 2;
    /// Of MDS shards; and, for either target, a quarter of what one step writes.
    std::uint64_t size_limit = std::uint64_t{1} << 26;
    std::string compression = {};
    std::vector<std::string> hashes = {"xxh3_64"};
    const std::atomic<bool>* cancelled = nullptr;
};

/// Writes steps of some shards each into the hidden folder ".<output>.converting" and moves it into
/// place when all are there. After a kill, a cancellation or an error the folder stays, and the
/// same call goes on behind the steps that were finished; another input or other options begin
/// anew. MDS shards lie in a folder for each step, with one index over all. To an `output_url` each
/// step is sent when it is finished and leaves this machine, the index follows when all are there;
/// what is known of the steps lies in the folder for temporary files meanwhile, so the same machine
/// goes on after a kill. Errors: those of reading and writing; kResourceAlreadyExists when the
/// output holds something and `overwrite` is false; kNotImplemented for Parquet in place of what a
/// URL holds, whose old files would stay; kCancelled.
[[nodiscard]] Result<ConvertReport> convert_set(const ConvertSetOptions& options);

/// The MDS encoding that keeps what a column gives out. Errors: kNotImplemented for nulls.
[[nodiscard]] Result<std::string> mds_encoding(const ColumnInfo& column);

}  // namespace tune::loader
