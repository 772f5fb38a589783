// A manifest is one JSON object whose last field is the digest of the text before it. A snapshot is
// taken by listing the folder, linking each file, and listing it again: if both lists agree, the
// links are the folder of one moment, whatever is renamed over the names afterwards.

#include "worker/agent/checkpoints/checkpoint_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "base/crypto/digest.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/hex.h"

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "tune-checkpoint-1";
constexpr int kSnapshotTries = 8;
constexpr int kSnapshotRest_ms = 25;
constexpr std::size_t kReadBytes = 1u << 20;

std::string hex_of(const Sha256Bytes& digest) {
    return hex_encode(digest);
}

/// A path below the folder and nothing else.
bool is_inside(const std::string& text) {
    if (text.empty() || text.find('\0') != std::string::npos) return false;
    const fs::path path(text);
    if (path.is_absolute()) return false;
    return std::none_of(path.begin(), path.end(), [](const fs::path& part) {
        return part == ".." || part == "." || part.empty();
    });
}

/// A link of the folder leads to a place in it.
bool leads_inside(const std::string& path, const std::string& link) {
    if (link.empty() || fs::path(link).is_absolute()) return false;
    const fs::path whole = (fs::path(path).parent_path() / link).lexically_normal();
    return whole.begin() != whole.end() && *whole.begin() != "..";
}

std::int64_t changed_ns(const struct stat& status) {
    return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// Absent: it is gone again, or neither a file nor a link.
std::optional<SeenFile> see(const fs::path& path, std::string name) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
    SeenFile seen{.path = std::move(name)};
    if (S_ISLNK(status.st_mode)) {
        std::error_code error;
        seen.link = fs::read_symlink(path, error).string();
        if (error || !leads_inside(seen.path, seen.link)) return std::nullopt;
        return seen;
    }
    if (!S_ISREG(status.st_mode)) return std::nullopt;
    seen.inode = status.st_ino;
    seen.bytes = static_cast<std::uint64_t>(status.st_size);
    seen.changed_ns = changed_ns(status);
    return seen;
}

}  // namespace

std::uint64_t CheckpointSet::bytes() const {
    std::uint64_t sum = 0;
    for (const CheckpointFile& file : files) sum += file.bytes;
    return sum;
}

std::string manifest_name(const CheckpointNumber& number) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "manifest-%06d-%08llu.json", number.attempt,
                  static_cast<unsigned long long>(number.number));
    return text.data();
}

std::optional<CheckpointNumber> manifest_number(std::string_view name) {
    constexpr std::string_view kHead = "manifest-";
    constexpr std::string_view kEnd = ".json";
    if (!name.starts_with(kHead) || !name.ends_with(kEnd)) return std::nullopt;
    name.remove_prefix(kHead.size());
    name.remove_suffix(kEnd.size());
    const char* const end = name.data() + name.size();
    CheckpointNumber number;
    const auto [dash, first] = std::from_chars(name.data(), end, number.attempt);
    if (first != std::errc() || dash == end || *dash != '-') return std::nullopt;
    const auto [at, second] = std::from_chars(dash + 1, end, number.number);
    if (second != std::errc() || at != end || number.attempt < 0) return std::nullopt;
    return number;
}

std::string manifest_text(const CheckpointSet& set) {
    Json files = Json::array();
    for (const CheckpointFile& file : set.files) {
        if (file.link.empty())
            files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
        else
            files.push_back({{"path", file.path}, {"link", file.link}});
    }
    Json manifest = {{"format", kFormat},
                     {"attempt", set.number.attempt},
                     {"number", set.number.number},
                     {"files", std::move(files)}};
    const std::string digest = hex_of(sha256(to_text(manifest)));
    manifest["manifest_sha256"] = digest;
    return to_text(manifest);
}

Result<CheckpointSet> read_manifest(const std::string& text) {
    const auto damaged = [](const std::string& what) {
        return Error{Code::kDataLoss, "its manifest " + what};
    };
    Result<Json> parsed = parse_json(text);
    if (!parsed || !parsed->is_object()) return damaged("is not JSON");
    const std::string digest = parsed->value("manifest_sha256", std::string());
    parsed->erase("manifest_sha256");
    if (hex_of(sha256(to_text(*parsed))) != digest) return damaged("is damaged");
    if (parsed->value("format", std::string()) != kFormat)
        return damaged("is of a later version of tune");
    CheckpointSet set;
    set.number = {parsed->value("attempt", 0), parsed->value("number", std::uint64_t{0})};
    for (const Json& item : parsed->value("files", Json::array())) {
        CheckpointFile file{.path = item.value("path", std::string()),
                            .bytes = item.value("bytes", std::uint64_t{0}),
                            .sha256 = item.value("sha256", std::string()),
                            .link = item.value("link", std::string())};
        const bool is_link = !file.link.empty();
        if (!is_inside(file.path) || (is_link && !leads_inside(file.path, file.link)) ||
            (!is_link && (file.sha256.size() != 64 || !is_inside(file.sha256))))
            return damaged("names '" + file.path + "', which is no file of a checkpoint folder");
        set.files.push_back(std::move(file));
    }
    return set;
}

