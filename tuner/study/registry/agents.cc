// The agents that called lately, and which trials each holds. Both are kept as they change: a
// change of one trial, or the look for who fell silent, is a few look-ups however many agents there
// are.

#include "tuner/study/registry/agents.h"

#include <algorithm>

#include "tuner/study/registry/timers.h"

namespace tune::tuner {
namespace {

/// An agent with a GPU for each slot gives one to each trial that asks for none.
int gpus_taken(const RegisterRequest& facts, int gpus) {
    const int here = static_cast<int>(facts.gpus.size());
    return gpus <= 0 && here > 0 && here >= facts.slots ? 1 : gpus;
}

std::string count_text(int count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

TrialNeeds needs_of(const Study& study) {
    const BudgetConfig& budget = study.config().budget;
    return {.cpus = budget.cpus_per_trial, .gpus = budget.gpus_per_trial};
}

Agent* Agents::find(const std::string& id) {
    const auto found = agents_.find(id);
    return found == agents_.end() ? nullptr : &found->second;
}

bool Agents::add(RegisterRequest facts, std::int64_t now_ms) {
    facts.slots = std::clamp(facts.slots, 0, kAgentSlotsMax);
    if (facts.gpus.size() > kAgentGpusMax) facts.gpus.resize(kAgentGpusMax);
    const bool is_new_kind = add_kind(facts);
    const auto [entry, is_new] = agents_.try_emplace(facts.agent_id);
    Agent& agent = entry->second;
    bool is_gone_kind = false;
    if (is_new)
        agent.place = by_silence_.insert(by_silence_.end(), facts.agent_id);
    else
        is_gone_kind = remove_kind(agent.facts);
    agent.facts = std::move(facts);
    heard(agent, now_ms);
    return is_new_kind || is_gone_kind;
}

Agents::Kind Agents::kind_of(const RegisterRequest& facts) {
    return {static_cast<int>(facts.gpus.size()), facts.cpus};
}

bool Agents::add_kind(const RegisterRequest& facts) {
    return facts.slots > 0 && kinds_[kind_of(facts)]++ == 0;
}

bool Agents::remove_kind(const RegisterRequest& facts) {
    const auto kind = kinds_.find(kind_of(facts));
    if (facts.slots <= 0 || kind == kinds_.end() || --kind->second > 0) return false;
    kinds_.erase(kind);
    return true;
}

void Agents::heard(Agent& agent, std::int64_t now_ms) {
    agent.heard_ms = now_ms;
    by_silence_.splice(by_silence_.end(), by_silence_, agent.place);
}

std::int64_t Agents::next_forgotten_ms() const {
    if (by_silence_.empty()) return Timers::kNever_ms;
    return agents_.at(by_silence_.front()).heard_ms + kAgentForgotten_ms;
}

bool Agents::forget_silent(std::int64_t now_ms) {
    bool is_kind_gone = false;
    while (next_forgotten_ms() <= now_ms) {
        const auto silent = agents_.find(by_silence_.front());
        is_kind_gone = remove_kind(silent->second.facts) || is_kind_gone;
        agents_.erase(silent);
        by_silence_.pop_front();
    }
    return is_kind_gone;
}

void Agents::follow(Study& study, Trial& trial) {
    const std::string holder =
        trial.state == TrialState::kRunning ? trial.progress->holder.agent_id : std::string();
    const auto known = holder_.find(&trial);
    if (known != holder_.end()) {
        if (known->second == holder) return;
        const auto before = held_.find(known->second);
        before->second.erase(trial.run_id);
        if (before->second.empty()) held_.erase(before);
        holder_.erase(known);
    }
    if (holder.empty()) return;
    holder_.emplace(&trial, holder);
    held_[holder].emplace(trial.run_id, TrialRef{&study, &trial});
}

std::map<std::string, TrialRef>* Agents::held_by(const std::string& id) {
    const auto found = held_.find(id);
    return found == held_.end() ? nullptr : &found->second;
}

int Agents::free_slots(const Agent& agent) {
    const auto* const held = held_by(agent.facts.agent_id);
    return agent.facts.slots - (held == nullptr ? 0 : static_cast<int>(held->size()));
}

bool Agents::fits(const Agent& agent, const TrialNeeds& needs) {
    const RegisterRequest& facts = agent.facts;
    int cores = facts.cpus;
    int gpus = static_cast<int>(facts.gpus.size());
    if (const auto* const held = held_by(facts.agent_id))
        for (const auto& [run_id, ref] : *held) {
            const TrialNeeds taken = needs_of(*ref.study);
            cores -= taken.cpus;
            gpus -= gpus_taken(facts, taken.gpus);
        }
    const int gpus_wanted = gpus_taken(facts, needs.gpus);
    return (needs.cpus <= 0 || needs.cpus <= cores) && (gpus_wanted <= 0 || gpus_wanted <= gpus);
}

bool Agents::can_serve(const TrialNeeds& needs) const {
    return std::any_of(kinds_.begin(), kinds_.end(), [&needs](const auto& kind) {
        return kind.first.first >= needs.gpus && kind.first.second >= needs.cpus;
    });
}

std::string Agents::obstacle(const TrialNeeds& needs) const {
    if (can_serve(needs)) return {};
    if (kinds_.empty()) return "no agent is registered; `tune agent` starts one";
    std::string wanted;
    if (needs.gpus > 0) wanted = count_text(needs.gpus, "GPU");
    if (needs.cpus > 0) wanted += (wanted.empty() ? "" : " and ") + count_text(needs.cpus, "core");
    const auto& [gpus, cores] = kinds_.rbegin()->first;  // most GPUs, then most cores
    return "no registered agent has the " + wanted + " that a trial needs; the largest has " +
           count_text(gpus, "GPU") + " and " + count_text(cores, "core");
}

}  // namespace tune::tuner
