#include "loader/source/object_source.h"

namespace tune::loader {

bool is_object_path(std::string_view path) {
    if (path.starts_with('/') || path.find('\0') != std::string_view::npos) return false;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        if (path.substr(0, slash) == "..") return false;
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    }
    return true;
}

Result<std::string> read_object(const ObjectSource& source, std::string_view path,
                                std::size_t bytes_max) {
    TUNE_TRY(object, source.stat(path));
    if (object.bytes > bytes_max)
        return Error{Code::kResourceExhausted,
                     "'" + std::string(path) + "' of '" + source.url() + "' has " +
                         std::to_string(object.bytes) + " bytes, more than the " +
                         std::to_string(bytes_max) + " that are read at once"};
    std::string text(object.bytes, '\0');
    TUNE_TRY_VOID(source.read(object, 0, std::as_writable_bytes(std::span(text))));
    return text;
}

}  // namespace tune::loader
