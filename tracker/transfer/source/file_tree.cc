// A folder from elsewhere is untrusted input. Every path is opened relative to the root without
// following a link (open_rooted), and sizes and depths are bounded. What is neither a file nor a
// folder is not read but counted, so that the report of an import can name it.

#include "tracker/transfer/source/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "tracker/artifacts/rooted_dir.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;
/// Keys with slashes are folders; nobody nests them so deep.
constexpr int kDepthMax = 32;

Error at(const std::string& path, std::string text, Code code = Code::kDataLoss) {
    return {code, "'" + shown(path) + "': " + std::move(text)};
}

}  // namespace

Result<FileTree> FileTree::open(const std::filesystem::path& root) {
    std::error_code missing;
    std::filesystem::path real = std::filesystem::canonical(root, missing);
    UniqueFd folder(::open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (missing || !folder)
        return Error{Code::kResourceDoesNotExist,
                     "The folder '" + root.string() + "' cannot be read (" +
                         (missing ? missing.message() : std::strerror(errno)) + ")."};
    return FileTree(std::move(folder), std::move(real));
}

Result<std::vector<std::string>> FileTree::folders_in(const std::string& folder) {
    std::vector<std::string> folders;
    const UniqueFd opened = open_rooted(root_.get(), folder, O_RDONLY | O_DIRECTORY);
    if (!opened) {
        if (is_missing(errno)) return folders;
        return at(folder, std::strerror(errno), Code::kInternalError);
    }
    TUNE_TRY(names, names_in(opened.get()));
    for (std::string& name : names) {
        struct stat status {};
        if (::fstatat(opened.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISDIR(status.st_mode))
            folders.push_back(std::move(name));
        else if (!S_ISREG(status.st_mode))
            ++left_out_count_;
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

Result<void> FileTree::collect(const std::string& folder, const std::string& prefix, int depth,
                               std::vector<std::string>& paths) {
    const UniqueFd opened = open_rooted(root_.get(), folder, O_RDONLY | O_DIRECTORY);
    if (!opened) {
        if (is_missing(errno)) return {};
        return at(folder, std::strerror(errno), Code::kInternalError);
    }
    if (depth > kDepthMax) return at(folder, "folders are nested too deep");
    TUNE_TRY(names, names_in(opened.get()));
    for (const std::string& name : names) {
        struct stat status {};
        if (::fstatat(opened.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const std::string path = prefix.empty() ? name : prefix + "/" + name;
        if (S_ISREG(status.st_mode))
            paths.push_back(path);
        else if (S_ISDIR(status.st_mode))
            TUNE_TRY_VOID(collect(folder + "/" + name, path, depth + 1, paths));
        else
            ++left_out_count_;
    }
    return {};
}

Result<std::vector<std::string>> FileTree::files_in_tree(const std::string& folder) {
    std::vector<std::string> paths;
    TUNE_TRY_VOID(collect(folder, "", 0, paths));
    std::sort(paths.begin(), paths.end());
    return paths;
}

bool FileTree::has_file(const std::string& path) const {
    return static_cast<bool>(open_rooted(root_.get(), path, O_PATH));
}

Result<UniqueFd> FileTree::open_file(const std::string& path) const {
    UniqueFd file = open_rooted(root_.get(), path, O_RDONLY | O_NONBLOCK);
    if (!file)
        return at(path, std::strerror(errno),
                  is_missing(errno) ? Code::kDataLoss : Code::kInternalError);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return at(path, "it is no file");
    return file;
}

Result<std::string> FileTree::read(const std::string& path, std::size_t bytes_max) const {
    TUNE_TRY(file, open_file(path));
    std::string text;
    for (;;) {
        const std::size_t size = text.size();
        text.resize(size + std::min(kPieceBytes, bytes_max + 1 - size));
        const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return at(path, std::strerror(errno), Code::kInternalError);
        text.resize(size + static_cast<std::size_t>(got));
        if (got == 0) return text;
        if (text.size() > bytes_max)
            return at(path, "it is larger than " + std::to_string(bytes_max) + " bytes");
    }
}

Result<void> FileTree::for_each_line(const std::string& path, std::size_t line_bytes_max,
                                     const VisitLine& visit) const {
    TUNE_TRY(file, open_file(path));
    std::string buffer;
    std::int64_t number = 0;
    for (bool is_end = false; !is_end;) {
        const std::size_t kept = buffer.size();
        buffer.resize(kept + kPieceBytes);
        ssize_t got = 0;
        do {
            got = ::read(file.get(), buffer.data() + kept, kPieceBytes);
        } while (got < 0 && errno == EINTR);
        if (got < 0) return at(path, std::strerror(errno), Code::kInternalError);
        buffer.resize(kept + static_cast<std::size_t>(got));
        is_end = got == 0;
        std::size_t begin = 0;
        for (;;) {
            std::size_t end = buffer.find('\n', begin);
            if (end == std::string::npos && is_end && begin < buffer.size()) end = buffer.size();
            if (end == std::string::npos) break;
            ++number;
            TUNE_TRY_VOID(visit(std::string_view(buffer).substr(begin, end - begin), number));
            begin = std::min(end + 1, buffer.size());
        }
        buffer.erase(0, begin);
        if (buffer.size() > line_bytes_max)
            return at(path, "line " + std::to_string(number + 1) + " is longer than " +
                                std::to_string(line_bytes_max) + " bytes");
    }
    return {};
}

std::string FileTree::stamp(const std::string& path) const {
    const UniqueFd file = open_rooted(root_.get(), path, O_PATH);
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) return {};
    return std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
           std::to_string(status.st_mtim.tv_nsec);
}

}  // namespace tune::tracker
