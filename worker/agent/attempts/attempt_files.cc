// JSON files are replaced by rename, so a kill leaves the old or the new content; how far metrics
// were sent, which changes often, is added to its file as a line. The owner link is
// the lock between supervisor and agent: symlink(2) succeeds for exactly one of them, and its
// target says which. Damaged or missing fields read as defaults; the worst case is an attempt
// reported as lost.

#include "worker/agent/attempts/attempt_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/text/time_text.h"
#include "worker/agent/attempts/rank_environment.h"
#include "worker/agent/server/own_address.h"

namespace tune::worker {
namespace {

constexpr const char* kAttemptFile = "attempt.json";
constexpr const char* kIntentFile = "intent.json";
constexpr std::size_t kRecordBytesMax = 16u << 20;
/// Longer, and the file is written anew with its last line alone.
constexpr off_t kProgressBytesMax = 256 << 10;

constexpr std::array<std::pair<Intent, const char*>, 9> kIntents = {{
    {Intent::kNone, "none"},
    {Intent::kPrune, "prune"},
    {Intent::kStop, "stop"},
    {Intent::kCheckpointStop, "checkpoint_stop"},
    {Intent::kLost, "lost"},
    {Intent::kShutdown, "shutdown"},
    {Intent::kAway, "away"},
    {Intent::kMoved, "moved"},
    {Intent::kGpuFault, "gpu_fault"},
}};

/// Readable by the owner only: a command line may hold what is nobody else's business. What an
/// earlier attempt left there is cut afterwards: a file that was empty in between is written to the
/// disk by ext4 when it is closed.
Result<void> write_new(const std::filesystem::path& path, std::string_view text) {
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return system_error("create", path);
    if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ftruncate(file.get(), static_cast<off_t>(text.size())) != 0)
        return system_error("write", path);
    return {};
}

/// By rename: a kill at any moment leaves the old content or the new one.
Result<void> replace(const std::filesystem::path& path, std::string_view text) {
    const std::filesystem::path temporary = path.string() + ".tmp";
    TUNE_TRY_VOID(write_new(temporary, text));
    if (rename(temporary.c_str(), path.c_str()) != 0) return system_error("replace", path);
    return {};
}

/// As a line of its own, even after one that a full disk cut.
Result<void> append_line(const std::filesystem::path& path, std::string_view text) {
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!file) return system_error("open", path);
    const std::string line = "\n" + std::string(text) + "\n";
    if (write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        return system_error("write", path);
    if (lseek(file.get(), 0, SEEK_CUR) > kProgressBytesMax) return replace(path, line);
    return {};
}

/// The last line that is an object; an empty one if there is none.
Json read_last_object(const std::filesystem::path& path) {
    const Result<std::string> text = read_file(path, kRecordBytesMax);
    if (!text) return Json::object();
    std::string_view left = *text;
    while (!left.empty()) {
        const std::size_t at = left.find_last_of('\n');
        const std::string_view line = at == std::string_view::npos ? left : left.substr(at + 1);
        Result<Json> parsed = parse_json(line);
        if (parsed && parsed->is_object()) return std::move(*parsed);
        left = at == std::string_view::npos ? std::string_view() : left.substr(0, at);
    }
    return Json::object();
}

/// Empty object if the file is absent or damaged.
Json read_object(const std::filesystem::path& path) {
    const Result<std::string> text = read_file(path, kRecordBytesMax);
    if (!text) return Json::object();
    Result<Json> parsed = parse_json(*text);
    return parsed && parsed->is_object() ? std::move(*parsed) : Json::object();
}

/// The field, or `fallback` if it is absent or of another type.
template <class T>
T field(const Json& object, const char* name, T fallback) {
    const auto found = object.find(name);
    if (found == object.end()) return fallback;
    if constexpr (std::is_same_v<T, bool>) {
        return found->is_boolean() ? found->get<bool>() : fallback;
    } else if constexpr (std::is_integral_v<T>) {
        return found->is_number_integer() ? found->get<T>() : fallback;
    } else {
        return found->is_string() ? found->get<T>() : fallback;
    }
}

/// Of the link, or of the file in its place.
Result<std::string> owner_text(const std::filesystem::path& path) {
    char target[kOwnerBytes];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length >= 0) return std::string(target, static_cast<std::size_t>(length));
    if (errno != EINVAL) return system_error("read the link", path);
    return read_file(path, kOwnerBytes);
}

/// What was the owner of an attempt that is over waits under another name for the next one; in
/// place of a link there is a file from now on, which can be written again.
bool put_aside_owner(const std::filesystem::path& path) {
    const std::string spare = path.string() + kSpareSuffix;
    std::error_code error;
    if (!std::filesystem::is_symlink(path, error))
        return std::rename(path.c_str(), spare.c_str()) == 0;
    return unlink(path.c_str()) == 0 && write_new(spare, std::string(kOwnerBytes, ' ')).has_value();
}

