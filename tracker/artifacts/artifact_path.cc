// A path must be safe in every reading: as it stands, decoded once more or several times, with
// backslashes as separators, on Windows. What is unsafe in any of them is refused, because proxies
// and clients decode at different points. The kernel checks again when the file is opened
// (rooted_dir.h).

#include "tracker/artifacts/artifact_path.h"

#include <cctype>

#include "base/text/percent.h"

namespace tune::tracker {
namespace {

/// Also between backslashes, which separate on a client's Windows.
bool has_parent_segment(std::string_view path) {
    while (true) {
        const std::size_t slash = path.find_first_of("/\\");
        if (path.substr(0, slash) == "..") return true;
        if (slash == std::string_view::npos) return false;
        path.remove_prefix(slash + 1);
    }
}

bool has_control_character(std::string_view path) {
    for (const char c : path)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
    return false;
}

bool is_absolute_on_windows(std::string_view path) {
    if (path.starts_with("\\\\")) return true;
    return path.size() >= 3 && std::isalpha(static_cast<unsigned char>(path[0])) != 0 &&
           path[1] == ':' && (path[2] == '\\' || path[2] == '/');
}

bool is_safe_as_it_stands(std::string_view path) {
    return path.find('#') == std::string_view::npos && !path.starts_with('/') &&
           !path.starts_with("file:") && !has_parent_segment(path) &&
           !has_control_character(path) && !is_absolute_on_windows(path);
}

bool is_safe_however_often_decoded(std::string_view path) {
    std::string form(path);
    for (;;) {
        if (!is_safe_as_it_stands(form)) return false;
        std::string next = percent_decode(form);
        if (next == form) return true;
        form = std::move(next);
    }
}

Error invalid_path() {
    return {Code::kInvalidParameterValue, "Invalid path"};
}

}  // namespace

Result<std::string> normal_artifact_path(std::string_view path) {
    if (path.size() > kArtifactPathBytesMax || !is_safe_however_often_decoded(path))
        return invalid_path();
    std::string out;
    std::size_t depth = 0;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view segment = path.substr(0, slash);
        path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
        if (segment.empty() || segment == ".") continue;
        if (segment.starts_with(kUploadPrefix) || ++depth > kArtifactDepthMax)
            return invalid_path();
        if (!out.empty()) out.push_back('/');
        out.append(segment);
    }
    // "./C:/a" and "./\\\\host" are absolute on Windows without their first segment.
    if (!is_safe_however_often_decoded(out)) return invalid_path();
    return out;
}

Result<std::string> artifact_file_path(std::string_view path) {
    TUNE_TRY(normal, normal_artifact_path(path));
    if (normal.empty() || path.ends_with('/'))
        return Error{Code::kInvalidParameterValue,
                     "Artifact path must include a filename (cannot end with '/')."};
    return normal;
}

std::string join_artifact_path(std::string_view base, std::string_view path) {
    std::string out(base);
    if (!base.empty() && !path.empty()) out.push_back('/');
    return out.append(path);
}

std::string_view artifact_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace tune::tracker
