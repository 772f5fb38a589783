#include "tuner/sampler/tpe/pareto_split.h"

#include <algorithm>

#include "tuner/sampler/nsga/hypervolume.h"

namespace tune::tuner {

void ParetoSplit::insert(const Observation& observation) {
    Finished finished;
    finished.is_ranked =
        observation.state == Observation::State::kComplete && observation.violation <= 0;
    if (finished.is_ranked) finished.losses = losses_of(observation, objectives_);
    finished.rank = rank_of(observation, objectives_.goals.front());
    finished_[observation.number] = std::move(finished);
    is_stale_ = true;
}

void ParetoSplit::erase(std::uint64_t number) {
    if (finished_.erase(number) > 0) is_stale_ = true;
}

const std::vector<std::uint64_t>& ParetoSplit::good() {
    if (!is_stale_) return good_;
    is_stale_ = false;
    good_.clear();
    const std::size_t quota = (finished_.size() + 9) / 10;
    LossTable losses(objectives_.goals.size());
    std::vector<std::uint64_t> ranked;
    std::vector<Rank> others;
    for (const auto& [number, finished] : finished_) {
        if (!finished.is_ranked) {
            others.push_back(finished.rank);
            continue;
        }
        ranked.push_back(number);
        losses.add(finished.losses);
    }
    choose_ranked(std::move(ranked), losses, std::min(quota, losses.rows()));
    std::sort(others.begin(), others.end());
    for (std::size_t i = 0; good_.size() < quota && i < others.size(); ++i)
        good_.push_back(others[i].number);
    std::sort(good_.begin(), good_.end());
    return good_;
}

void ParetoSplit::choose_ranked(std::vector<std::uint64_t> numbers, const LossTable& losses,
                                std::size_t quota) {
    if (quota == numbers.size()) {
        good_ = std::move(numbers);
        return;
    }
    const std::vector<std::size_t> ranks = domination_ranks(losses, quota);
    std::vector<std::size_t> counts;
    for (const std::size_t rank : ranks) {
        if (rank >= counts.size()) counts.resize(rank + 1, 0);
        ++counts[rank];
    }
    std::size_t whole = 0;  // so many ranks fit as they are
    std::size_t taken = 0;
    while (whole < counts.size() && taken + counts[whole] <= quota) taken += counts[whole++];
    LossTable last(losses.columns());
    std::vector<std::uint64_t> last_numbers;
    for (std::size_t row = 0; row < ranks.size(); ++row) {
        if (ranks[row] < whole) good_.push_back(numbers[row]);
        if (ranks[row] != whole) continue;
        last.add(losses[row]);
        last_numbers.push_back(numbers[row]);
    }
    if (taken == quota) return;
    for (const std::size_t row : select_by_hypervolume(last, reference_point(last), quota - taken))
        good_.push_back(last_numbers[row]);
}

}  // namespace tune::tuner
