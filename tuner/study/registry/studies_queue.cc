// What runs where and what waits, for whoever looks. The one place that goes through all agents.

#include <algorithm>

#include "tuner/options/duration.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {

QueueView Studies::Impl::queue(std::size_t agents_max) {
    const std::lock_guard<std::mutex> lock(mutex_);
    count_renewals();
    QueueView view;
    agents_.each([&](const Agent& agent) {
        if (view.agents.size() < agents_max)
            view.agents.push_back(view_of(agent));
        else
            ++view.agents_left_out;
    });
    for (const auto& [name, study] : studies_) {
        const bool is_over =
            study->state() == StudyState::kCompleted || study->state() == StudyState::kStopped;
        if (is_over && study->running().empty()) continue;
        view.studies.push_back({.study = name,
                                .queued = study->queued().size(),
                                .running = study->running().size(),
                                .needs = study->needs(),
                                .waits_for = why_waiting(*study)});
    }
    return view;
}

AgentView Studies::Impl::view_of(const Agent& agent) {
    const std::string& id = agent.facts.agent_id;
    AgentView view{.agent_id = id,
                   .host = agent.facts.host,
                   .version = agent.facts.version,
                   .silent_ms = monotonic_ms() - agent.heard_ms,
                   .room = agent.room,
                   .gpus = agent.facts.devices,
                   .is_waiting = lease_polls_.contains(id)};
    if (hold_ && hold_->agents.contains(id)) view.held_for = hold_->study->name();
    const auto* const held = agents_.held_by(id);
    if (held == nullptr) return view;
    for (const auto& [run_id, ref] : *held) {
        const Holder& holder = ref.trial->progress->holder;
        const Member& member = *holder.find_running(id);
        LeaseView lease{
            .study = ref.study->name(),
            .number = ref.trial->number,
            .attempt = ref.trial->attempt,
            .run_id = run_id,
            .part = member.part,
            .node = static_cast<int>(&member - holder.members.data()),
            .nodes = static_cast<int>(holder.members.size()),
            .is_ending = member.is_ending || ref.trial->progress->directive.has_value()};
        if (member.expires_ms != kNotHandedOut_ms)
            lease.expires_in_ms = member.expires_ms - monotonic_ms();
        view.leases.push_back(std::move(lease));
    }
    std::sort(view.leases.begin(), view.leases.end(), [](const auto& a, const auto& b) {
        return std::tie(a.study, a.number) < std::tie(b.study, b.number);
    });
    return view;
}

/// The first reason that there is.
std::string Studies::Impl::why_waiting(Study& study) {
    if (study.config().command.empty()) return "its clients ask for trials themselves";
    if (!options_.only_study.empty() && study.name() != options_.only_study)
        return "this server runs the study '" + options_.only_study + "' only";
    if (study.is_experiment_deleted()) return "its experiment was deleted";
    if (study.state() == StudyState::kPaused) return "it is paused";
    if (study.state() != StudyState::kRunning) return "it is over";
    if (draining_) return "the server is stopping";
    if (write_error_) return "the server cannot write: " + write_error_->message;
    const auto parallel = study.config().budget.parallel;
    if (parallel && study.running().size() >= static_cast<std::size_t>(*parallel))
        return "it runs as many trials at a time as it may (" + std::to_string(*parallel) + ")";
    if (!may_lease(study)) return "its budget starts no more trials";
    if (!study.obstacle().empty()) return study.obstacle();
    if (hold_ && hold_->study == &study)
        return "a trial runs on " + std::to_string(hold_->shape.nodes) + " agents at once; " +
               std::to_string(hold_->agents.size()) + " are kept for it, for " +
               duration_text(std::max<std::int64_t>(hold_->until_ms - monotonic_ms(), 0) / 1000 *
                             1000) +
               " more";
    if (study.is_suggesting() && study.queued().empty()) return "a point is being suggested";
    if (hold_)
        return "no agent has room for a trial, or it is kept for study '" + hold_->study->name() +
               "'";
    return "no agent has room for a trial now";
}

}  // namespace tune::tuner
