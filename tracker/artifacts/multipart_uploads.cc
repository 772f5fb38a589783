// A claim is a request that sends one part. The newest claim on a part wins, and a write checks
// under the upload's mutex that it still holds its claim, so a client's retry and its hanging
// predecessor never interleave. Offsets follow from the common size of the parts; only the last
// part may differ, and until that size is known it waits in `tail`.

#include "tracker/artifacts/multipart_uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <unordered_set>

#include "base/id.h"
#include "base/log.h"
#include "base/text/hex.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/rooted_dir.h"
#include "tracker/artifacts/upload_folder.h"

namespace tune::tracker {
namespace {

using Place = StoredPart::Place;

/// MLflow's client takes a message that begins so as "send it in one piece".
constexpr const char* kInOnePiece =
    "Multipart upload is not supported for the current artifact repository";

Error no_such_upload(const std::string& id) {
    return {Code::kResourceDoesNotExist,
            "There is no open multipart upload '" + id +
                "' for this path: it was completed, aborted or not continued for 24 hours. Create "
                "a new one."};
}

Error being_completed() {
    return {Code::kResourceConflict, "The multipart upload is being completed."};
}

std::string unquoted(std::string_view etag) {
    if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
        etag = etag.substr(1, etag.size() - 2);
    return std::string(etag);
}

/// A request that sends one part. Taken away from it when another begins to send the same.
struct Claim {
    std::mutex mutex;  // held while bytes are written
    bool is_lost = false;
    bool in_tail = false;
};

}  // namespace

struct MultipartUploads::Upload {
    explicit Upload(std::unique_ptr<UploadFolder> from) : folder(std::move(from)) {
        parts.resize(static_cast<std::size_t>(folder->plan().part_count));
    }

    [[nodiscard]] const UploadPlan& plan() const { return folder->plan(); }

    /// Whether some part's place follows from part_bytes already.
    [[nodiscard]] bool is_part_size_settled() const {
        for (const auto& [number, claim] : writers)
            if (!claim->in_tail) return true;
        return std::any_of(parts.begin(), parts.end(),
                           [](const StoredPart& part) { return part.place == Place::kData; });
    }

    Result<void> check_open() const {
        if (is_gone) return no_such_upload(plan().id);
        if (is_closing) return being_completed();
        return {};
    }

    /// Checks the size of a part that is to come and learns the common one from it.
    Result<void> settle_size(int number, std::uint64_t size_bytes) {
        if (size_bytes > kPartBytesMax)
            return Error{Code::kRequestEntityTooLarge,
                         "A part has at most " + std::to_string(kPartBytesMax) + " bytes."};
        if (plan().part_count == 1) return {};
        if (size_bytes == 0) return invalid_parameter("A part of several must not be empty.");
        if (part_bytes != 0 && !is_part_size_settled()) part_bytes = 0;
        const bool is_last = number == plan().part_count;
        if (!is_last && part_bytes == 0) part_bytes = size_bytes;
        const bool fits =
            is_last ? part_bytes == 0 || size_bytes <= part_bytes : size_bytes == part_bytes;
        if (fits) return {};
        return invalid_parameter(
            "Part " + std::to_string(number) + " has " + std::to_string(size_bytes) +
            " bytes, but the parts of this upload have " + std::to_string(part_bytes) +
            ": all parts but the last have the same size, and the last is not larger.");
    }

    [[nodiscard]] std::uint64_t offset_of(int number) const {
        return static_cast<std::uint64_t>(number - 1) * part_bytes;
    }

    std::mutex mutex;  // everything below, and the folder's log
    const std::unique_ptr<UploadFolder> folder;
    std::vector<StoredPart> parts;
    std::unordered_map<int, std::shared_ptr<Claim>> writers;
    std::uint64_t part_bytes = 0;
    std::int64_t last_used_ms = 0;
    bool is_closing = false;
    bool is_gone = false;
};

// --- writing a part ------------------------------------------------------------------------------

class MultipartUploads::Writer final : public PartWriter {
public:
    Writer(std::shared_ptr<Upload> upload, std::shared_ptr<Claim> claim, const Clock& clock,
           UniqueFd file, int number, std::uint64_t size_bytes, std::uint64_t offset)
        : upload_(std::move(upload)),
          claim_(std::move(claim)),
          clock_(clock),
          file_(std::move(file)),
          number_(number),
          size_bytes_(size_bytes),
          offset_(offset) {}

    ~Writer() override {
        const std::lock_guard lock(upload_->mutex);
        give_up_claim();
    }

