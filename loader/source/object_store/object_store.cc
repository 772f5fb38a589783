// Data sets in S3, GCS, Azure and HDFS: reading and uploading over Arrow's file systems. A library
// of its own, loaded when such a URL is opened, so that nobody else needs Arrow.
//
// An object is identified by path and version (its modification time and size). A file of another
// version is refused when it is opened: half of one shard and half of its successor would be a
// wrong sample. Open files are kept and shared; one whose read failed is forgotten, because
// Google's file closes itself for everybody. Arrow reports HTTP errors as text only; failure_of
// reads the status out of it and decides whether another attempt makes sense. A read that ends
// early looks like a cut connection and is repeated before it counts as damage.

#include <arrow/io/interfaces.h>
#include <arrow/util/io_util.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <unordered_map>

#include "loader/source/mapped_file.h"
#include "loader/source/object_store/file_systems.h"
#include "loader/source/retry.h"
#include "loader/source/source_library.h"
#include "loader/source/upload.h"

namespace tune::loader {
namespace {

constexpr std::size_t kOpenFilesMax = 256;
constexpr std::size_t kWriteBytes = std::size_t{8} << 20;

bool says(const arrow::Status& status, std::initializer_list<std::string_view> words) {
    const std::string text = status.ToString();
    return std::any_of(words.begin(), words.end(), [&text](std::string_view word) {
        return text.find(word) != std::string::npos;
    });
}

/// The status of HTTP that an error of S3, Google or Azure tells of; 0: none.
int http_status(const std::string& text) {
    for (const std::string_view before : {"HTTP status ", "HTTP status code: ", "Azure Error: ["}) {
        std::size_t at = text.find(before);
        if (at == std::string::npos) continue;
        at += before.size();
        if (before.ends_with('[')) at = text.find("] ", at) + 2;  // "[AuthorizationFailure] 403 "
        int status = 0;
        std::from_chars(text.data() + std::min(at, text.size()), text.data() + text.size(), status);
        if (status > 0) return status;
    }
    return 0;
}

/// What a failed call means to the reader.
AttemptFailure failure_of(const std::string& what, const arrow::Status& status, bool is_s3) {
    // Azure tells the same again in further lines.
    const std::string reason = status.message().substr(0, status.message().find('\n'));
    const std::string message = what + " cannot be read: " + reason;
    const int number = arrow::internal::ErrnoFromStatus(status);
    const int http = http_status(status.message());
    if (number == ENOENT || http == 404 ||
        says(status, {"NO_SUCH_KEY", "NO_SUCH_BUCKET", "NotFound", "does not exist"}))
        return {{Code::kResourceDoesNotExist, what + " does not exist: " + reason}};
    if (http == 401 || http == 403 ||
        says(status, {"ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH",
                      "INVALID_CLIENT_TOKEN_ID", "EXPIRED_TOKEN", "PermissionDenied",
                      "Unauthenticated", "PERMISSION_DENIED", "UNAUTHENTICATED"}))
        return {{Code::kPermissionDenied, message}};
    const bool is_passing = http == 408 || http == 429 || http >= 500 ||
                            says(status, {"SLOW_DOWN", "NETWORK_CONNECTION", "curlCode"});
    const bool is_unknown = is_s3 ? last_s3_failure_may_pass() : http == 0;
    // Google's file closes itself when a read of it fails, for all who share it.
    const bool may_pass =
        (status.IsIOError() && (is_passing || is_unknown)) || says(status, {"closed file"});
    return {{may_pass ? Code::kTemporarilyUnavailable : Code::kBadRequest, message}, may_pass};
}

std::string version_of_file(const arrow::fs::FileInfo& info) {
    return std::to_string(info.size()) + "-" +
           std::to_string(info.mtime().time_since_epoch().count());
}

class StoreSource final : public ObjectSource {
public:
    StoreSource(std::string url, StorePlace place, SourceOptions options)
        : url_(std::move(url)), place_(std::move(place)), options_(std::move(options)) {}

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override;
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return url_; }

private:
    using File = std::shared_ptr<arrow::io::RandomAccessFile>;

