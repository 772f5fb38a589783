#pragma once
// libcurl, loaded when the first webhook or https:// address needs it: linking it would cost every
// start of the program 6 ms and 6 MB, and most servers do not need it.

#include <curl/curl.h>

#include "base/result.h"

namespace tune::tracker {

/// The functions that are used, with the types of their headers.
struct CurlLibrary {
    decltype(&::curl_easy_init) easy_init = nullptr;
    decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
    decltype(&::curl_easy_setopt) easy_setopt = nullptr;
    decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
    decltype(&::curl_easy_strerror) easy_strerror = nullptr;
    decltype(&::curl_slist_append) slist_append = nullptr;
    decltype(&::curl_slist_free_all) slist_free_all = nullptr;
    decltype(&::curl_multi_init) multi_init = nullptr;
    decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
    decltype(&::curl_multi_setopt) multi_setopt = nullptr;
    decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
    decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
    decltype(&::curl_multi_perform) multi_perform = nullptr;
    decltype(&::curl_multi_poll) multi_poll = nullptr;
    decltype(&::curl_multi_wakeup) multi_wakeup = nullptr;
    decltype(&::curl_multi_info_read) multi_info_read = nullptr;

    /// Loads it at the first call, for the rest of the process; thread-safe. Errors:
    /// kNotImplemented naming the Debian package that is missing.
    [[nodiscard]] static Result<const CurlLibrary*> get();
};

/// Sets options of one handle; whether the library took each.
struct OptionSetter {
    const CurlLibrary& curl;
    CURL* easy;

    template <typename Value>
    bool operator()(CURLoption option, Value value) const {
        return curl.easy_setopt(easy, option, value) == CURLE_OK;
    }
};

}  // namespace tune::tracker