    Result<void> write(std::string_view bytes) override {
        if (bytes.size() > size_bytes_ - written_) return wrong_size();
        digest_.update(bytes);
        const std::lock_guard lock(claim_->mutex);
        if (claim_->is_lost) return lost();
        while (!bytes.empty()) {
            const ssize_t count = ::pwrite(file_.get(), bytes.data(), bytes.size(),
                                           static_cast<off_t>(offset_ + written_));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return disk_error(upload_->plan().path, errno);
            bytes.remove_prefix(static_cast<std::size_t>(count));
            written_ += static_cast<std::uint64_t>(count);
        }
        return {};
    }

    Result<std::string> finish() override {
        if (written_ != size_bytes_) return wrong_size();
        if (::fdatasync(file_.get()) != 0) return disk_error(upload_->plan().path, errno);
        const std::lock_guard lock(upload_->mutex);
        TUNE_TRY_VOID(upload_->check_open());
        if (claim_->is_lost) return lost();
        StoredPart part;
        part.place = claim_->in_tail ? Place::kTail : Place::kData;
        part.size_bytes = size_bytes_;
        part.digest = digest_.finish();
        upload_->last_used_ms = clock_.now_ms();
        TUNE_TRY_VOID(upload_->folder->note_part(number_, offset_, part, upload_->last_used_ms));
        upload_->parts[static_cast<std::size_t>(number_ - 1)] = part;
        give_up_claim();
        return hex_encode(part.digest);
    }

private:
    /// With the upload's mutex held, under which claims are lost.
    void give_up_claim() {
        const auto own = upload_->writers.find(number_);
        if (own != upload_->writers.end() && own->second == claim_) upload_->writers.erase(own);
    }
    [[nodiscard]] Error wrong_size() const {
        return {Code::kBadRequest, "Part " + std::to_string(number_) + " was announced with " +
                                       std::to_string(size_bytes_) + " bytes, others came."};
    }
    [[nodiscard]] Error lost() const {
        return {Code::kResourceConflict, "Another request sends part " + std::to_string(number_) +
                                             " now, or the upload was aborted."};
    }

    const std::shared_ptr<Upload> upload_;
    const std::shared_ptr<Claim> claim_;
    const Clock& clock_;
    const UniqueFd file_;
    const int number_;
    const std::uint64_t size_bytes_;
    const std::uint64_t offset_;
    std::uint64_t written_ = 0;
    Sha256 digest_;
};

// --- opening and closing -------------------------------------------------------------------------

MultipartUploads::MultipartUploads(int root, int staging, const Clock& clock)
    : root_(root), staging_(staging), clock_(clock) {}

MultipartUploads::~MultipartUploads() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (sweeper_.joinable()) sweeper_.join();
}

Result<std::unique_ptr<MultipartUploads>> MultipartUploads::open(int root, int staging,
                                                                 const Clock& clock,
                                                                 Expiry expiry) {
    std::unique_ptr<MultipartUploads> uploads(new MultipartUploads(root, staging, clock));
    uploads->load_left_over();
    uploads->remove_expired();
    if (expiry == Expiry::kOwnThread)
        uploads->sweeper_ = std::thread([raw = uploads.get()] { raw->sweep(); });
    return uploads;
}

void MultipartUploads::load_left_over() {
    const Result<std::vector<std::string>> names = names_in(staging_);
    if (!names) return log_warning("unfinished uploads cannot be read: " + names.error().text());
    std::vector<UploadFolder::Loaded> published;
    for (const std::string& name : *names) {
        Result<UploadFolder::Loaded> loaded = UploadFolder::load(staging_, name, kUploadPartsMax);
        if (loaded && loaded->is_published) {
            loaded->folder->keep_plan_only();
            published.push_back(std::move(loaded).value());
        } else if (loaded && reserve(loaded->parts.size())) {
            auto upload = std::make_shared<Upload>(std::move(loaded->folder));
            upload->parts = std::move(loaded->parts);
            upload->part_bytes = loaded->part_bytes;
            upload->last_used_ms = loaded->last_used_ms;
            uploads_.emplace(name, std::move(upload));
        } else if (const Result<void> removed = remove_tree(staging_, name); !removed) {
            log_warning("an unfinished upload cannot be deleted: " + removed.error().text());
        }
    }
    std::sort(published.begin(), published.end(),
              [](const auto& a, const auto& b) { return a.last_used_ms < b.last_used_ms; });
    for (const UploadFolder::Loaded& each : published)
        remember_completed(each.folder->plan(), each.last_used_ms);
}