std::array<std::int64_t, 2> read_offsets(const Json& value) {
    if (!value.is_array() || value.size() < 2) return {0, 0};
    if (!value[0].is_number_integer() || !value[1].is_number_integer()) return {0, 0};
    return {value[0].get<std::int64_t>(), value[1].get<std::int64_t>()};
}

}  // namespace

std::uint64_t new_serial() {
    return std::strtoull(random_hex(8).c_str(), nullptr, 16);
}

Result<void> AttemptFiles::create(const AttemptRecord& record) const {
    std::error_code error;
    std::filesystem::create_directory(directory_, error);
    if (error)
        return Error{Code::kInternalError,
                     "cannot create the folder '" + directory_.string() + "': " + error.message()};
    tuner::Lease lease = record.lease;
    lease.token.clear();
    lease.env.clear();
    const Json json = {{"serial", record.serial},
                       {"lease", tuner::to_json(lease)},
                       {"server_url", record.server_url},
                       {"finish_request_id", record.finish_request_id},
                       {"boot_id", record.boot_id},
                       {"began_ms", record.started_ms},
                       {"oom_kills", record.oom_kills},
                       {"cores", record.cores},
                       {"gpus", record.gpus}};
    TUNE_TRY_VOID(write_new(path(kAttemptFile), to_text(json)));
    if (!lease.gang) return {};
    const auto node = static_cast<std::size_t>(lease.gang->node);
    return write_new(path(kRanksFile),
                     ranks_file(lease, interface_of(lease.gang->nodes.at(node).address)));
}

Result<AttemptRecord> AttemptFiles::read_record() const {
    TUNE_TRY(text, read_file(path(kAttemptFile), kRecordBytesMax));
    TUNE_TRY(json, parse_json(text));
    if (!json.is_object() || !json.contains("lease"))
        return Error{Code::kDataLoss, "'" + path(kAttemptFile).string() + "' holds no lease"};
    AttemptRecord record;
    TUNE_TRY(lease, tuner::from_json<tuner::Lease>(json["lease"]));
    record.lease = std::move(lease);
    record.serial = field<std::uint64_t>(json, "serial", 0);
    record.server_url = field<std::string>(json, "server_url", "");
    record.finish_request_id = field<std::string>(json, "finish_request_id", "");
    record.boot_id = field<std::string>(json, "boot_id", "");
    record.started_ms = field<std::int64_t>(json, "began_ms", 0);
    record.oom_kills = field<std::int64_t>(json, "oom_kills", 0);
    for (const Json& core : json.value("cores", Json::array()))
        if (core.is_number_integer()) record.cores.push_back(core.get<int>());
    for (const Json& gpu : json.value("gpus", Json::array()))
        if (gpu.is_string()) record.gpus.push_back(gpu.get<std::string>());
    return record;
}

Result<void> AttemptFiles::write_intent(const IntentRecord& intent) const {
    const char* name = "none";
    for (const auto& [known, known_name] : kIntents)
        if (known == intent.intent) name = known_name;
    return replace(path(kIntentFile), to_text({{"intent", name}, {"reason", intent.reason}}));
}

IntentRecord AttemptFiles::read_intent() const {
    const Json json = read_object(path(kIntentFile));
    const auto name = field<std::string>(json, "intent", "none");
    IntentRecord record{Intent::kNone, field<std::string>(json, "reason", "")};
    for (const auto& [known, known_name] : kIntents)
        if (name == known_name) record.intent = known;
    return record;
}

Result<void> AttemptFiles::write_progress(const ProgressRecord& progress) const {
    Json sent = Json::array();
    for (const SentStretch& stretch : progress.sent)
        sent.push_back({{"end", stretch.end}, {"timestamp_ms", stretch.timestamp_ms}});
    Json steps = Json::object();
    for (const auto& [key, step] : progress.acknowledged.next_steps) steps[key] = step;
    return append_line(path(kProgressFile), to_text({{"acknowledged", progress.acknowledged.offset},
                                                     {"next_steps", std::move(steps)},
                                                     {"sent", std::move(sent)}}));
}

ProgressRecord AttemptFiles::read_progress() const {
    const Json json = read_last_object(path(kProgressFile));
    ProgressRecord progress;
    progress.acknowledged.offset = read_offsets(json.value("acknowledged", Json()));
    const Json steps = json.value("next_steps", Json::object());
    for (const auto& [key, step] : steps.items())
        if (step.is_number_integer())
            progress.acknowledged.next_steps[key] = step.get<std::int64_t>();
    for (const Json& item : json.value("sent", Json::array())) {
        if (!item.is_object()) continue;
        progress.sent.push_back({read_offsets(item.value("end", Json())),
                                 field<std::int64_t>(item, "timestamp_ms", 0)});
    }
    return progress;
}

