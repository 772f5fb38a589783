#pragma once
// How a browser becomes the owner: a code that works once, in an address that was printed, is given
// for a cookie.

#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace tune::tracker {

/// Codes that were not used yet; the oldest is forgotten for one more.
inline constexpr std::size_t kPageCodesMax = 16;

/// Cookies hold a random number signed with the token, so that they outlast the server's process
/// and end with the token. Thread-safe; no call blocks.
class PageLogin {
public:
    /// `path`: the prefix of the server's paths, or empty. `is_https`: browsers send the cookie
    /// through TLS only.
    PageLogin(std::string token, std::string path, bool is_https = false);

    /// A code for one login.
    [[nodiscard]] std::string new_code();

    /// The value of Set-Cookie for whoever brings the code; empty for one that was used or never
    /// given.
    [[nodiscard]] std::string redeem(std::string_view code);

    /// Whether a Cookie header holds one of these cookies.
    [[nodiscard]] bool is_known(std::string_view cookies) const;

private:
    [[nodiscard]] std::string signature_of(std::string_view id) const;

    const std::string token_;
    const std::string path_;
    const bool is_https_;
    const std::string name_;
    std::mutex mutex_;
    std::deque<std::string> codes_;  // guarded by mutex_
};

}  // namespace tune::tracker