    [[nodiscard]] Result<std::string> place(std::string_view path) const;
    [[nodiscard]] std::string name_of(std::string_view path) const {
        return "'" + url_ + (path.empty() ? "" : "/") + std::string(path) + "'";
    }
    [[nodiscard]] std::optional<AttemptFailure> open(const ObjectInfo& object, File& file) const;
    void forget(const File& file) const;

    const std::string url_;
    const StorePlace place_;
    const SourceOptions options_;
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::string, File> files_;  // by path and version
};

Result<std::string> StoreSource::place(std::string_view path) const {
    if (!is_object_path(path))
        return invalid_parameter("the path '" + std::string(path) + "' leads out of '" + url_ +
                                 "'");
    return path.empty() ? place_.root : place_.root + "/" + std::string(path);
}

Result<ObjectInfo> StoreSource::stat(std::string_view path) const {
    TUNE_TRY(key, place(path));
    ObjectInfo object{std::string(path), 0, ""};
    TUNE_TRY_VOID(with_retries(options_, [&]() -> std::optional<AttemptFailure> {
        const arrow::Result<arrow::fs::FileInfo> info = place_.files->GetFileInfo(key);
        if (!info.ok()) return failure_of(name_of(path), info.status(), place_.is_s3);
        if (!info->IsFile())
            return AttemptFailure{
                {Code::kResourceDoesNotExist,
                 name_of(path) + (info->IsDirectory() ? " is a folder" : " does not exist")}};
        object.bytes = static_cast<std::uint64_t>(info->size());
        object.version = version_of_file(*info);
        return {};
    }));
    return object;
}

Result<std::vector<ObjectInfo>> StoreSource::list(std::string_view folder) const {
    TUNE_TRY(key, place(folder));
    std::vector<ObjectInfo> objects;
    bool is_file = false;
    TUNE_TRY_VOID(with_retries(options_, [&]() -> std::optional<AttemptFailure> {
        objects.clear();
        arrow::fs::FileSelector selector;
        selector.base_dir = key;
        selector.recursive = true;
        selector.allow_not_found = true;
        const auto infos = place_.files->GetFileInfo(selector);
        if (!infos.ok()) {
            is_file = infos.status().message().find("not a directory") != std::string::npos ||
                      infos.status().message().find("Not a directory") != std::string::npos;
            if (is_file) return {};
            return failure_of(name_of(folder), infos.status(), place_.is_s3);
        }
        for (const arrow::fs::FileInfo& info : *infos)
            if (info.IsFile() && info.path().size() > place_.root.size())
                objects.push_back({info.path().substr(place_.root.size() + 1),
                                   static_cast<std::uint64_t>(info.size()), version_of_file(info)});
        return {};
    }));
    if (objects.empty()) {  // one file, or nothing at all
        TUNE_TRY(object, stat(folder));
        objects.push_back(std::move(object));
    }
    std::ranges::sort(objects, {}, &ObjectInfo::path);
    return objects;
}

/// A file whose size is known is opened without a request.
std::optional<AttemptFailure> StoreSource::open(const ObjectInfo& object, File& file) const {
    const std::string id = object.path + '\0' + object.version;
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = files_.find(id); found != files_.end()) {
            file = found->second;
            return {};
        }
    }
    arrow::fs::FileInfo info(*place(object.path), arrow::fs::FileType::File);
    info.set_size(static_cast<std::int64_t>(object.bytes));
    if (!object.version.empty()) {
        const auto found = place_.files->GetFileInfo(info.path());
        if (!found.ok()) return failure_of(name_of(object.path), found.status(), place_.is_s3);
        if (version_of_file(*found) != object.version)
            return AttemptFailure{
                {Code::kDataLoss, name_of(object.path) + " was changed while it was read"}};
    }
    arrow::Result<File> opened = place_.files->OpenInputFile(info);
    if (!opened.ok()) return failure_of(name_of(object.path), opened.status(), place_.is_s3);
    file = *opened;
    const std::lock_guard lock(mutex_);
    if (files_.size() >= kOpenFilesMax) files_.clear();
    files_[id] = file;
    return {};
}

