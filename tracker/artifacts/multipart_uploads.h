#pragma once
// Artifacts that come in parts, side by side and in any order: each part goes straight to its place
// in the file to be, which nobody sees until complete(). What is open survives a restart, so that a
// client that broke off can ask which parts are there and send the rest.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::tracker {

struct UploadPlan;

/// Beyond it MLflow's client sends the file in one piece, which has no limit.
inline constexpr int kUploadPartsMax = 10'000;
/// Open uploads, and parts of all of them together: 56 bytes each in memory.
inline constexpr std::size_t kOpenUploadsMax = 256;
inline constexpr std::size_t kOpenPartsMax = 100'000;
/// As S3's. With kUploadPartsMax it keeps offsets far below 2^63.
inline constexpr std::uint64_t kPartBytesMax = 5ull << 30;
/// An upload of which no part was begun or ended for so long is deleted; part URLs live as long.
inline constexpr std::int64_t kUploadIdleMax_ms = 24ll * 3600 * 1000;
/// How often that is looked at, besides at every start and create().
inline constexpr std::int64_t kUploadSweep_ms = 600'000;

struct PartStatus {
    int part_number = 0;  // from 1
    std::uint64_t size_bytes = 0;
    std::string etag;  // SHA-256 of the part as hex, without quotes
};

struct UploadStatus {
    std::string id;
    std::string path;
    int part_count = 0;
    /// The size of every part but the last; 0 until the first of them has come.
    std::uint64_t part_bytes = 0;
    std::int64_t expires_ms = 0;
    /// Those on disk, by number.
    std::vector<PartStatus> parts;
};

/// A part as its sender knows it; `etag` with or without quotes.
struct ClaimedPart {
    std::int64_t part_number = 0;
    std::string etag;
};

/// A part on its way. Destroyed without finish(), or when another request sends the same part, it
/// counts as missing. Calls block on the disk; not thread-safe.
class PartWriter {
public:
    virtual ~PartWriter() = default;
    /// Errors: kResourceExhausted when the disk is full; kResourceConflict when another request has
    /// begun to send this part; kResourceDoesNotExist after abort(); kInternalError.
    [[nodiscard]] virtual Result<void> write(std::string_view bytes) = 0;
    /// On disk when it returns; gives the ETag without quotes. Errors: as write(), and kBadRequest
    /// when bytes are missing.
    [[nodiscard]] virtual Result<std::string> finish() = 0;
};

/// Thread-safe. All calls but sign() and authorise() block on the disk.
class MultipartUploads {
public:
    /// Goes on with what lies in `staging` and deletes everything there that is no whole upload, or
    /// too old. The descriptors and the clock outlive this object.
    enum class Expiry { kOwnThread, kByCaller };  ///< who calls remove_expired()
    [[nodiscard]] static Result<std::unique_ptr<MultipartUploads>> open(
        int root, int staging, const Clock& clock, Expiry expiry = Expiry::kOwnThread);
    ~MultipartUploads();
    MultipartUploads(const MultipartUploads&) = delete;
    MultipartUploads& operator=(const MultipartUploads&) = delete;

    /// Begins the upload of the file `path` in `part_count` parts. Errors: kInvalidParameterValue
    /// for a bad path or count; kNotImplemented, with the sentence upon which MLflow's client sends
    /// the file in one piece, beyond the limits above and where `path` lies on another disk.
    [[nodiscard]] Result<UploadStatus> create(std::string_view path, std::int64_t part_count);

    /// Errors: kResourceDoesNotExist.
    [[nodiscard]] Result<UploadStatus> find(const std::string& id) const;

    /// Those for `path`, or all if it is empty; oldest first.
    [[nodiscard]] std::vector<UploadStatus> list(std::string_view path) const;

    /// The secret that lets its bearer send this part until `expires_s` (seconds since 1970). Empty
    /// if there is no such upload. Never blocks on the disk.
    [[nodiscard]] std::string sign(const std::string& id, int part_number,
                                   std::int64_t expires_s) const;

    /// Whether `token` is what sign() gave, and in time. Errors: kPermissionDenied;
    /// kResourceDoesNotExist. Never blocks on the disk.
    [[nodiscard]] Result<void> authorise(const std::string& id, std::int64_t part_number,
                                         std::int64_t expires_s, std::string_view token) const;

    /// A part that was there, or on its way, is dropped. All parts but the last have one size, the
    /// last is not larger. Errors: kInvalidParameterValue, kRequestEntityTooLarge for the size;
    /// kResourceConflict while complete() runs; kResourceDoesNotExist.
    [[nodiscard]] Result<std::unique_ptr<PartWriter>> begin_part(const std::string& id,
                                                                 std::int64_t part_number,
                                                                 std::uint64_t size_bytes);

    /// Makes the file visible, replacing an older one at once; on disk when it returns. `parts`
    /// names every part, in any order. A repeat for an upload that was completed is fine (clients
    /// retry), for kUploadIdleMax_ms and while it is among the latest kOpenUploadsMax, also after a
    /// restart. Errors: kInvalidParameterValue for a part that is missing, repeated or has another
    /// ETag; kResourceConflict while a part is being sent; kResourceDoesNotExist also for another
    /// `path`; kResourceExhausted.
    [[nodiscard]] Result<void> complete(const std::string& id, std::string_view path,
                                        const std::vector<ClaimedPart>& parts);

    /// Deletes what there is of it. One that is not there (any more) is fine. Errors:
    /// kResourceDoesNotExist for another `path`; kResourceConflict while complete() runs.
    [[nodiscard]] Result<void> abort(const std::string& id, std::string_view path);

    /// Deletes what has been idle for kUploadIdleMax_ms.
    void remove_expired();

private:
    struct Upload;
    class Writer;
    using Uploads = std::unordered_map<std::string, std::shared_ptr<Upload>>;

    MultipartUploads(int root, int staging, const Clock& clock);
    void load_left_over();
    void sweep();
    [[nodiscard]] std::shared_ptr<Upload> get(const std::string& id) const;
    [[nodiscard]] UploadStatus status_of(const Upload& upload) const;
    [[nodiscard]] Result<void> check_target(const std::string& path) const;
    [[nodiscard]] Result<void> publish(const Upload& upload) const;
    [[nodiscard]] bool was_completed(const std::string& id, const std::string& path) const;
    [[nodiscard]] Result<void> reserve(std::size_t part_count);
    void release(std::size_t part_count);
    void forget(const Upload& upload);
    void remember_completed(const UploadPlan& plan, std::int64_t time_ms);
    void remove_completed(std::int64_t before_ms);

    const int root_;
    const int staging_;
    const Clock& clock_;
    mutable std::mutex mutex_;  // the four below; never taken with an upload's own
    Uploads uploads_;
    std::size_t open_count_ = 0;  // with those that are being created
    std::size_t open_parts_ = 0;
    struct Completed {
        std::string id;
        std::string path;
        std::int64_t time_ms = 0;
    };
    /// The latest kOpenUploadsMax that were completed, oldest first. Each has a folder on disk.
    std::deque<Completed> completed_;

    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread sweeper_;
};

}  // namespace tune::tracker
