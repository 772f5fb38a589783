// Data sets in S3 and HDFS: reading and uploading over Arrow's file systems.
//
// An object is identified by path and version (its modification time and size). A file of another
// version is refused when it is opened: half of one shard and half of its successor would be a
// wrong sample. Arrow reports HTTP errors as text only; failure_of reads the status out of it and
// decides whether another attempt makes sense.

#include <arrow/io/interfaces.h>
#include <arrow/util/io_util.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <mutex>
#include <unordered_map>

#include "loader/source/mapped_file.h"
#include "loader/source/object_store/file_systems.h"
#include "loader/source/retry.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

constexpr std::size_t kOpenFilesMax = 256;
constexpr std::chrono::seconds kSeenFor(2);
constexpr std::size_t kWriteBytes = std::size_t{8} << 20;

bool says(const arrow::Status& status, std::initializer_list<std::string_view> words) {
    const std::string text = status.ToString();
    return std::any_of(words.begin(), words.end(), [&text](std::string_view word) {
        return text.find(word) != std::string::npos;
    });
}

/// The status of HTTP that an error of S3 tells of; 0: none.
int http_status(const std::string& text) {
    constexpr std::string_view kBefore = "HTTP status ";
    const std::size_t at = text.find(kBefore);
    int status = 0;
    if (at == std::string::npos) return 0;
    std::from_chars(text.data() + at + kBefore.size(), text.data() + text.size(), status);
    return status;
}

/// What a failed call means to the reader.
AttemptFailure failure_of(const std::string& what, const arrow::Status& status, bool is_s3) {
    const std::string& reason = status.message();
    const std::string message = what + " cannot be read: " + reason;
    const int number = arrow::internal::ErrnoFromStatus(status);
    const int http = http_status(status.message());
    if (number == ENOENT || http == 404 ||
        says(status, {"NO_SUCH_KEY", "NO_SUCH_BUCKET", "NotFound", "does not exist"}))
        return {{Code::kResourceDoesNotExist, what + " does not exist: " + reason}};
    if (http == 401 || http == 403 ||
        says(status, {"ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH",
                      "INVALID_CLIENT_TOKEN_ID", "EXPIRED_TOKEN"}))
        return {{Code::kPermissionDenied, message}};
    const bool is_passing = http == 408 || http == 429 || http >= 500 ||
                            says(status, {"SLOW_DOWN", "NETWORK_CONNECTION", "curlCode"});
    const bool is_unknown = is_s3 ? last_s3_failure_may_pass() : http == 0;
    const bool may_pass = status.IsIOError() && (is_passing || is_unknown);
    return {{may_pass ? Code::kTemporarilyUnavailable : Code::kBadRequest, message}, may_pass};
}

std::string version_of_file(const arrow::fs::FileInfo& info) {
    return std::to_string(info.size()) + "-" +
           std::to_string(info.mtime().time_since_epoch().count());
}

std::string id_of(const ObjectInfo& object) {
    return object.path + '\0' + object.version;
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
    using Clock = std::chrono::steady_clock;

    [[nodiscard]] Result<std::string> place(std::string_view path) const;
    [[nodiscard]] std::string name_of(std::string_view path) const {
        return "'" + url_ + (path.empty() ? "" : "/") + std::string(path) + "'";
    }
    [[nodiscard]] std::optional<AttemptFailure> open(const ObjectInfo& object, File& file) const;
    [[nodiscard]] bool was_just_seen(const std::string& id) const;
    void forget(const File& file) const;

    const std::string url_;
    const StorePlace place_;
    const SourceOptions options_;
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::string, File> files_;              // by path and version
    mutable std::unordered_map<std::string, Clock::time_point> seen_;  // likewise: by stat()
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
    const std::lock_guard lock(mutex_);
    if (seen_.size() >= kOpenFilesMax) seen_.clear();
    seen_[id_of(object)] = Clock::now();
    return object;
}

/// Whether stat() told of this version a moment ago: asking again would cost a shard its time to
/// the first byte twice.
bool StoreSource::was_just_seen(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = seen_.find(id);
    return found != seen_.end() && Clock::now() - found->second < kSeenFor;
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
    const std::string id = id_of(object);
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = files_.find(id); found != files_.end()) {
            file = found->second;
            return {};
        }
    }
    arrow::fs::FileInfo info(*place(object.path), arrow::fs::FileType::File);
    info.set_size(static_cast<std::int64_t>(object.bytes));
    if (!object.version.empty() && !was_just_seen(id)) {
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

class StoreSink final : public ObjectSink {
public:
    StoreSink(std::string url, StorePlace place, SourceOptions options)
        : url_(std::move(url)), place_(std::move(place)), options_(std::move(options)) {}

    [[nodiscard]] Result<void> put(const std::filesystem::path& file,
                                   const std::string& name) const override {
        TUNE_TRY(mapped, MappedFile::open(file));
        return with_retries(options_, [&]() -> std::optional<AttemptFailure> {
            const arrow::Status written = write(mapped->bytes(), place_.root + "/" + name);
            if (written.ok()) return {};
            const std::string shown = "'" + url_ + "/" + name + "'";
            AttemptFailure failure = failure_of(shown, written, place_.is_s3);
            failure.error.message = shown + " cannot be written: " + written.message();
            return failure;
        });
    }

private:
    [[nodiscard]] arrow::Status write(std::span<const std::byte> left,
                                      const std::string& key) const {
        ARROW_ASSIGN_OR_RAISE(const auto stream, place_.files->OpenOutputStream(key));
        while (!left.empty()) {
            const std::size_t bytes = std::min(left.size(), kWriteBytes);
            ARROW_RETURN_NOT_OK(stream->Write(left.data(), static_cast<std::int64_t>(bytes)));
            left = left.subspan(bytes);
        }
        return stream->Close();
    }

    const std::string url_;
    const StorePlace place_;
    const SourceOptions options_;
};

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

extern "C" __attribute__((visibility("default"))) void tune_open_object_sink(
    const std::string& url, const tune::loader::SourceOptions& options,
    tune::loader::SinkResult& result) {
    tune::Result<tune::loader::StorePlace> place = tune::loader::open_store(url, options);
    if (!place) {
        result = std::move(place).error();
        return;
    }
    std::string shown = url;
    while (shown.ends_with('/')) shown.pop_back();
    result = std::shared_ptr<const tune::loader::ObjectSink>(
        std::make_shared<tune::loader::StoreSink>(std::move(shown), *std::move(place), options));
}
