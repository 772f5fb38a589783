#include "loader/tools/data_sets.h"

#include <algorithm>

namespace tune::loader {

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
