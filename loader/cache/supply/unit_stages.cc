#include "loader/cache/supply/unit_stages.h"

namespace tune::loader {

void UnitStages::want(std::size_t unit, std::uint64_t batch) {
    State& state = units_[unit];
    state.last_batch = batch;
    if (state.stage != Stage::kIdle) return;
    state.first_batch = batch;
    wanted_.insert(unit);
    window_bytes_ += bytes_(unit);
    ++pending_;
    put_in_line(unit, Stage::kQueued);
}

void UnitStages::put_in_line(std::size_t unit, Stage stage) {
    units_[unit].stage = stage;
    no_room_.erase(unit);
    (stage == Stage::kQueued ? queued_ : absent_).insert({units_[unit].first_batch, unit});
}

std::optional<std::size_t> UnitStages::take(Line& line, Stage stage) {
    if (line.empty()) return {};
    const std::size_t unit = line.begin()->second;
    line.erase(line.begin());
    units_[unit].stage = stage;
    return unit;
}

std::optional<std::size_t> UnitStages::take_queued() {
    return take(queued_, Stage::kLooking);
}

std::optional<std::size_t> UnitStages::take_absent() {
    return take(absent_, Stage::kBusy);
}

void UnitStages::settle(std::size_t unit, Stage stage) {
    units_[unit].stage = stage;
    if (stage == Stage::kNoRoom)
        no_room_.insert(unit);
    else
        --pending_;
}

void UnitStages::retry_without_room(std::uint64_t before) {
    for (const std::size_t unit : std::vector<std::size_t>(no_room_.begin(), no_room_.end()))
        if (units_[unit].first_batch < before) put_in_line(unit, Stage::kAbsent);
}

Stage UnitStages::release(std::size_t unit) {
    State& state = units_[unit];
    queued_.erase({state.first_batch, unit});
    absent_.erase({state.first_batch, unit});
    no_room_.erase(unit);
    if (!has_come(unit)) --pending_;
    wanted_.erase(unit);
    window_bytes_ -= bytes_(unit);
    return std::exchange(state.stage, Stage::kIdle);
}

std::vector<std::size_t> UnitStages::passed(std::uint64_t first, bool keeps_ready) const {
    std::vector<std::size_t> units;
    for (const std::size_t unit : wanted_) {
        const bool may_stay = keeps_ready && stage(unit) == Stage::kReady;
        if (units_[unit].last_batch < first && !is_in_hand(unit) && !may_stay)
            units.push_back(unit);
    }
    return units;
}

std::vector<std::size_t> UnitStages::outstanding() const {
    std::vector<std::size_t> units;
    for (const std::size_t unit : wanted_)
        if (!is_in_hand(unit) && !is_here(unit)) units.push_back(unit);
    return units;
}

}  // namespace tune::loader
