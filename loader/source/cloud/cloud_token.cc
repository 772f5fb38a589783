#include "loader/source/cloud/cloud_token.h"

#include <algorithm>

namespace tune::loader {
namespace {

/// A token is renewed this long before it expires, so that none expires on its way.
constexpr double kRenewBefore_s = 300;

}  // namespace

Result<std::string> TokenKeeper::token() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (!text_.empty() && now < renewal_) return text_;
    TUNE_TRY(token, fetch_());
    if (token.text.empty())
        return Error{Code::kUnauthenticated, "the answer of the login holds no token"};
    text_ = std::move(token.text);
    const double kept_s = std::max(token.lives_s - kRenewBefore_s, token.lives_s / 2);
    renewal_ = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(std::min(kept_s, 1e8)));
    return text_;
}

}  // namespace tune::loader