void MultipartUploads::sweep() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        wake_.wait_for(lock, std::chrono::milliseconds(kUploadSweep_ms));
        if (stopping_) return;
        lock.unlock();
        remove_expired();
        lock.lock();
    }
}

void MultipartUploads::remove_expired() {
    std::vector<std::shared_ptr<Upload>> all;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, upload] : uploads_) all.push_back(upload);
    }
    const std::int64_t now_ms = clock_.now_ms();
    remove_completed(now_ms - kUploadIdleMax_ms);
    for (const auto& upload : all) {
        {
            const std::lock_guard lock(upload->mutex);
            if (!upload->writers.empty() || now_ms - upload->last_used_ms < kUploadIdleMax_ms)
                continue;
        }
        static_cast<void>(abort(upload->plan().id, upload->plan().path));
    }
}

Result<void> MultipartUploads::reserve(std::size_t part_count) {
    const std::lock_guard lock(mutex_);
    if (open_count_ >= kOpenUploadsMax || open_parts_ + part_count > kOpenPartsMax)
        return Error{Code::kNotImplemented,
                     std::string(kInOnePiece) +
                         " while as many uploads are open as the server holds. Complete or abort "
                         "some, or send the file in one piece."};
    ++open_count_;
    open_parts_ += part_count;
    return {};
}

void MultipartUploads::release(std::size_t part_count) {
    const std::lock_guard lock(mutex_);
    --open_count_;
    open_parts_ -= part_count;
}

void MultipartUploads::forget(const Upload& upload) {
    release(upload.parts.size());
    const std::lock_guard lock(mutex_);
    uploads_.erase(upload.plan().id);
}

void MultipartUploads::remember_completed(const UploadPlan& plan, std::int64_t time_ms) {
    std::string oldest;
    {
        const std::lock_guard lock(mutex_);
        completed_.push_back({plan.id, plan.path, time_ms});
        if (completed_.size() <= kOpenUploadsMax) return;
        oldest = std::move(completed_.front().id);
        completed_.pop_front();
    }
    static_cast<void>(remove_tree(staging_, oldest));
}

void MultipartUploads::remove_completed(std::int64_t before_ms) {
    std::vector<std::string> old;
    {
        const std::lock_guard lock(mutex_);
        for (; !completed_.empty() && completed_.front().time_ms < before_ms;
             completed_.pop_front())
            old.push_back(std::move(completed_.front().id));
    }
    for (const std::string& id : old) static_cast<void>(remove_tree(staging_, id));
}

// --- create, find --------------------------------------------------------------------------------

/// Refuses what complete() could not do after all bytes were sent.
Result<void> MultipartUploads::check_target(const std::string& path) const {
    struct stat staging {};
    if (::fstat(staging_, &staging) != 0) return disk_error(path, errno);
    TUNE_TRY(folder, nearest_folder(root_, path));
    struct stat status {};
    if (::fstat(folder.get(), &status) != 0) return disk_error(path, errno);
    if (status.st_dev == staging.st_dev) return {};
    return Error{Code::kNotImplemented, std::string(kInOnePiece) +
                                            ": this folder lies on another disk than the artifact "
                                            "root."};
}

Result<UploadStatus> MultipartUploads::create(std::string_view path, std::int64_t part_count) {
    TUNE_TRY(normal, artifact_file_path(path));
    if (part_count < 0)
        return invalid_parameter("Invalid value " + std::to_string(part_count) +
                                 " for parameter 'num_parts': it must not be negative.");
    if (part_count > kUploadPartsMax)
        return Error{Code::kNotImplemented, std::string(kInOnePiece) + " in more than " +
                                                std::to_string(kUploadPartsMax) + " parts."};
    remove_expired();
    TUNE_TRY_VOID(check_target(normal));
    const auto count = static_cast<std::size_t>(part_count);
    TUNE_TRY_VOID(reserve(count));
    UploadPlan plan;
    plan.id = random_hex(16);
    plan.secret = random_hex(32);
    plan.path = std::move(normal);
    plan.part_count = static_cast<int>(part_count);
    plan.created_ms = clock_.now_ms();
    Result<std::unique_ptr<UploadFolder>> folder = UploadFolder::create(staging_, std::move(plan));
    if (!folder) {
        release(count);
        return std::move(folder).error();
    }
    const auto upload = std::make_shared<Upload>(std::move(folder).value());
    upload->last_used_ms = upload->plan().created_ms;
    UploadStatus status = status_of(*upload);
    const std::lock_guard lock(mutex_);
    uploads_.emplace(upload->plan().id, upload);
    return status;
}