std::optional<ExitRecord> AttemptFiles::read_exit() const {
    const Json json = read_object(path(kExitFile));
    if (!json.contains("exit_code")) return std::nullopt;
    ExitRecord record;
    record.exit_code = field(json, "exit_code", -1);
    record.signal = field(json, "signal", 0);
    record.failed_step = static_cast<StartStep>(field(json, "failed_step", 0));
    record.failed_errno = field(json, "failed_errno", 0);
    record.stopped = field(json, "stopped", false);
    record.timed_out = field(json, "timed_out", false);
    record.killed = field(json, "killed", false);
    record.swept = field(json, "swept", false);
    record.failed_rank = field(json, "failed_rank", -1);
    record.max_rss_kb = field<std::int64_t>(json, "max_rss_kb", 0);
    record.peak_kb = field<std::int64_t>(json, "peak_kb", 0);
    record.cpu_ms = field<std::int64_t>(json, "cpu_ms", 0);
    record.wall_ms = field<std::int64_t>(json, "wall_ms", 0);
    record.end_ms = field<std::int64_t>(json, "end_ms", 0);
    record.lost_bytes = {field<std::int64_t>(json, "stdout_lost", 0),
                         field<std::int64_t>(json, "stderr_lost", 0)};
    record.memory_peak = field<std::int64_t>(json, "memory_peak", 0);
    record.oom_kills = field<std::int64_t>(json, "oom_kills", -1);
    return record;
}

Result<Owner> AttemptFiles::read_or_take_ownership() const {
    const std::filesystem::path link = path(kOwnerLink);
    if (symlink(kOwnerAgent, link.c_str()) == 0) return Owner{};
    TUNE_TRY(text, owner_text(link));
    Owner owner;
    char* rest = nullptr;
    owner.pid = static_cast<int>(std::strtol(text.c_str(), &rest, 10));
    owner.start_time = std::strtoll(rest, nullptr, 10);
    return owner;  // kOwnerAgent reads as pid 0
}

void AttemptFiles::note(std::string_view text) const {
    std::string line = utc_text(SystemClock().now_ms(), "%FT%TZ ");
    line.append(text).push_back('\n');
    const UniqueFd file(
        open(path(kAgentLogFile).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    // A note that cannot be written (full disk) has no other place to go.
    if (file && write(file.get(), line.data(), line.size()) < 0) return;
}

void AttemptFiles::remove() const {
    for (const char* name : {kAttemptFile, kOwnerLink, kExitFile, kProgressFile, kIntentFile,
                             kStdoutFile, kStderrFile, kAgentLogFile, kRanksFile})
        unlink(path(name).c_str());
    if (rmdir(directory_.c_str()) == 0 || errno == ENOENT) return;
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

bool AttemptFiles::clear() const {
    bool is_clear = true;
    std::error_code error;
    for (const auto& item : std::filesystem::directory_iterator(directory_, error)) {
        const std::string name = item.path().filename();
        if (name == kAttemptFile || name == kArtifactFolder || name.ends_with(kSpareSuffix) ||
            name == kExitTemporary)
            continue;
        int failed = 0;
        if (name == kProgressFile)
            failed = truncate(item.path().c_str(), 1);  // the line feed that it begins with
        else if (name == kStdoutFile || name == kStderrFile)
            failed = truncate(item.path().c_str(), 0) != 0 ||
                     rename(item.path().c_str(), (item.path().string() + kSpareSuffix).c_str());
        else if (name == kOwnerLink)
            failed = put_aside_owner(item.path()) ? 0 : -1;
        else if (name == kExitFile)
            failed = rename(item.path().c_str(), path(kExitTemporary).c_str());
        else
            failed = unlink(item.path().c_str());
        is_clear = is_clear && failed == 0;
    }
    return is_clear && !error && std::filesystem::is_empty(path(kArtifactFolder), error) && !error;
}

std::string tail_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return {};
    const auto size = static_cast<std::size_t>(file.tellg());
    file.seekg(static_cast<std::streamoff>(size - std::min(size, kTailBytes)));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string current_boot_id() {
    Result<std::string> text = read_file("/proc/sys/kernel/random/boot_id");
    if (!text) return {};
    while (!text->empty() && text->back() == '\n') text->pop_back();
    return std::move(*text);
}

std::int64_t count_oom_kills() {
    for (const char* file : {"/sys/fs/cgroup/memory.events", "/proc/vmstat"}) {
        const Result<std::string> text = read_file(file);
        if (!text) continue;
        const std::size_t at = text->find("oom_kill ");
        if (at != std::string::npos) return std::strtoll(text->c_str() + at + 9, nullptr, 10);
    }
    return 0;
}

}  // namespace tune::worker
