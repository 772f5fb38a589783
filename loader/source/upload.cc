#include "loader/source/upload.h"

#include <algorithm>

#include "loader/source/local_source.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

using UploadFunction = void(const std::string& url, const SourceOptions& options,
                            const std::filesystem::path& folder,
                            const std::vector<std::string>& names, Result<void>& result);

bool is_index(const std::string& name) {
    return std::filesystem::path(name).filename() == "index.json";
}

}  // namespace

Result<void> upload(const std::filesystem::path& folder, const std::string& url,
                    const SourceOptions& options) {
    const std::string scheme = url.substr(0, url.find(':'));
    if (scheme.starts_with("http") || scheme == "hf" || scheme == "dbfs")
        return Error{
            Code::kNotImplemented,
            "'" + url + "' can be read, not written; write to a folder or an object store"};
    TUNE_TRY(objects, LocalSource(folder).list(""));
    std::vector<std::string> names;
    for (const ObjectInfo& object : objects) names.push_back(object.path);
    std::ranges::stable_partition(names, [](const std::string& name) { return !is_index(name); });
    TUNE_TRY(function, library_function(kObjectStoreLibrary, "tune_upload_files"));
    Result<void> result;
    reinterpret_cast<UploadFunction*>(function)(url, options, folder, names, result);
    return result;
}

}  // namespace tune::loader
