#include "tracker/curl/curl_library.h"

#include <dlfcn.h>

#include <memory>
#include <string>

namespace tune::tracker {
namespace {

Error missing(const std::string& what) {
    return {Code::kNotImplemented,
            "Webhooks and https:// need libcurl and OpenSSL, which cannot be loaded (" + what +
                "). Install Debian's libcurl4 package."};
}

class Loader {
public:
    explicit Loader(const char* file) : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) error_ = ::dlerror();
    }
    template <class Function>
    void find(Function& function, const char* name) {
        if (handle_ == nullptr) return;
        function = reinterpret_cast<Function>(::dlsym(handle_, name));
        if (function == nullptr) error_ = std::string("no function ") + name;
    }
    [[nodiscard]] const std::string& error() const { return error_; }

private:
    void* handle_;  // never closed: the library is used until the process ends
    std::string error_;
};

Result<CurlLibrary> load() {
    CurlLibrary library;
    decltype(&::curl_global_init) global_init = nullptr;
    Loader curl("libcurl.so.4");
    curl.find(global_init, "curl_global_init");
    curl.find(library.easy_init, "curl_easy_init");
    curl.find(library.easy_cleanup, "curl_easy_cleanup");
    curl.find(library.easy_setopt, "curl_easy_setopt");
    curl.find(library.easy_getinfo, "curl_easy_getinfo");
    curl.find(library.easy_strerror, "curl_easy_strerror");
    curl.find(library.slist_append, "curl_slist_append");
    curl.find(library.slist_free_all, "curl_slist_free_all");
    curl.find(library.multi_init, "curl_multi_init");
    curl.find(library.multi_cleanup, "curl_multi_cleanup");
    curl.find(library.multi_setopt, "curl_multi_setopt");
    curl.find(library.multi_add_handle, "curl_multi_add_handle");
    curl.find(library.multi_remove_handle, "curl_multi_remove_handle");
    curl.find(library.multi_perform, "curl_multi_perform");
    curl.find(library.multi_poll, "curl_multi_poll");
    curl.find(library.multi_wakeup, "curl_multi_wakeup");
    curl.find(library.multi_info_read, "curl_multi_info_read");
    if (!curl.error().empty()) return missing(curl.error());
    Loader crypto("libcrypto.so.3");
    crypto.find(library.hmac, "HMAC");
    crypto.find(library.sha256, "EVP_sha256");
    if (!crypto.error().empty()) return missing(crypto.error());
    if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return missing("curl_global_init failed");
    return library;
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::get() {
    static const Result<CurlLibrary> library = load();
    if (!library) return library.error();
    return &*library;
}

}  // namespace tune::tracker
