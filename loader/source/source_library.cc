// Finds and loads the library of a kind of URL, beside this program or module, once a process. What
// is missing, the library itself or one that it needs, is said with what to install or build.

#include "loader/source/source_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
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

constexpr UrlKind web_kind(std::string_view scheme) {
    return {scheme, "libtune_http_source.so", "tune_open_http_source", nullptr};
}
constexpr UrlKind cloud_kind(std::string_view scheme) {
    return {scheme, "libtune_http_source.so", "tune_open_http_source", "tune_open_http_sink"};
}
constexpr UrlKind store_kind(std::string_view scheme) {
    return {scheme, "libtune_object_store.so", "tune_open_object_store", "tune_open_object_sink"};
}
constexpr std::array kUrlKinds = {
    web_kind("http"),    web_kind("https"),   web_kind("hf"),         web_kind("dbfs"),
    store_kind("s3"),    store_kind("s3a"),   store_kind("r2"),       store_kind("b2"),
    store_kind("oci"),   store_kind("cw"),    cloud_kind("gs"),       cloud_kind("gcs"),
    cloud_kind("az"),    cloud_kind("azure"), cloud_kind("azure-dl"), cloud_kind("abfs"),
    cloud_kind("abfss"), cloud_kind("hdfs"),  cloud_kind("webhdfs"),  cloud_kind("swebhdfs"),
};

bool has_value(const char* name) {
    const char* const value = std::getenv(name);
    return value && *value;
}

}  // namespace

Result<UrlKind> url_kind(std::string_view scheme, std::string_view url) {
    if ((scheme == "gs" || scheme == "gcs") && has_value("GCS_KEY") && has_value("GCS_SECRET"))
        return store_kind(scheme);
    if (scheme == "hdfs")
        if (const char* const driver = std::getenv("TUNE_HDFS_DRIVER"); driver && *driver) {
            if (std::string_view(driver) == "libhdfs") return store_kind(scheme);
            if (std::string_view(driver) != "webhdfs")
                return invalid_parameter("TUNE_HDFS_DRIVER is '" + std::string(driver) +
                                         "'; known are webhdfs and libhdfs");
        }
    std::string known = "a path, file";
    for (const UrlKind& kind : kUrlKinds) {
        if (kind.scheme == scheme) return kind;
        known += ", " + std::string(kind.scheme);
    }
    return invalid_parameter("the URL '" + std::string(url) +
                             "' is of an unknown kind; known are " + known);
}

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