/// The next read opens the file anew.
void StoreSource::forget(const File& file) const {
    const std::lock_guard lock(mutex_);
    std::erase_if(files_, [&](const auto& entry) { return entry.second == file; });
}

Result<void> StoreSource::read(const ObjectInfo& object, std::uint64_t offset,
                               std::span<std::byte> bytes) const {
    TUNE_TRY_VOID(place(object.path));
    if (bytes.empty()) return {};
    return with_retries(options_, [&]() -> std::optional<AttemptFailure> {
        File file;
        if (std::optional<AttemptFailure> failure = open(object, file)) return failure;
        const arrow::Result<std::int64_t> count =
            file->ReadAt(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes.size()),
                         bytes.data());
        if (count.ok() && static_cast<std::size_t>(*count) == bytes.size()) return {};
        forget(file);
        if (!count.ok()) return failure_of(name_of(object.path), count.status(), place_.is_s3);
        // A connection that was cut looks the same: it is asked for again.
        return AttemptFailure{
            {Code::kDataLoss, name_of(object.path) + " ends at byte " +
                                  std::to_string(offset + static_cast<std::uint64_t>(*count)) +
                                  ", " +
                                  std::to_string(bytes.size() - static_cast<std::size_t>(*count)) +
                                  " bytes too early"},
            true};
    });
}

Result<void> upload_file(const StorePlace& place, const std::filesystem::path& file,
                         const std::string& name, const SourceOptions& options) {
    TUNE_TRY(mapped, MappedFile::open(file));
    return with_retries(options, [&]() -> std::optional<AttemptFailure> {
        const auto written = [&]() -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const auto stream,
                                  place.files->OpenOutputStream(place.root + "/" + name));
            for (std::span<const std::byte> left = mapped->bytes(); !left.empty();) {
                const std::size_t bytes = std::min(left.size(), kWriteBytes);
                ARROW_RETURN_NOT_OK(stream->Write(left.data(), static_cast<std::int64_t>(bytes)));
                left = left.subspan(bytes);
            }
            return stream->Close();
        }();
        if (written.ok()) return {};
        AttemptFailure failure = failure_of("'" + name + "'", written, place.is_s3);
        failure.error.message = "'" + name + "' cannot be written: " + written.message();
        return failure;
    });
}

}  // namespace
}  // namespace tune::loader

extern "C" __attribute__((visibility("default"))) void tune_open_object_store(
    const std::string& url, const tune::loader::SourceOptions& options,
    tune::loader::SourceResult& result) {
    tune::Result<tune::loader::StorePlace> place = tune::loader::open_store(url, options);
    if (!place) {
        result = std::move(place).error();
        return;
    }
    std::string shown = url;
    while (shown.ends_with('/')) shown.pop_back();
    result = std::shared_ptr<const tune::loader::ObjectSource>(
        std::make_shared<tune::loader::StoreSource>(std::move(shown), *std::move(place), options));
}

extern "C" __attribute__((visibility("default"))) void tune_upload_files(
    const std::string& url, const tune::loader::SourceOptions& options,
    const std::filesystem::path& folder, const std::vector<std::string>& names,
    tune::Result<void>& result) {
    const tune::Result<tune::loader::StorePlace> place = tune::loader::open_store(url, options);
    if (!place) {
        result = place.error();
        return;
    }
    for (const std::string& name : names)
        if (result = tune::loader::upload_file(*place, folder / name, name, options); !result)
            return;
}
