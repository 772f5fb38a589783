// A URI in a foreign database may name any folder of this machine. Only what lies in a folder that
// the user allowed is read; the path is relative to that folder and is opened without links, so
// neither `..` nor a link leads out.

#include "tracker/transfer/source/local_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/text/percent.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/rooted_dir.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kCopyPieceBytes = 256u << 10;

/// "scheme" of "scheme:/..."; empty for a path.
std::string_view scheme_of(std::string_view uri) {
    const std::size_t colon = uri.find(':');
    const std::size_t slash = uri.find('/');
    if (colon == std::string_view::npos || colon < 2 || slash < colon) return {};
    return uri.substr(0, colon);
}

/// Whether `path` has a segment that leads up: nothing that MLflow writes has one.
bool leads_up(const std::filesystem::path& path) {
    for (const std::filesystem::path& part : path)
        if (part == "..") return true;
    return false;
}

/// The files of a folder and of those under it.
Result<void> collect(int folder, const std::string& prefix, int depth, SourceFiles& out) {
    TUNE_TRY(names, names_in(folder));
    for (const std::string& name : names) {
        struct stat status {};
        const std::string path = prefix.empty() ? name : prefix + "/" + name;
        if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISREG(status.st_mode)) {
            if (out.files.size() >= kSourceFilesMax)
                return Error{Code::kResourceExhausted,
                             "more than " + std::to_string(kSourceFilesMax) +
                                 " artifacts in one folder; import with --artifacts none"};
            out.files.push_back({path, static_cast<std::uint64_t>(status.st_size)});
        } else if (!S_ISDIR(status.st_mode) || depth >= static_cast<int>(kArtifactDepthMax)) {
            out.left_out.push_back(path);
        } else {
            const UniqueFd below = open_rooted(folder, name, O_RDONLY | O_DIRECTORY);
            if (!below) return disk_error(path, errno);
            TUNE_TRY_VOID(collect(below.get(), path, depth + 1, out));
        }
    }
    return {};
}

}  // namespace

void LocalFiles::allow(const std::filesystem::path& folder, bool is_proxied) {
    std::error_code missing;
    std::filesystem::path real = is_proxied ? std::filesystem::canonical(folder, missing)
                                            : std::filesystem::weakly_canonical(folder, missing);
    if (!missing) roots_.push_back({std::move(real), is_proxied});
}

LocalFiles::Found LocalFiles::find(std::string_view uri) const {
    constexpr std::string_view kProxied = "mlflow-artifacts:/";
    const std::string_view scheme = scheme_of(uri);
    if (scheme == "mlflow-artifacts") {
        std::string_view path = uri.substr(kProxied.size());
        // mlflow-artifacts://host/path names a server; its root is the one that we were given.
        if (path.starts_with('/')) path = path.substr(std::min(path.find('/', 1), path.size()));
        const std::filesystem::path relative =
            std::filesystem::path(path).relative_path().lexically_normal();
        if (leads_up(path)) return {SourceFiles::Place::kOutside, nullptr, {}};
        const Root* first = nullptr;
        for (const Root& root : roots_) {
            if (!root.is_proxied) continue;
            if (first == nullptr) first = &root;
            std::error_code ignored;
            if (std::filesystem::is_directory(root.path / relative, ignored))
                return {SourceFiles::Place::kHere, &root, relative.string()};
        }
        if (first == nullptr) return {SourceFiles::Place::kOutside, nullptr, {}};
        return {SourceFiles::Place::kHere, first, relative.string()};
    }
    if (!scheme.empty() && scheme != "file") return {SourceFiles::Place::kElsewhere, nullptr, {}};
    std::filesystem::path path(uri);
    if (scheme == "file") {
        std::string_view rest = uri.substr(5);
        if (rest.starts_with("//")) rest = rest.substr(std::min(rest.find('/', 2), rest.size()));
        path = percent_decode(rest);
    }
    if (leads_up(path)) return {SourceFiles::Place::kOutside, nullptr, {}};
    if (path.is_relative()) path = relative_to_ / path;
    path = path.lexically_normal();
    for (const Root& root : roots_) {
        const std::filesystem::path relative = path.lexically_relative(root.path);
        if (!relative.empty() && !leads_up(relative))
            return {SourceFiles::Place::kHere, &root, relative.string()};
    }
    return {SourceFiles::Place::kOutside, nullptr, {}};
}

Result<UniqueFd> LocalFiles::open_folder(const Found& found) const {
    const UniqueFd root(::open(found.root->path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root && is_missing(errno)) return UniqueFd();
    if (!root) return disk_error(found.root->path.string(), errno);
    const std::string relative = found.relative.empty() ? "." : found.relative;
    UniqueFd folder = open_rooted(root.get(), relative, O_RDONLY | O_DIRECTORY);
    if (!folder && !is_missing(errno)) return disk_error(found.relative, errno);
    return folder;
}

Result<SourceFiles> LocalFiles::list(std::string_view uri) const {
    const Found found = find(uri);
    SourceFiles files;
    files.place = found.place;
    if (found.root == nullptr) return files;
    TUNE_TRY(folder, open_folder(found));
    if (!folder) return files;
    TUNE_TRY_VOID(collect(folder.get(), "", 0, files));
    return files;
}

Result<UniqueFd> LocalFiles::open(std::string_view uri, const SourceFile& file) const {
    const Found found = find(uri);
    if (found.root == nullptr)
        return Error{Code::kPermissionDenied, "artifacts outside of the allowed folders"};
    TUNE_TRY(folder, open_folder(found));
    UniqueFd opened = open_rooted(folder.get(), file.path, O_RDONLY | O_NONBLOCK);
    if (!opened) return disk_error(file.path, errno);
    struct stat status {};
    if (::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return Error{Code::kDataLoss, "'" + file.path + "' is no file any more"};
    return opened;
}

Result<void> LocalFiles::read(std::string_view uri, const SourceFile& file,
                              const Source::Sink& sink) const {
    TUNE_TRY(opened, open(uri, file));
    std::string piece(kCopyPieceBytes, '\0');
    for (;;) {
        const ssize_t got = ::read(opened.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error(file.path, errno);
        if (got == 0) return {};
        TUNE_TRY_VOID(sink(std::string_view(piece).substr(0, static_cast<std::size_t>(got))));
    }
}

}  // namespace tune::tracker