std::shared_ptr<MultipartUploads::Upload> MultipartUploads::get(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = uploads_.find(id);
    return found == uploads_.end() ? nullptr : found->second;
}

UploadStatus MultipartUploads::status_of(const Upload& upload) const {
    UploadStatus status;
    status.id = upload.plan().id;
    status.path = upload.plan().path;
    status.part_count = upload.plan().part_count;
    status.part_bytes = upload.part_bytes;
    status.expires_ms = upload.last_used_ms + kUploadIdleMax_ms;
    for (std::size_t i = 0; i < upload.parts.size(); ++i) {
        const StoredPart& part = upload.parts[i];
        if (part.place == Place::kNone) continue;
        status.parts.push_back({static_cast<int>(i) + 1, part.size_bytes, hex_encode(part.digest)});
    }
    return status;
}

Result<UploadStatus> MultipartUploads::find(const std::string& id) const {
    const auto upload = get(id);
    if (!upload) return no_such_upload(id);
    const std::lock_guard lock(upload->mutex);
    if (upload->is_gone) return no_such_upload(id);
    return status_of(*upload);
}

std::vector<UploadStatus> MultipartUploads::list(std::string_view path) const {
    std::vector<std::shared_ptr<Upload>> found;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, upload] : uploads_)
            if (path.empty() || upload->plan().path == path) found.push_back(upload);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return std::pair(a->plan().created_ms, a->plan().id) <
               std::pair(b->plan().created_ms, b->plan().id);
    });
    std::vector<UploadStatus> out;
    for (const auto& upload : found) {
        const std::lock_guard lock(upload->mutex);
        if (!upload->is_gone) out.push_back(status_of(*upload));
    }
    return out;
}

// --- capabilities --------------------------------------------------------------------------------

std::string MultipartUploads::sign(const std::string& id, int part_number,
                                   std::int64_t expires_s) const {
    const auto upload = get(id);
    if (!upload) return {};
    const UploadPlan& plan = upload->plan();
    return hex_encode(hmac_sha256(plan.secret, "PUT\n" + plan.id + "\n" + plan.path + "\n" +
                                                   std::to_string(part_number) + "\n" +
                                                   std::to_string(expires_s)));
}

Result<void> MultipartUploads::authorise(const std::string& id, std::int64_t part_number,
                                         std::int64_t expires_s, std::string_view token) const {
    const auto upload = get(id);
    if (!upload) return no_such_upload(id);
    if (part_number < 1 || part_number > upload->plan().part_count)
        return invalid_parameter("This upload has no part " + std::to_string(part_number) + ".");
    if (!equal_secrets(sign(id, static_cast<int>(part_number), expires_s), token))
        return Error{Code::kPermissionDenied,
                     "The token of this part URL is not the one that the server gave."};
    if (clock_.now_ms() / 1000 >= expires_s)
        return Error{
            Code::kPermissionDenied,
            "This part URL has expired; GET /api/2.0/tune/uploads/" + id + " gives new ones."};
    return {};
}

// --- parts ---------------------------------------------------------------------------------------

Result<std::unique_ptr<PartWriter>> MultipartUploads::begin_part(const std::string& id,
                                                                 std::int64_t part_number,
                                                                 std::uint64_t size_bytes) {
    const auto upload = get(id);
    if (!upload) return no_such_upload(id);
    if (part_number < 1 || part_number > upload->plan().part_count)
        return invalid_parameter("This upload has no part " + std::to_string(part_number) + ".");
    const int number = static_cast<int>(part_number);
    const std::lock_guard lock(upload->mutex);
    TUNE_TRY_VOID(upload->check_open());
    // The older sender first: its place may be what settles the size.
    if (const auto older = upload->writers.find(number); older != upload->writers.end()) {
        const std::lock_guard no_write(older->second->mutex);
        older->second->is_lost = true;
        upload->writers.erase(older);
    }
    StoredPart& part = upload->parts[static_cast<std::size_t>(number - 1)];
    if (part.place != Place::kNone) {
        TUNE_TRY_VOID(upload->folder->note_dropped(number));
        part = {};
    }
    TUNE_TRY_VOID(upload->settle_size(number, size_bytes));
    auto claim = std::make_shared<Claim>();
    claim->in_tail = number > 1 && upload->part_bytes == 0;
    TUNE_TRY(file, upload->folder->open_for_part(claim->in_tail));
    upload->writers.emplace(number, claim);
    upload->last_used_ms = clock_.now_ms();
    const std::uint64_t offset = claim->in_tail ? 0 : upload->offset_of(number);
    return std::unique_ptr<PartWriter>(std::make_unique<Writer>(
        upload, std::move(claim), clock_, std::move(file), number, size_bytes, offset));
}

