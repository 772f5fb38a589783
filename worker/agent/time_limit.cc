#include "worker/agent/time_limit.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tune::worker {
namespace {

/// For what is to be delivered after the trials have ended, of logs above all.
constexpr std::int64_t kDelivery_ms = 10'000;
constexpr std::int64_t kDeliveryPart = 10;  // of the limit, at most
constexpr std::int64_t kNever_ms = std::numeric_limits<std::int64_t>::max();

}  // namespace

void TrialDurations::add(const std::string& study, std::int64_t wall_ms) {
    if (durations_.size() >= kStudiesMax && !durations_.contains(study)) durations_.clear();
    std::deque<std::int64_t>& known = durations_[study];
    known.push_back(wall_ms);
    if (known.size() > kPerStudyMax) known.pop_front();
}

std::int64_t TrialDurations::expected_ms() const {
    std::int64_t longest = 0;
    for (const auto& [study, known] : durations_) {
        std::vector<std::int64_t> sorted(known.begin(), known.end());
        std::sort(sorted.begin(), sorted.end());
        const std::size_t rank = (sorted.size() * 9 + 9) / 10;  // at least one
        longest = std::max(longest, sorted[rank - 1]);
    }
    return longest;
}

std::int64_t TimeLimit::stop_ms(std::int64_t grace_ms) const {
    if (limit_ms <= 0) return kNever_ms;
    const std::int64_t delivery_ms = std::min(kDelivery_ms, limit_ms / kDeliveryPart);
    return std::max(begin_ms, begin_ms + limit_ms - delivery_ms - grace_ms);
}

std::int64_t TimeLimit::last_lease_ms(std::int64_t expected_ms, std::int64_t grace_ms) const {
    if (limit_ms <= 0) return kNever_ms;
    // A trial that ends by itself needs no grace time.
    const std::int64_t last = stop_ms(0) - expected_ms;
    return std::max(begin_ms, expected_ms > 0 ? last : stop_ms(grace_ms));
}

}  // namespace tune::worker
