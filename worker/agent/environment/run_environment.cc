// Tags have MLflow's names where it has some (mlflow 3.17.2, mlflow/utils/mlflow_tags.py); its
// client sets them for runs that it makes, and a trial's run is made by us. Git is asked without
// locks, so that a user's own git beside it is not disturbed.

#include "worker/agent/environment/run_environment.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "base/crypto/digest.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/text/hex.h"
#include "base/text/uri.h"
#include "base/version.h"
#include "worker/agent/environment/command_output.h"

namespace tune::worker {
namespace {

constexpr std::size_t kTagBytesMax = 5'000;  // MLflow's own limit of a tag
constexpr std::size_t kDataMax = 10;
constexpr std::uintmax_t kWholeBytesMax = 64u << 20;
constexpr std::size_t kEndBytes = 1u << 20;
constexpr std::size_t kKnownMax = 1'000;
/// Git is asked again after so many times as long as it took: a large repository slows no trial.
constexpr std::int64_t kGitPart = 20;

/// Files that the loader reads; of other words of a command nobody knows whether they are data.
constexpr std::array<std::string_view, 13> kDataSuffixes = {
    ".csv", ".parquet", ".mds",  ".npy",         ".npz", ".jsonl",   ".arrow",
    ".tar", ".zip",     ".zstd", ".safetensors", ".h5",  ".tfrecord"};

/// Prints {"python": "3.11.2", "torch": "2.15.0", ...} of what is installed; imports none of it.
constexpr const char* kVersionsScript =
    "import json,platform\n"
    "from importlib import metadata as m\n"
    "v={'python':platform.python_version()}\n"
    "for n in ('mlflow','torch','numpy','tensorflow','jax','lightning','scikit-learn','xgboost',"
    "'lightgbm','transformers','keras','pandas'):\n"
    "  try: v[n]=m.version(n)\n"
    "  except Exception: pass\n"
    "print(json.dumps(v))";

std::string without_newline(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
}

std::optional<std::string> git(const std::string& folder, std::vector<std::string> words,
                               std::size_t bytes_max = 64u << 10) {
    std::vector<std::string> command = {"git", "--no-optional-locks", "-C", folder};
    command.insert(command.end(), words.begin(), words.end());
    std::optional<std::string> said = output_of(command, {.bytes_max = bytes_max});
    if (said && bytes_max <= 64u << 10) said = without_newline(*said);
    return said;
}

/// An address without the password that some people keep in it.
std::string without_login(const std::string& url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string::npos) return url;
    const std::size_t begin = scheme + 3;
    const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
    const Authority authority = split_authority(std::string_view(url).substr(begin, end - begin));
    if (!authority.has_user) return url;
    return url.substr(0, begin) + url.substr(begin + authority.user.size() + 1);
}

bool is_file(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string find_program(const std::string& name, const std::string& search_path,
                         const std::string& folder) {
    if (name.find('/') != std::string::npos)
        return (std::filesystem::path(folder) / name).lexically_normal();
    std::istringstream folders(search_path);
    for (std::string at; std::getline(folders, at, ':');)
        if (is_file(at + "/" + name)) return at + "/" + name;
    return {};
}

bool is_python(const std::string& program) {
    return std::filesystem::path(program).filename().string().starts_with("python");
}

/// The script of an interpreter, else the program.
std::string source_name(const std::vector<std::string>& command) {
    if (command.empty() || !is_python(command.front()))
        return command.empty() ? "" : command.front();
    for (std::size_t i = 1; i < command.size(); ++i) {
        if (command[i] == "-m" && i + 1 < command.size()) return command[i + 1];
        if (command[i] == "-c") break;
        if (!command[i].starts_with("-")) return command[i];
    }
    return command.front();
}

/// "size-changed" of what is there; empty: nothing is.
std::string stamp_of(const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return {};
    return std::to_string(info.st_size) + "-" + std::to_string(info.st_mtim.tv_sec) + "." +
           std::to_string(info.st_mtim.tv_nsec);
}

/// Of a large file both ends and the size stand for the rest.
std::string digest_of_file(const std::string& path) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    std::ifstream in(path, std::ios::binary);
    if (error || !in) return {};
    const bool is_whole = size <= kWholeBytesMax;
    Sha256 digest;
    std::string buffer(kEndBytes, '\0');
    std::uintmax_t left = is_whole ? size : 2 * kEndBytes;
    while (left > 0 && in) {
        if (!is_whole && left == kEndBytes)
            in.seekg(-static_cast<std::streamoff>(kEndBytes), std::ios::end);
        in.read(buffer.data(),
                static_cast<std::streamsize>(std::min<std::uintmax_t>(left, kEndBytes)));
        digest.update({buffer.data(), static_cast<std::size_t>(in.gcount())});
        left -= static_cast<std::uintmax_t>(in.gcount());
        if (in.gcount() == 0) break;
    }
    if (!is_whole) digest.update(std::to_string(size));
    const Sha256Bytes bytes = digest.finish();
    return (is_whole ? "sha256:" : "sha256-of-ends:") + hex_encode(bytes);
}

/// The file that says what data a word of a command names: itself, or the index of a folder of
/// shards. Empty: it names none.
std::string data_file(const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
        const std::filesystem::path index = path / "index.json";
        return is_file(index) ? index.string() : "";
    }
    const std::string name = path.string();
    const bool is_data =
        std::any_of(kDataSuffixes.begin(), kDataSuffixes.end(),
                    [&](std::string_view suffix) { return name.ends_with(suffix); });
    return is_data && is_file(name) ? name : "";
}

