#pragma once
// What users may hold at most. An administrator sets it; it lies in the store's documents, one a
// user, so that it outlives the server.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/store/store.h"
#include "tuner/study/placement/usage.h"

namespace tune::tuner {

inline constexpr const char* kQuotaCollection = "tune.quotas";
/// The quota of whoever has none of his own.
inline constexpr const char* kEverybody = "*";
/// Keeps the answer that lists them small.
inline constexpr std::size_t kQuotasMax = 10'000;
inline constexpr std::int64_t kQuotaGpusMax = 1'000'000;

/// Limits of one user over all of that user's studies; nothing: no limit.
struct Quota {
    std::string user = {};  ///< kEverybody: each user who has no other
    std::optional<std::int64_t> slots = {};
    std::optional<std::int64_t> gpus = {};
    std::optional<int> priority = {};  ///< studies that ask for a higher one get this one
};

/// Errors: kInvalidParameterValue naming the field.
[[nodiscard]] Result<void> check_quota(const Quota& quota);

/// Not thread-safe: part of what the lock of Studies guards.
class Quotas {
public:
    /// The user's own, else everybody's, else one without limits. O(log quotas).
    [[nodiscard]] const Quota& of(const std::string& user) const;
    [[nodiscard]] bool has(const std::string& user) const { return quotas_.contains(user); }
    [[nodiscard]] bool empty() const { return quotas_.empty(); }
    [[nodiscard]] bool is_full() const { return quotas_.size() >= kQuotasMax; }
    [[nodiscard]] std::vector<Quota> all() const;
    void set(const Quota& quota) { quotas_.insert_or_assign(quota.user, quota); }
    void remove(const std::string& user) { quotas_.erase(user); }
    /// Takes what is on disk. One that cannot be read is logged and left out.
    void load(const tracker::Document& document);

private:
    std::map<std::string, Quota> quotas_;
};

[[nodiscard]] tracker::Command put_quota_command(const Quota& quota);

/// Why `user`, who holds `held`, may not take `more`, as a sentence without a full stop; empty:
/// he may.
[[nodiscard]] std::string quota_obstacle(const Quota& quota, const std::string& user,
                                         const Usage& held, const Usage& more);

}  // namespace tune::tuner
