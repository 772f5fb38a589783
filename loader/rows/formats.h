#pragma once
// The formats that need no library beyond the loader's own. Internal to the loader.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loader/cache/cached_source.h"
#include "loader/format/mds/index.h"
#include "loader/rows/row_set.h"
#include "loader/rows/row_shard.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// In the order in which a directory is tried.
[[nodiscard]] std::vector<Format> builtin_formats();

/// Whether the directory is a Delta table, or holds (or is) a Parquet file.
[[nodiscard]] bool holds_delta_log(const DatasetOptions& options);
[[nodiscard]] bool holds_parquet(const DatasetOptions& options);

/// Whether the directory holds (or is) a file whose name ends so, hidden ones left out.
[[nodiscard]] bool holds_files(const DatasetOptions& options,
                               const std::vector<std::string>& extensions);

/// Whether some part of the path begins with '_' or '.', which says that it is no data.
[[nodiscard]] bool is_hidden(const std::filesystem::path& path);

/// The files of a source whose names end so, hidden ones left out; of a source that is one file,
/// that file. Errors: kResourceDoesNotExist when there is none.
[[nodiscard]] Result<std::vector<ObjectInfo>> find_files(
    const ObjectSource& source, const std::vector<std::string>& extensions);

/// index.json with shards of MDS, or of json, csv, tsv and xsv.
[[nodiscard]] Result<RowSet> open_index(const DatasetOptions& options);
/// `files`: what is read from, when it is kept in a cache, with a unit for each file; else nullptr.
[[nodiscard]] Result<RowSet> open_split_shards(const DatasetOptions& options, Index index,
                                               std::shared_ptr<CachedSource> files);

/// `format`: jsonl, csv or tsv. Errors: kDataLoss naming file and line.
[[nodiscard]] Result<RowSet> open_text_files(const DatasetOptions& options,
                                             const std::string& format);
[[nodiscard]] std::vector<std::string> text_extensions(const std::string& format);

/// Columns: "__key__" and one for each extension. Errors: kDataLoss naming archive and byte.
[[nodiscard]] Result<RowSet> open_webdataset(const DatasetOptions& options);

/// Columns: class, image, label and path.
[[nodiscard]] Result<RowSet> open_image_folder(const DatasetOptions& options);
[[nodiscard]] const std::vector<std::string>& image_extensions();

/// The decoder over shards that are open already, and the digest.
[[nodiscard]] Result<RowSet> finish_file_rows(const DatasetOptions& options, RowSet rows,
                                              std::string_view described,
                                              std::vector<std::shared_ptr<const RowShard>> shards);

}  // namespace tune::loader