void add(RunEnvironment& environment, const char* key, std::string value) {
    if (value.empty()) return;
    if (value.size() > kTagBytesMax) value.resize(kTagBytesMax);
    environment.tags.emplace_back(key, std::move(value));
}

std::string platform_text() {
    utsname names{};
    if (uname(&names) != 0) return {};
    return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

std::string devices_text(const std::vector<GpuFacts>& gpus) {
    if (gpus.empty()) return {};
    Json list = Json::array();
    for (const GpuFacts& gpu : gpus) {
        Json one = {{"uuid", gpu.uuid}, {"bytes", gpu.bytes}};
        if (!gpu.name.empty()) one["name"] = gpu.name;
        if (!gpu.parent.empty()) one["parent"] = gpu.parent;
        list.push_back(std::move(one));
    }
    return to_text(list);
}

}  // namespace

EnvironmentCapture::~EnvironmentCapture() {
    stop();
}

void EnvironmentCapture::start() {
    thread_ = std::thread([this] { work(); });
}

void EnvironmentCapture::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void EnvironmentCapture::ask(EnvironmentQuestion question,
                             std::function<void(RunEnvironment)> done) {
    const std::lock_guard lock(mutex_);
    asked_.push_back({std::move(question), std::move(done)});
    changed_.notify_all();
}

void EnvironmentCapture::work() {
    while (true) {
        Asked asked;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !asked_.empty(); });
            if (stopping_) return;
            asked = std::move(asked_.front());
            asked_.pop_front();
        }
        asked.done(capture(asked.question));
    }
}

const EnvironmentCapture::Git& EnvironmentCapture::git_of(const std::string& folder) {
    const std::int64_t now_ms = SystemClock().monotonic_ms();
    if (git_.size() > kKnownMax) git_.clear();
    Git& known = git_[folder];
    if (known.read_ms != 0 && now_ms < known.until_ms) return known;
    known = ask_git(folder);
    const std::int64_t took_ms = SystemClock().monotonic_ms() - now_ms;
    known.read_ms = std::max<std::int64_t>(1, now_ms);
    known.until_ms = now_ms + std::max(kGitAge_ms, kGitPart * took_ms);
    return known;
}

EnvironmentCapture::Git EnvironmentCapture::ask_git(const std::string& folder) {
    Git known;
    const std::optional<std::string> commit = git(folder, {"rev-parse", "HEAD"});
    if (!commit || commit->empty()) return known;
    known.tags.emplace_back("mlflow.source.git.commit", *commit);
    const auto branch = git(folder, {"branch", "--show-current"});
    if (branch && !branch->empty()) known.tags.emplace_back("mlflow.source.git.branch", *branch);
    const auto url = git(folder, {"remote", "get-url", "origin"});
    if (url && !url->empty())
        known.tags.emplace_back("mlflow.source.git.repoURL", without_login(*url));
    known.diff =
        git(folder, {"diff", "--no-color", "--no-ext-diff", "HEAD"}, kDiffBytesMax).value_or("");
    known.tags.emplace_back("mlflow.source.git.dirty", known.diff.empty() ? "false" : "true");
    return known;
}

const std::string& EnvironmentCapture::versions_of(const std::string& python) {
    if (versions_.size() > kKnownMax) versions_.clear();
    const auto [known, is_new] = versions_.try_emplace(python + " " + stamp_of(python));
    if (is_new)
        known->second = without_newline(
            output_of({python, "-c", kVersionsScript}, {.timeout_ms = 10'000}).value_or(""));
    return known->second;
}

std::string EnvironmentCapture::digest_of(const std::string& path) {
    if (digests_.size() > kKnownMax) digests_.clear();
    const auto [known, is_new] = digests_.try_emplace(path + " " + stamp_of(path));
    if (is_new) known->second = digest_of_file(path);
    return known->second;
}

void EnvironmentCapture::add_data(const EnvironmentQuestion& question,
                                  RunEnvironment& environment) {
    Json data = Json::object();
    for (std::size_t i = 1; i < question.command.size() && data.size() < kDataMax; ++i) {
        const std::string& word = question.command[i];
        const std::size_t equals = word.starts_with("-") ? word.find('=') : std::string::npos;
        const std::string name = equals == std::string::npos ? word : word.substr(equals + 1);
        if (name.empty() || name.size() > 4096 || name.find('\0') != std::string::npos) continue;
        const std::string file = data_file(std::filesystem::path(question.working_dir) / name);
        if (!file.empty()) data[name] = digest_of(file);
    }
    if (!data.empty()) add(environment, "tune.data", to_text(data));
}

RunEnvironment EnvironmentCapture::capture(const EnvironmentQuestion& question) {
    RunEnvironment environment;
    std::error_code ignored;
    const std::string folder = question.working_dir.empty()
                                   ? std::filesystem::current_path(ignored).string()
                                   : question.working_dir;
    add(environment, "mlflow.source.name", source_name(question.command));
    add(environment, "mlflow.source.type", "LOCAL");
    const Git& git = git_of(folder);
    environment.tags.insert(environment.tags.end(), git.tags.begin(), git.tags.end());
    environment.diff = git.diff;
    add(environment, "tune.command", to_text(Json(question.command)));
    add(environment, "tune.platform", platform_text());
    add(environment, "tune.version", kVersion);
    const std::string program =
        question.command.empty()
            ? ""
            : find_program(question.command.front(), question.search_path, folder);
    if (is_python(program)) add(environment, "tune.python", versions_of(program));
    add(environment, "tune.devices", devices_text(question.gpus));
    if (!question.gpus.empty()) add(environment, "tune.gpu_driver", question.driver_version);
    add_data({.command = question.command, .working_dir = folder, .search_path = ""}, environment);
    return environment;
}

}  // namespace tune::worker
