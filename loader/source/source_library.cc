#include "loader/source/source_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

namespace tune::loader {
namespace {

std::filesystem::path own_folder() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(&library_function), &info) == 0 || !info.dli_fname)
        return {};
    std::error_code ignored;
    std::filesystem::path file = std::filesystem::canonical(info.dli_fname, ignored);
    // A program's own name may be relative to where it was started.
    if (ignored) file = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return file.parent_path();
}

void* open_library(const char* library, std::string& reason) {
    const std::filesystem::path folder = own_folder();
    for (const std::filesystem::path& path :
         {folder / library, folder / "../lib/tune" / library, std::filesystem::path(library)}) {
        std::error_code ignored;
        if (path.has_parent_path() && !std::filesystem::exists(path, ignored)) continue;
        if (void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
        // Of a file that is there, rather than of a name that is not.
        if (reason.empty()) reason = ::dlerror();
    }
    return nullptr;
}

/// What to do about a missing libarrow.so.2600: Arrow 26 comes with pyarrow 26.
std::string advice(const std::string& reason) {
    for (const std::string_view name : {"libarrow.so.", "libarrow_s3.so.", "libparquet.so."}) {
        const std::size_t at = reason.find(name);
        if (at == std::string::npos) continue;
        const std::size_t from = at + name.size();
        const std::size_t end = reason.find_first_not_of("0123456789", from);
        const std::string version = reason.substr(from, end - from);
        if (version.size() > 2)
            return "; install Arrow with: pip install 'pyarrow==" +
                   version.substr(0, version.size() - 2) + ".*'";
    }
    return {};
}

}  // namespace

Result<void*> library_function(const char* library, const char* function, const char* wanted_for) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, std::string>, void*> known;
    const std::lock_guard lock(mutex);
    void*& found = known[{library, function}];
    if (found) return found;
    std::string reason;
    void* const handle = open_library(library, reason);
    if (handle) found = ::dlsym(handle, function);
    if (found) return found;
    return Error{Code::kNotImplemented,
                 std::string(wanted_for) + " need the library " + library +
                     ", which cannot be loaded: " +
                     (handle ? "it is of another version" : reason + advice(reason))};
}

}  // namespace tune::loader
