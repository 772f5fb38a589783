#include "loader/tools/data_sets.h"

#include <algorithm>

#include "loader/source/open_source.h"

namespace tune::loader {
namespace {

/// Folders of a source that hold an index.json: itself, or those right beneath it.
Result<std::vector<std::string>> index_folders(const ObjectSource& source) {
    const Result<ObjectInfo> own = source.stat("index.json");
    if (own) return std::vector<std::string>{""};
    if (own.error().code != Code::kResourceDoesNotExist) return own.error();
    std::vector<std::string> folders;
    const Result<std::vector<ObjectInfo>> objects = source.list("");
    if (!objects) return own.error();  // what cannot be listed is not there
    for (const ObjectInfo& object : *objects) {
        const std::size_t slash = object.path.find('/');
        if (slash != std::string::npos && object.path.substr(slash) == "/index.json")
            folders.push_back(object.path.substr(0, slash));
    }
    return folders;
}

}  // namespace

std::unique_ptr<ShardStore> DataSet::open(bool checks_hashes,
                                          std::size_t decompressed_bytes_max) const {
    if (source)
        return std::make_unique<ShardStore>(source, index, checks_hashes, decompressed_bytes_max);
    return std::make_unique<ShardStore>(directory, index, checks_hashes, decompressed_bytes_max);
}

Result<std::vector<DataSet>> find_data_sets_at(const std::string& url) {
    if (is_local_url(url)) return find_data_sets(local_path(url));
    TUNE_TRY(top, open_source(url));
    TUNE_TRY(folders, index_folders(*top));
    if (folders.empty())
        return Error{Code::kResourceDoesNotExist,
                     "'" + top->url() +
                         "' holds no data set: there is no index.json in it or in a folder of it"};
    std::vector<DataSet> sets;
    for (const std::string& folder : folders) {
        const std::string place = top->url() + (folder.empty() ? "" : "/" + folder);
        TUNE_TRY(source, open_source(folder.empty() ? url : place));
        TUNE_TRY(text, read_object(*source, "index.json"));
        Result<Index> index = parse_index(text);
        if (!index) {
            Error error = std::move(index).error();
            error.context = place + "/index.json";
            return error;
        }
        sets.push_back({place, *std::move(index), source});
    }
    return sets;
}

Result<std::vector<DataSet>> find_data_sets(const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> found;
    std::error_code error;
    if (std::filesystem::exists(directory / "index.json", error)) {
        found.push_back(directory);
    } else {
        for (const auto& entry : std::filesystem::directory_iterator(directory, error))
            if (std::filesystem::exists(entry.path() / "index.json", error))
                found.push_back(entry.path());
        std::sort(found.begin(), found.end());
    }
    if (found.empty())
        return Error{Code::kResourceDoesNotExist,
                     "'" + directory.string() +
                         "' holds no data set: there is no index.json in it or in a folder of it"};
    std::vector<DataSet> sets;
    for (const std::filesystem::path& path : found) {
        TUNE_TRY(index, read_index(path));
        sets.push_back({path, std::move(index)});
    }
    return sets;
}

}  // namespace tune::loader
