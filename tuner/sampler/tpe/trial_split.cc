#include "tuner/sampler/tpe/trial_split.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kGoodMax = 25;

}  // namespace

Rank rank_of(const Observation& observation, Goal goal) {
    const double sign = goal == Goal::kMinimize ? 1 : -1;
    Rank rank;
    rank.number = observation.number;
    if (observation.state == Observation::State::kComplete && observation.violation > 0) {
        rank.tier = 3;
        rank.first = observation.violation;
        return rank;
    }
    if (observation.state == Observation::State::kComplete) {
        rank.first = sign * observation.value;
        return rank;
    }
    TUNE_CHECK(observation.state == Observation::State::kPruned,
               "only finished trials have a rank");
    if (!observation.last_step) {
        rank.tier = 2;
        return rank;
    }
    rank.tier = 1;
    rank.first = -static_cast<double>(*observation.last_step);
    rank.second = std::isnan(observation.last_value) ? std::numeric_limits<double>::infinity()
                                                     : sign * observation.last_value;
    return rank;
}

std::size_t good_count(std::size_t finished) {
    return std::min((finished + 9) / 10, kGoodMax);
}

std::size_t root_good_count(std::size_t finished) {
    const double count = std::ceil(std::sqrt(static_cast<double>(finished)) / 4);
    return static_cast<std::size_t>(std::min(count, static_cast<double>(kGoodMax)));
}

void Ranking::insert(const Rank& rank) {
    ranks_.insert(std::lower_bound(ranks_.begin(), ranks_.end(), rank), rank);
}

void Ranking::erase(const Rank& rank) {
    const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    TUNE_CHECK(at != ranks_.end() && *at == rank, "the trial is not ranked");
    ranks_.erase(at);
}

std::vector<std::uint64_t> Ranking::good() const {
    std::vector<std::uint64_t> numbers(good_count(ranks_.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = ranks_[i].number;
    return numbers;
}

}  // namespace tune::tuner
