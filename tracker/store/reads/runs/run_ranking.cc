// A page wants the first `count` of perhaps 100,000 runs. Sorting all costs O(n log n) and memory
// for n; a heap costs a comparison of several keys a run. Here candidates gather until there are
// about four times as many as wanted, then nth_element drops those behind (amortised O(1) per run),
// and the values of the last one kept become a bound that refuses most later runs at once.
//
// Why nothing is lost: a run is dropped only when `count` others come before it by values and start
// time. Those that tie with the last one kept all stay, since only their ids, which are not in the
// columns, decide; cut() looks the ids up for groups of ties alone.

#include "tracker/store/reads/runs/run_ranking.h"

#include <algorithm>
#include <utility>

namespace tune::tracker {
namespace {

Result<void> sort_by_id(std::span<Candidate> ties, const LoadRunId& load) {
    std::vector<std::pair<std::string, Candidate>> named;
    for (const Candidate& one : ties) {
        TUNE_TRY(run_id, load(one.run_row));
        named.emplace_back(std::move(run_id), one);
    }
    std::sort(named.begin(), named.end(),
              [](const auto& a, const auto& b) { return compare_run_ids(a.first, b.first) < 0; });
    for (std::size_t i = 0; i < ties.size(); ++i) ties[i] = named[i].second;
    return {};
}

}  // namespace

void RunRanking::add(Candidate candidate, std::span<const double> values) {
    if (is_bound_ && compare(values, bound_values_) > 0) return;
    candidate.place = added_++;
    candidate.slot = candidates_.size();
    candidates_.push_back(candidate);
    values_.insert(values_.end(), values.begin(), values.end());
    if (candidates_.size() >= prune_size_) prune();
}

void RunRanking::clear() {
    candidates_.clear();
    values_.clear();
    is_bound_ = false;
}

Result<bool> RunRanking::cut(const LoadRunId& load) {
    if (candidates_.size() > count_) drop_those_behind();
    std::sort(candidates_.begin(), candidates_.end(),
              [this](const Candidate& a, const Candidate& b) { return is_before(a, b); });
    if (load != nullptr) {
        TUNE_TRY(is_sorted, sort_ties(load));
        if (!is_sorted) return false;
    }
    if (candidates_.size() > count_) candidates_.resize(count_);
    return true;
}

int RunRanking::compare_without_ids(const Candidate& a, const Candidate& b) const {
    const int by_values = compare(values_of(a), values_of(b));
    return by_values != 0 ? by_values : compare_start_times(a.start_time_ms, b.start_time_ms);
}

bool RunRanking::is_before(const Candidate& a, const Candidate& b) const {
    const int order = compare_without_ids(a, b);
    return order != 0 ? order < 0 : a.place < b.place;
}

/// Keeps the first `count`, and all that tie with the last of them: they compete for its place.
/// Returns that one. REQUIRES: more candidates.
Candidate RunRanking::drop_those_behind() {
    const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
    std::nth_element(candidates_.begin(), last, candidates_.end(),
                     [this](const Candidate& a, const Candidate& b) { return is_before(a, b); });
    const Candidate bound = *last;
    const auto end = std::partition(last + 1, candidates_.end(), [&](const Candidate& one) {
        return compare_without_ids(one, bound) == 0;
    });
    candidates_.erase(end, candidates_.end());
    return bound;
}

/// Between additions: what cannot come on the page any more makes room.
void RunRanking::prune() {
    const Candidate bound = drop_those_behind();
    bound_values_.assign(values_of(bound).begin(), values_of(bound).end());
    is_bound_ = true;
    std::vector<double> values;
    values.reserve(prune_size_ * keys_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        const auto own = values_of(candidates_[i]);
        values.insert(values.end(), own.begin(), own.end());
        candidates_[i].slot = i;
    }
    values_ = std::move(values);
    prune_size_ = std::max(prune_size_, 2 * candidates_.size());
}

/// False: more than kIdLookupsMax ids would have to be looked up.
Result<bool> RunRanking::sort_ties(const LoadRunId& load) {
    std::size_t lookups = 0;
    for (std::size_t i = 0; i < candidates_.size();) {
        std::size_t end = i + 1;
        while (end < candidates_.size() &&
               compare_without_ids(candidates_[i], candidates_[end]) == 0)
            ++end;
        if (end - i > 1) {
            lookups += end - i;
            if (lookups > kIdLookupsMax) return false;
            TUNE_TRY_VOID(sort_by_id(std::span(candidates_).subspan(i, end - i), load));
        }
        i = end;
    }
    return true;
}

}  // namespace tune::tracker
