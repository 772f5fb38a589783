#include "loader/tools/convert/convert_anywhere.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/id.h"
#include "base/system/unique_fd.h"
#include "loader/source/open_source.h"
#include "loader/source/range_reader.h"
#include "loader/source/upload.h"

namespace tune::loader {
namespace {

constexpr int kConnections = 8;

/// A folder that goes with the object.
class TemporaryFolder {
public:
    TemporaryFolder()
        : path_(std::filesystem::temp_directory_path() / ("tune-convert-" + random_hex(8))) {
        std::filesystem::create_directories(path_);
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

Result<std::filesystem::path> fetch_table(const std::string& url,
                                          const std::filesystem::path& folder) {
    TUNE_TRY(source, loader::open_source(url));
    TUNE_TRY(object, source->stat(""));
    // The name decides how a table is read.
    const std::string name = url.substr(0, url.find_first_of("?#"));
    const std::filesystem::path file = folder / std::filesystem::path(name).filename();
    std::filesystem::create_directories(folder);
    const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd)
        return Error{Code::kInternalError,
                     "cannot write '" + file.string() + "': " + std::strerror(errno)};
    RangeReader reader(kConnections);
    TUNE_TRY_VOID(reader.to_file(*source, object, 0, object.bytes, fd.get()));
    return file;
}

Result<void> refuse_existing(const std::string& url) {
    TUNE_TRY(source, loader::open_source(url));
    const Result<std::vector<ObjectInfo>> objects = source->list("");
    if (!objects && objects.error().code == Code::kResourceDoesNotExist) return {};
    if (!objects) return objects.error();
    return Error{Code::kResourceAlreadyExists,
                 "'" + url + "' holds something already; --overwrite replaces it"};
}

}  // namespace

Result<ConvertReport> convert_anywhere(ConvertOptions options,
                                       const std::vector<std::string>& inputs,
                                       const std::string& output) {
    const TemporaryFolder folder;
    for (const std::string& input : inputs) {
        if (is_local_url(input)) {
            options.inputs.push_back(local_path(input));
            continue;
        }
        TUNE_TRY(file, fetch_table(input, folder.path() / std::to_string(options.inputs.size())));
        options.inputs.push_back(std::move(file));
    }
    if (is_local_url(output)) {
        options.output = local_path(output);
        return convert(options);
    }
    if (!options.overwrite) TUNE_TRY_VOID(refuse_existing(output));
    options.output = folder.path() / "output";
    TUNE_TRY(report, convert(options));
    TUNE_TRY_VOID(upload(options.output, output));
    for (ConvertedSet& set : report.sets) {
        const std::filesystem::path split = set.directory.lexically_relative(options.output);
        set.directory = output;
        if (split != ".") set.directory = output + "/" + split.string();
    }
    return report;
}

}  // namespace tune::loader