Result<std::string> file_sha256(const fs::path& path) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return system_error("read", path);
    Sha256 digest;
    std::string buffer(kReadBytes, '\0');
    while (true) {
        const ssize_t count = read(file.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return system_error("read", path);
        if (count == 0) return hex_of(digest.finish());
        digest.update({buffer.data(), static_cast<std::size_t>(count)});
    }
}

bool is_passing_name(std::string_view name) {
    for (const std::string_view end : {".lock", ".tmp", ".part"})
        if (name.ends_with(end)) return true;
    // As write_file_atomic (base/system/file.h) names them.
    constexpr std::size_t kDigits = 8;
    if (!name.starts_with('.') || name.size() < kDigits + 3) return false;
    const std::string_view end = name.substr(name.size() - kDigits - 1);
    return end.front() == '.' && end.find_first_not_of("0123456789abcdef", 1) == end.npos;
}

Result<std::vector<SeenFile>> list_folder(const fs::path& folder) {
    std::vector<SeenFile> files;
    std::error_code error;
    fs::recursive_directory_iterator item(folder, error);
    if (error == std::errc::no_such_file_or_directory) return files;
    for (; !error && item != fs::recursive_directory_iterator(); item.increment(error)) {
        if (is_passing_name(item->path().filename().string())) continue;
        std::string name = item->path().lexically_relative(folder).generic_string();
        if (std::optional<SeenFile> seen = see(item->path(), std::move(name)))
            files.push_back(std::move(*seen));
    }
    if (error)
        return Error{Code::kInternalError,
                     "cannot list '" + folder.string() + "': " + error.message()};
    std::sort(files.begin(), files.end(),
              [](const SeenFile& a, const SeenFile& b) { return a.path < b.path; });
    return files;
}

Result<FolderSnapshot> FolderSnapshot::take(const fs::path& folder, fs::path staging) {
    std::error_code error;
    fs::remove_all(staging, error);
    fs::create_directories(staging, error);
    if (error)
        return Error{Code::kInternalError,
                     "cannot make '" + staging.string() + "': " + error.message()};
    FolderSnapshot snapshot(std::move(staging), {});
    for (int i = 0; i < kSnapshotTries; ++i) {
        if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(kSnapshotRest_ms << i));
        // A folder may vanish while it is listed.
        Result<std::vector<SeenFile>> before = list_folder(folder);
        if (!before) continue;
        snapshot.files_ = std::move(*before);
        snapshot.is_copy_.assign(snapshot.files_.size(), false);
        bool is_good = true;
        for (std::size_t at = 0; is_good && at < snapshot.files_.size(); ++at) {
            if (!snapshot.files_[at].link.empty()) continue;
            const fs::path from = folder / snapshot.files_[at].path;
            const fs::path to = snapshot.path(at);
            fs::remove(to, error);
            if (::link(from.c_str(), to.c_str()) == 0) continue;
            snapshot.is_copy_[at] = true;
            is_good = fs::copy_file(from, to, error) && !error;
        }
        const Result<std::vector<SeenFile>> after = list_folder(folder);
        if (is_good && after && *after == snapshot.files_) return snapshot;
    }
    return Error{Code::kTemporarilyUnavailable,
                 "the checkpoint folder '" + folder.string() + "' does not stop changing"};
}

FolderSnapshot::FolderSnapshot(FolderSnapshot&& other) noexcept
    : staging_(std::exchange(other.staging_, {})),
      files_(std::move(other.files_)),
      is_copy_(std::move(other.is_copy_)) {}

FolderSnapshot::~FolderSnapshot() {
    std::error_code ignored;
    if (!staging_.empty()) fs::remove_all(staging_, ignored);
}

fs::path FolderSnapshot::path(std::size_t index) const {
    return staging_ / std::to_string(index);
}

bool FolderSnapshot::is_intact(std::size_t index) const {
    const SeenFile& file = files_[index];
    if (!file.link.empty() || is_copy_[index]) return true;
    const std::optional<SeenFile> now = see(path(index), file.path);
    return now && now->bytes == file.bytes && now->changed_ns == file.changed_ns;
}

}  // namespace tune::worker
