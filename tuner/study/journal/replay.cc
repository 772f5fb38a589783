// The journal has, for each trial, the log positions of its suggestion and of its end. Replay sorts
// these events, feeds the ends to a fresh sampler and asks it again at each suggestion: it then
// knows exactly what it knew at the time, whatever ran in parallel. When the space or the sampler
// was changed, a new epoch starts with a new sampler that observes everything before, as the study
// did.

#include "tuner/study/journal/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/study/journal/carry_over.h"

namespace tune::tuner {
namespace {

struct Event {
    std::int64_t position = 0;
    const Trial* trial = nullptr;
    bool is_end = false;
};

bool is_same(double a, double b) {
    const bool both_inactive = !is_active(a) && !is_active(b);
    return both_inactive || std::memcmp(&a, &b, sizeof a) == 0;
}

/// One step of a float's grid, which earlier versions recorded with another last digit.
bool is_same_step(const Parameter& parameter, double a, double b) {
    return parameter.kind == Kind::kFloat && std::abs(a - b) <= 1e-9 * parameter.step;
}

/// As a number for the report; inactive without one.
double parent_of(const std::optional<Origin>& origin) {
    return origin && origin->parent ? static_cast<double>(*origin->parent) : kInactive;
}

class Replayer {
public:
    Replayer(const Study& study, const std::vector<Trial>& trials) : study_(study) {
        for (const StudyEpoch& epoch : study.definition().earlier()) epochs_.push_back(epoch);
        epochs_.push_back({std::numeric_limits<std::int64_t>::max(), study.config().space,
                           study.config().sampler});
        for (const Trial& trial : trials) {
            events_.push_back({trial.asked_at, &trial, false});
            if (is_ended(trial.state)) events_.push_back({trial.ended_at, &trial, true});
        }
        std::stable_sort(events_.begin(), events_.end(),
                         [](const Event& a, const Event& b) { return a.position < b.position; });
    }

    Result<ReplayReport> run(const std::function<bool()>& is_cancelled) {
        for (std::size_t i = 0; i < events_.size(); ++i) {
            if (is_cancelled()) {
                report_.is_whole = false;
                break;
            }
            while (epoch_ < epochs_.size() && events_[i].position > epochs_[epoch_].until) {
                ++epoch_;
                sampler_.reset();
            }
            if (!sampler_) TUNE_TRY_VOID(begin_epoch(i));
            const Event& event = events_[i];
            if (!event.is_end) TUNE_TRY_VOID(compare(*event.trial));
            TUNE_TRY_VOID(observe(event));
        }
        return report_;
    }

private:
    [[nodiscard]] const Space& space() const { return epochs_[epoch_].space; }

    /// A sampler that has observed all that happened before the event of this index.
    Result<void> begin_epoch(std::size_t before) {
        sampler_ = study_.definition().new_sampler(space(), epochs_[epoch_].sampler);
        for (std::size_t i = 0; i < before; ++i) TUNE_TRY_VOID(observe(events_[i]));
        return {};
    }

    /// The trial's point in the space of this epoch, as the study had it then.
    Result<Point> point_of(const Trial& trial) const {
        Point point = trial.point;
        auto at = static_cast<std::size_t>(trial.epoch);
        if (at >= epochs_.size())
            return Error{Code::kDataLoss, "trial " + std::to_string(trial.number) +
                                              " is of a space that the study never had"};
        for (; at < epoch_; ++at) {
            if (epochs_[at].space == epochs_[at + 1].space) continue;
            TUNE_TRY(next, carry_over(epochs_[at].space, point, epochs_[at + 1].space));
            point = std::move(next);
        }
        for (; at > epoch_; --at) {
            if (epochs_[at].space == epochs_[at - 1].space) continue;
            TUNE_TRY(next, carry_over(epochs_[at].space, point, epochs_[at - 1].space));
            point = std::move(next);
        }
        return point;
    }

    /// What was given of the trial, in the space of this epoch.
    Result<Point> fixed_of(const Trial& trial) const {
        if (trial.fixed.empty()) return Point();
        const Space& own = epochs_.at(static_cast<std::size_t>(trial.epoch)).space;
        if (own == space()) return trial.fixed;
        Point fixed = space().empty_point();
        for (std::size_t i = 0; i < own.size(); ++i) {
            const auto index = space().find(own[i].name);
            if (!index || !is_active(trial.fixed[i])) continue;
            TUNE_TRY(value, space()[*index].internal(own[i].external(trial.fixed[i])));
            fixed[*index] = value;
        }
        return fixed;
    }

    Result<void> compare(const Trial& trial) {
        TUNE_TRY(point, point_of(trial));
        TUNE_TRY(fixed, fixed_of(trial));
        if (trial.is_redrawn) {
            ++report_.redrawn;
            return {};
        }
        bool is_all_given = !fixed.empty();
        for (std::size_t i = 0; i < fixed.size(); ++i)
            is_all_given = is_all_given && (is_active(fixed[i]) || !is_active(point[i]));
        const bool is_continued = trial.origin.has_value();
        if (is_all_given && !is_continued) {
            ++report_.given;
            return {};
        }
        ++report_.compared;
        const Point again = sampler_->suggest(trial.number, fixed);
        bool differs = false;
        for (std::size_t i = 0; i < point.size(); ++i) {
            if (is_same(point[i], again[i]) || is_same_step(space()[i], point[i], again[i]))
                continue;
            differs = true;
            if (report_.differences.size() < kReplayDifferencesMax)
                report_.differences.push_back({trial.number, space()[i].name, point[i], again[i]});
        }
        if (const auto origin = sampler_->origin(trial.number); origin != trial.origin) {
            differs = true;
            if (report_.differences.size() < kReplayDifferencesMax)
                report_.differences.push_back(
                    {trial.number, "parent", parent_of(trial.origin), parent_of(origin)});
        }
        if (differs) ++report_.differing;
        return {};
    }

    Result<void> observe(const Event& event) {
        Observation seen = observation_of(*event.trial, study_.config());
        if (!event.is_end) {
            seen = Observation();
            seen.number = event.trial->number;
            seen.origin = event.trial->origin;
        }
        TUNE_TRY(point, point_of(*event.trial));
        seen.point = std::move(point);
        return sampler_->observe(seen);
    }

    const Study& study_;
    std::vector<StudyEpoch> epochs_;
    std::vector<Event> events_;
    std::size_t epoch_ = 0;
    std::unique_ptr<Sampler> sampler_;
    ReplayReport report_;
};

}  // namespace

Result<ReplayReport> replay(const Study& study, const std::vector<Trial>& trials,
                            const std::function<bool()>& is_cancelled) {
    return Replayer(study, trials).run(is_cancelled);
}

}  // namespace tune::tuner
