// The log is appended after the part is on disk, and a minus before a part is overwritten; so after
// a crash every part in the log is whole. A torn last line is ignored, and the next append begins a
// new line. The rename of `data` is the moment of completion: what lies there without `data` was
// completed.

#include "tracker/artifacts/upload_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string_view>

#include "base/system/file.h"
#include "base/text/hex.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/rooted_dir.h"

namespace tune::tracker {
namespace {

constexpr const char* kVersionLine = "tune-upload-1";
/// The secret in it is nobody else's business.
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kPrivateFileMode = 0600;
constexpr mode_t kUploadFileMode = 0644;
/// A log of 10,000 parts has about 1.2 MB; one that is longer was written by a client that sends
/// the same parts for ever.
constexpr std::size_t kLogBytesMax = 16u << 20;
constexpr std::size_t kPlanBytesMax = 16u << 10;
constexpr std::size_t kCopyBytes = 1u << 20;

Result<UniqueFd> open_in(int directory, const char* name, int flags, mode_t mode = 0) {
    UniqueFd file(::openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file) return disk_error(name, errno);
    return file;
}

Result<std::string> read_small(int directory, const char* name, std::size_t bytes_max) {
    TUNE_TRY(file, open_in(directory, name, O_RDONLY));
    std::string text;
    char buffer[16384];
    for (;;) {
        const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error(name, errno);
        if (got == 0) return text;
        text.append(buffer, static_cast<std::size_t>(got));
        if (text.size() > bytes_max) return Error{Code::kDataLoss, "An upload's file is too long"};
    }
}

Error not_an_upload(const std::string& id) {
    return {Code::kDataLoss, "The folder " + id + " is not a whole multipart upload"};
}

Result<UploadPlan> parse_plan(const std::string& id, const std::string& text, int part_count_max) {
    std::istringstream in(text);
    std::string version;
    UploadPlan plan;
    plan.id = id;
    std::getline(in, version);
    std::getline(in, plan.secret);
    in >> plan.part_count >> plan.created_ms;
    in.ignore(1);
    std::getline(in, plan.path);
    const bool is_whole = in && !in.eof() && version == kVersionLine && !plan.secret.empty();
    if (!is_whole || plan.part_count < 0 || plan.part_count > part_count_max)
        return not_an_upload(id);
    const Result<std::string> path = artifact_file_path(plan.path);
    if (!path || *path != plan.path) return not_an_upload(id);
    return plan;
}

std::uint64_t file_size(int file) {
    struct stat status {};
    return ::fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

/// One line of the log; what cannot be read (the torn end after a crash) changes nothing.
void apply_line(const std::string& line, const UploadPlan& plan, std::uint64_t data_bytes,
                std::uint64_t tail_bytes, UploadFolder::Loaded& loaded) {
    std::istringstream in(line);
    char sign = 0;
    int number = 0;
    in >> sign >> number;
    if (!in || number < 1 || number > plan.part_count) return;
    StoredPart& part = loaded.parts[static_cast<std::size_t>(number - 1)];
    if (sign == '-') {
        part = {};
        return;
    }
    std::int64_t offset = 0;
    std::string digest;
    std::int64_t time_ms = 0;
    StoredPart read;
    in >> offset >> read.size_bytes >> digest >> time_ms;
    if (!in || sign != '+' || !hex_decode(digest, read.digest)) return;
    read.place = offset < 0 ? StoredPart::Place::kTail : StoredPart::Place::kData;
    const std::uint64_t end =
        read.size_bytes + (offset < 0 ? 0 : static_cast<std::uint64_t>(offset));
    if (end > (offset < 0 ? tail_bytes : data_bytes)) return;
    part = read;
    loaded.last_used_ms = std::max(loaded.last_used_ms, time_ms);
    const bool is_last = number == plan.part_count;
    if (is_last && offset > 0)
        loaded.part_bytes = static_cast<std::uint64_t>(offset) / static_cast<unsigned>(number - 1);
    if (!is_last) loaded.part_bytes = read.size_bytes;
}

}  // namespace

Result<std::unique_ptr<UploadFolder>> UploadFolder::create(int staging, UploadPlan plan) {
    std::unique_ptr<UploadFolder> made(new UploadFolder(staging, std::move(plan)));
    const UploadPlan& p = made->plan_;
    if (::mkdirat(staging, p.id.c_str(), kFolderMode) != 0) return disk_error("upload", errno);
    const auto fill = [&]() -> Result<void> {
        TUNE_TRY(folder, made->open_folder());
        TUNE_TRY(file,
                 open_in(folder.get(), "upload", O_WRONLY | O_CREAT | O_EXCL, kPrivateFileMode));
        const std::string text = std::string(kVersionLine) + "\n" + p.secret + "\n" +
                                 std::to_string(p.part_count) + " " + std::to_string(p.created_ms) +
                                 "\n" + p.path + "\n";
        if (!write_all(file.get(), text)) return disk_error("upload", errno);
        TUNE_TRY(log, open_in(folder.get(), "log", O_WRONLY | O_CREAT | O_EXCL, kPrivateFileMode));
        TUNE_TRY(data, open_in(folder.get(), "data", O_WRONLY | O_CREAT | O_EXCL, kUploadFileMode));
        for (const int each : {file.get(), folder.get(), staging})
            if (::fsync(each) != 0) return disk_error("upload", errno);
        return {};
    };
    if (Result<void> filled = fill(); !filled) {
        static_cast<void>(made->remove());
        return std::move(filled).error();
    }
    return made;
}

Result<UploadFolder::Loaded> UploadFolder::load(int staging, const std::string& id,
                                                int part_count_max) {
    UploadPlan named;
    named.id = id;
    Loaded loaded;
    loaded.folder.reset(new UploadFolder(staging, named));
    TUNE_TRY(folder, loaded.folder->open_folder());
    TUNE_TRY(text, read_small(folder.get(), "upload", kPlanBytesMax));
    TUNE_TRY(plan, parse_plan(id, text, part_count_max));
    loaded.folder->plan_ = std::move(plan);
    if (const auto time_ms = published_ms(folder.get())) {
        loaded.is_published = true;
        loaded.last_used_ms = *time_ms;
        return loaded;
    }
    loaded.parts.resize(static_cast<std::size_t>(loaded.folder->plan_.part_count));
    loaded.last_used_ms = loaded.folder->plan_.created_ms;
    TUNE_TRY_VOID(loaded.folder->read_log(loaded));
    return loaded;
}

std::optional<std::int64_t> UploadFolder::published_ms(int folder) {
    struct stat data {};
    if (::fstatat(folder, "data", &data, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return std::nullopt;
    // The rename of `data`, or the clearing after it, was the folder's last change.
    struct stat own {};
    if (::fstat(folder, &own) != 0) return 0;
    return std::int64_t{own.st_mtim.tv_sec} * 1000 + own.st_mtim.tv_nsec / 1'000'000;
}

void UploadFolder::keep_plan_only() const {
    const Result<UniqueFd> folder = open_folder();
    if (!folder) return;
    for (const char* name : {"log", "tail"}) ::unlinkat(folder->get(), name, 0);
}

Result<void> UploadFolder::read_log(Loaded& loaded) const {
    TUNE_TRY(folder, open_folder());
    TUNE_TRY(data, open_in(folder.get(), "data", O_RDONLY));
    const UniqueFd tail(::openat(folder.get(), "tail", O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    TUNE_TRY(log, read_small(folder.get(), "log", kLogBytesMax));
    const std::uint64_t data_bytes = file_size(data.get());
    const std::uint64_t tail_bytes = tail ? file_size(tail.get()) : 0;
    std::istringstream lines(log);
    std::string line;
    while (std::getline(lines, line) && !lines.eof())
        apply_line(line, plan_, data_bytes, tail_bytes, loaded);
    // The next line must not grow together with the torn end of the last one.
    if (!log.empty() && log.back() != '\n') return append("\n", false);
    return {};
}

Result<UniqueFd> UploadFolder::open_folder() const {
    UniqueFd folder = open_rooted(staging_, plan_.id, O_RDONLY | O_DIRECTORY);
    if (folder) return folder;
    if (is_missing(errno))
        return Error{Code::kResourceDoesNotExist,
                     "The multipart upload " + plan_.id + " is not there any more."};
    return disk_error("upload", errno);
}

Result<UniqueFd> UploadFolder::open_for_part(bool in_tail) const {
    TUNE_TRY(folder, open_folder());
    return open_in(folder.get(), in_tail ? "tail" : "data", O_WRONLY | O_CREAT, kUploadFileMode);
}

Result<void> UploadFolder::append(const std::string& line, bool sync) const {
    TUNE_TRY(folder, open_folder());
    TUNE_TRY(log, open_in(folder.get(), "log", O_WRONLY | O_APPEND));
    if (!write_all(log.get(), line)) return disk_error("upload", errno);
    if (sync && ::fdatasync(log.get()) != 0) return disk_error("upload", errno);
    return {};
}

Result<void> UploadFolder::note_part(int number, std::uint64_t offset, const StoredPart& part,
                                     std::int64_t now_ms) const {
    const std::string place =
        part.place == StoredPart::Place::kTail ? "-1" : std::to_string(offset);
    // Without a sync: a power failure that takes the line only makes the client send it again.
    return append("+ " + std::to_string(number) + " " + place + " " +
                      std::to_string(part.size_bytes) + " " + hex_encode(part.digest) + " " +
                      std::to_string(now_ms) + "\n",
                  false);
}

Result<void> UploadFolder::note_dropped(int number) const {
    return append("- " + std::to_string(number) + "\n", true);
}

Result<void> UploadFolder::assemble(std::uint64_t size_bytes, bool has_tail,
                                    std::uint64_t tail_offset) const {
    TUNE_TRY(folder, open_folder());
    TUNE_TRY(data, open_in(folder.get(), "data", O_WRONLY));
    if (has_tail) {
        TUNE_TRY(tail, open_in(folder.get(), "tail", O_RDONLY));
        auto to = static_cast<off_t>(tail_offset);
        off_t from = 0;
        const auto end = static_cast<off_t>(size_bytes);
        while (to < end) {
            const std::size_t want = std::min(kCopyBytes, static_cast<std::size_t>(end - to));
            const ssize_t copied = ::copy_file_range(tail.get(), &from, data.get(), &to, want, 0);
            if (copied < 0 && errno == EINTR) continue;
            if (copied < 0) return disk_error(plan_.path, errno);
            if (copied == 0) return not_an_upload(plan_.id);
        }
    }
    // A part that was sent again may have become shorter.
    if (::ftruncate(data.get(), static_cast<off_t>(size_bytes)) != 0 || ::fsync(data.get()) != 0)
        return disk_error(plan_.path, errno);
    return {};
}

Result<void> UploadFolder::publish(int directory, const std::string& name) const {
    TUNE_TRY(folder, open_folder());
    return move_into_place(folder.get(), "data", directory, name);
}

Result<void> UploadFolder::remove() const {
    return remove_tree(staging_, plan_.id);
}

}  // namespace tune::tracker
