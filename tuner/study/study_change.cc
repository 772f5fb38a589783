// Study: its states, and resuming with another configuration.
//
// What is derived from the configuration (sampler, pruner, budget watch) is dropped on a change and
// built again from the trials when it is next needed. An extended space starts a new epoch: the
// record of a trial names the epoch it was suggested in, so a replay asks the sampler of that time,
// and a trial that is read back is carried over into today's space epoch by epoch.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/study/journal/carry_over.h"
#include "tuner/study/study.h"

namespace tune::tuner {

void Study::set_state(StudyState state, std::string note) {
    state_ = state;
    note_ = std::move(note);
    end_ = StudyEnd::kNone;
}

void Study::restore_state(StudyState state, std::string note, std::int64_t started_ms) {
    set_state(state, std::move(note));
    started_ms_ = started_ms;
}

void Study::restore_end(StudyEnd end, std::vector<StudyEpoch> earlier) {
    end_ = end;
    earlier_ = std::move(earlier);
    // Positions of suggestions that came to nothing lie there too, and are not given again.
    if (!earlier_.empty()) log_position_ = std::max(log_position_, earlier_.back().until);
}

/// What was derived from the configuration is made anew when it is next needed.
void Study::forget_models() {
    sampler_.reset();
    sampler_knows_ = 0;
    changed_.clear();
    ++model_version_;
    exhausted_at_ = -1;
    next_at_ = -1;
    watch_.reset();
    known_.reset();
}

void Study::reconfigure(StudyConfig config) {
    config.sampler.seed = identity_.seed;
    const bool other_pruner = !(config.pruner == config_.pruner);
    const bool other_sampler =
        !(config.sampler == config_.sampler) || !(config.space == config_.space);
    if (other_sampler) {
        if (!trials_.empty()) earlier_.push_back({log_position_, config_.space, config_.sampler});
        forget_models();
    }
    watch_.reset();
    failures_.reset();
    // What it was born with was used at its birth.
    config.warm_start = std::move(config_.warm_start);
    config_ = std::move(config);
    shared_config_.reset();
    if (!other_pruner) return;
    pruner_.replace(make_pruner(config_.pruner, config_.metric.goal, config_.study),
                    !trials_.empty() && !config_.pruner.is_none());
}

Result<void> Study::extend_trial(const Point& point, const Point& fixed, const Space& to,
                                 Extension& extension) {
    const Space& from = extension.from;
    const auto misfit = [&](const Error& error) {
        return Error{Code::kResourceConflict, "trial " + std::to_string(extension.points.size()) +
                                                  " does not fit the new space: " + error.message};
    };
    Result<Point> carried = carry_over(from, point, to);
    if (!carried) return misfit(carried.error());
    const Result<void> kept = check_kept(from, point, to, *carried);
    if (!kept) return misfit(kept.error());
    extension.points.push_back(std::move(*carried));
    extension.fixed.push_back(
        fixed.empty() ? Point()
                      : to.point_from_json(from.to_json(fixed)).value_or(to.empty_point()));
    return {};
}

Result<void> Study::extend(StudyConfig config, Extension begun) {
    if (begun.from != config_.space || begun.points.size() > trials_.size())
        begun = {.from = config_.space};
    for (std::size_t number = begun.points.size(); number < trials_.size(); ++number)
        TUNE_TRY_VOID(
            extend_trial(trials_[number].point, trials_[number].fixed, config.space, begun));
    reconfigure(std::move(config));
    for (Trial& trial : trials_) {
        trial.point = std::move(begun.points[trial.number]);
        trial.fixed = std::move(begun.fixed[trial.number]);
        trial.epoch = static_cast<int>(earlier_.size());
    }
    return {};
}

Result<void> Study::bring_up(Trial& trial) const {
    const auto now = earlier_.size();
    for (auto epoch = static_cast<std::size_t>(trial.epoch); epoch < now; ++epoch) {
        const Space& from = earlier_[epoch].space;
        const Space& to = epoch + 1 < now ? earlier_[epoch + 1].space : config_.space;
        if (from == to) continue;
        TUNE_TRY_VOID(from.check(trial.point));
        TUNE_TRY(point, carry_over(from, trial.point, to));
        trial.point = std::move(point);
        if (trial.fixed.empty()) continue;
        const Result<Point> fixed = to.point_from_json(from.to_json(trial.fixed));
        trial.fixed = fixed ? *fixed : to.empty_point();
    }
    trial.epoch = static_cast<int>(now);
    return config_.space.check(trial.point);
}

}  // namespace tune::tuner
