#include "loader/source/upload.h"

#include <algorithm>

#include "loader/source/local_source.h"
#include "loader/source/object_sink.h"

namespace tune::loader {
namespace {

bool is_index(const std::string& name) {
    return std::filesystem::path(name).filename() == "index.json";
}

}  // namespace

Result<void> upload(const std::filesystem::path& folder, const std::string& url,
                    const SourceOptions& options) {
    TUNE_TRY(sink, open_sink(url, options));
    TUNE_TRY(objects, LocalSource(folder).list(""));
    std::vector<std::string> names;
    for (const ObjectInfo& object : objects) names.push_back(object.path);
    std::ranges::stable_partition(names, [](const std::string& name) { return !is_index(name); });
    for (const std::string& name : names) TUNE_TRY_VOID(sink->put(folder / name, name));
    return {};
}

}  // namespace tune::loader