// --- complete, abort -----------------------------------------------------------------------------

namespace {

Result<void> check_claims(const std::vector<StoredPart>& parts,
                          const std::vector<ClaimedPart>& claims) {
    std::unordered_set<std::int64_t> seen;
    for (const ClaimedPart& claim : claims) {
        const std::string name = "Part " + std::to_string(claim.part_number);
        if (claim.part_number < 1 || claim.part_number > static_cast<std::int64_t>(parts.size()))
            return invalid_parameter(name + " is not one of this upload's " +
                                     std::to_string(parts.size()) + ".");
        if (!seen.insert(claim.part_number).second)
            return invalid_parameter(name + " is named twice.");
        const StoredPart& part = parts[static_cast<std::size_t>(claim.part_number - 1)];
        if (part.place == Place::kNone)
            return invalid_parameter(name +
                                     " has not been uploaded. Send it, then complete again.");
        if (hex_encode(part.digest) != unquoted(claim.etag))
            return invalid_parameter(name + " has the ETag \"" + hex_encode(part.digest) +
                                     "\", not '" + claim.etag + "'.");
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (!seen.contains(static_cast<std::int64_t>(i) + 1))
            return invalid_parameter("Part " + std::to_string(i + 1) + " of " +
                                     std::to_string(parts.size()) + " is not named.");
    return {};
}

}  // namespace

Result<void> MultipartUploads::publish(const Upload& upload) const {
    const std::string& path = upload.plan().path;
    const std::size_t count = upload.parts.size();
    const bool has_tail = count > 0 && upload.parts.back().place == Place::kTail;
    const std::uint64_t before_last = count > 0 ? upload.offset_of(static_cast<int>(count)) : 0;
    const std::uint64_t size = count > 0 ? before_last + upload.parts.back().size_bytes : 0;
    TUNE_TRY_VOID(upload.folder->assemble(size, has_tail, before_last));
    TUNE_TRY(directory, make_directories(root_, parent_path(path)));
    return upload.folder->publish(directory.get(), std::string(artifact_name(path)));
}

bool MultipartUploads::was_completed(const std::string& id, const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(completed_.begin(), completed_.end(),
                       [&](const Completed& each) { return each.id == id && each.path == path; });
}

Result<void> MultipartUploads::complete(const std::string& id, std::string_view path,
                                        const std::vector<ClaimedPart>& parts) {
    TUNE_TRY(normal, artifact_file_path(path));
    if (was_completed(id, normal)) return {};
    const auto upload = get(id);
    if (!upload || upload->plan().path != normal) return no_such_upload(id);
    {
        const std::lock_guard lock(upload->mutex);
        TUNE_TRY_VOID(upload->check_open());
        if (!upload->writers.empty())
            return Error{
                Code::kResourceConflict,
                "Part " + std::to_string(upload->writers.begin()->first) + " is still being sent."};
        TUNE_TRY_VOID(check_claims(upload->parts, parts));
        const StoredPart* last = upload->parts.empty() ? nullptr : &upload->parts.back();
        if (last && last->place == Place::kTail && last->size_bytes > upload->part_bytes)
            return invalid_parameter("The last part is larger than the others.");
        // From here on nobody else touches it, so that the slow rest needs no lock.
        upload->is_closing = true;
    }
    if (Result<void> published = publish(*upload); !published) {
        const std::lock_guard lock(upload->mutex);
        upload->is_closing = false;
        return std::move(published).error();
    }
    {
        const std::lock_guard lock(upload->mutex);
        upload->is_gone = true;
    }
    remember_completed(upload->plan(), clock_.now_ms());
    forget(*upload);
    upload->folder->keep_plan_only();
    return {};
}

Result<void> MultipartUploads::abort(const std::string& id, std::string_view path) {
    TUNE_TRY(normal, artifact_file_path(path));
    const auto upload = get(id);
    if (!upload) return {};
    if (upload->plan().path != normal) return no_such_upload(id);
    {
        const std::lock_guard lock(upload->mutex);
        if (upload->is_gone) return {};
        if (upload->is_closing) return being_completed();
        upload->is_gone = true;
        for (const auto& [number, claim] : upload->writers) {
            const std::lock_guard no_write(claim->mutex);
            claim->is_lost = true;
        }
        upload->writers.clear();
    }
    forget(*upload);
    return upload->folder->remove();
}

}  // namespace tune::tracker
