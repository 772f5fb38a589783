// A token goes only where its server is: the announcement names the process, and while that lives
// nobody else can listen at its port. Files that other users could have written are not believed.

#include "tracker/client/local_servers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text/text.h"
#include "tracker/client/url_parts.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytesMax = 8192;

fs::path runtime_folder() {
    if (const char* named = std::getenv("TUNE_RUNTIME_DIR"); named != nullptr && *named != '\0')
        return named;
    return "/tmp/tune-" + std::to_string(::geteuid());
}

bool is_private(const fs::path& path, mode_t kind) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == kind &&
           status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

/// An address of this machine; a server that listens on all of them says 0.0.0.0 or ::.
bool is_here(const std::string& host) {
    return host == "localhost" || host == "::1" || host == "::" || host == "0.0.0.0" ||
           host.starts_with("127.");
}

bool is_same_host(const std::string& one, const std::string& other) {
    return one == other || (is_here(one) && is_here(other));
}

fs::path announcement_of(const UrlParts& url) {
    return runtime_folder() / ("server-" + url.port + ".json");
}

/// The attempt that this process belongs to, or empty.
std::string own_attempt() {
    const char* const attempt = std::getenv("TUNE_ATTEMPT");
    const char* const run_id = std::getenv("MLFLOW_RUN_ID");
    if (attempt == nullptr || run_id == nullptr) return {};
    return std::string(run_id) + "." + attempt;
}

struct Announced {
    std::string url;
    std::string data;
    pid_t pid = 0;
    std::string attempt;  // that the server was started in
};

std::optional<Announced> read_announcement(const fs::path& path) {
    if (!is_private(path.parent_path(), S_IFDIR)) return std::nullopt;
    const Result<std::string> text = read_file(path, kFileBytesMax);
    if (!text) return std::nullopt;
    const Result<Json> json = parse_json(*text);
    if (!json || !json->is_object()) return std::nullopt;
    for (const char* key : {"url", "data"})
        if (!json->contains(key) || !(*json)[key].is_string()) return std::nullopt;
    const bool has_attempt = json->contains("attempt") && (*json)["attempt"].is_string();
    const std::string attempt = has_attempt ? (*json)["attempt"].get<std::string>() : "";
    if (!json->contains("pid") || !(*json)["pid"].is_number_integer()) return std::nullopt;
    return Announced{(*json)["url"].get<std::string>(), (*json)["data"].get<std::string>(),
                     (*json)["pid"].get<pid_t>(), attempt};
}

std::string token_of(const fs::path& data) {
    const fs::path path = data / "token";
    if (!is_private(path, S_IFREG)) return {};
    const Result<std::string> text = read_file(path, kFileBytesMax);
    return text ? std::string(trimmed(*text)) : std::string();
}

/// Of the server at `url`, if it lives and this process may use it.
std::optional<Announced> find_announced(const std::string& url) {
    const Result<UrlParts> wanted = parse_url(url);
    if (!wanted) return std::nullopt;
    std::optional<Announced> announced = read_announcement(announcement_of(*wanted));
    if (!announced || announced->pid <= 0 || ::kill(announced->pid, 0) != 0) return std::nullopt;
    if (const std::string attempt = own_attempt();
        !attempt.empty() && announced->attempt != attempt)
        return std::nullopt;
    const Result<UrlParts> known = parse_url(announced->url);
    if (!known || known->is_tls != wanted->is_tls || known->port != wanted->port ||
        !is_same_host(known->host, wanted->host))
        return std::nullopt;
    return announced;
}

}  // namespace

Result<void> announce_server(const std::string& url, const fs::path& data) {
    TUNE_TRY(parts, parse_url(url));
    const fs::path folder = runtime_folder();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return Error{Code::kPermissionDenied,
                     "cannot make " + folder.string() + ": " + std::strerror(errno)};
    if (!is_private(folder, S_IFDIR))
        return Error{Code::kPermissionDenied,
                     folder.string() +
                         " must be a folder of yours that nobody else can enter "
                         "(chmod 700); name another with TUNE_RUNTIME_DIR"};
    std::error_code failed;
    const fs::path whole = fs::absolute(data, failed);
    return write_file_atomic(announcement_of(parts), to_text({{"url", url},
                                                              {"data", whole.string()},
                                                              {"pid", getpid()},
                                                              {"attempt", own_attempt()}}));
}

void withdraw_server(const std::string& url) {
    const Result<UrlParts> parts = parse_url(url);
    if (!parts) return;
    const std::optional<Announced> announced = read_announcement(announcement_of(*parts));
    if (!announced || announced->pid != getpid()) return;
    std::error_code ignored;
    fs::remove(announcement_of(*parts), ignored);
}

Result<std::string> read_token_file(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        return Error{Code::kResourceDoesNotExist,
                     "cannot read the token " + path.string() + ": " + std::strerror(errno)};
    // A secret that a cluster mounts belongs to root and may be shared with the group of the pod.
    const mode_t others = status.st_uid == ::geteuid() ? 077 : 007;
    if ((status.st_mode & others) != 0)
        return Error{Code::kPermissionDenied, "the token " + path.string() +
                                                  " can be read by others, who could start "
                                                  "programs with it: chmod 600 " +
                                                  path.string()};
    TUNE_TRY(text, read_file(path, kFileBytesMax));
    std::string token(trimmed(text));
    if (token.empty()) return invalid_parameter("the file " + path.string() + " holds no token");
    return token;
}

std::string local_authorization(const std::string& url) {
    if (const char* token = std::getenv("TUNE_TOKEN"); token != nullptr && *token != '\0')
        return std::string("Bearer ") + token;
    if (const char* file = std::getenv("TUNE_TOKEN_FILE"); file != nullptr && *file != '\0') {
        const Result<std::string> token = read_token_file(file);
        return token ? "Bearer " + *token : std::string();
    }
    const std::optional<Announced> announced = find_announced(url);
    if (!announced) return {};
    const std::string token = token_of(announced->data);
    return token.empty() ? token : "Bearer " + token;
}

std::optional<fs::path> data_of_local_server(const std::string& url) {
    const std::optional<Announced> announced = find_announced(url);
    return announced ? std::optional<fs::path>(announced->data) : std::nullopt;
}

}  // namespace tune::tracker
