// What runs where and what waits, for whoever looks: `tune top`, GET queue. The one place that goes
// through all agents; nobody who starts or ends trials waits for more than this one pass under the
// lock.
//
// A waiting study has one reason, the first that applies, from what its owner can change (paused,
// its own limits) to what only others can (quotas, priorities, room). The reasons use the same
// functions as the scheduler, so that they cannot say something else than what it does.

#include "tuner/study/registry/broker/queue_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tune::tuner {

QueueView QueueReport::view(std::size_t agents_max) {
    const auto lock = lock_.take();
    attempts_.count_renewals();
    QueueView view;
    agents_.each([&](const Agent& agent) {
        if (view.agents.size() < agents_max)
            view.agents.push_back(view_of(agent));
        else
            ++view.agents_left_out;
    });
    for (const auto& [name, study] : book_.all()) {
        const bool is_over =
            study->state() == StudyState::kCompleted || study->state() == StudyState::kStopped;
        if (is_over && study->trials().running().empty()) continue;
        view.studies.push_back({.study = name,
                                .queued = study->trials().queued().size(),
                                .running = study->trials().running().size(),
                                .needs = study->needs().of_next(),
                                .user = study->definition().user(),
                                .priority = turns_.priority_of(*study),
                                .share = turns_.standing_of(*study).share,
                                .held = agents_.held_of(*study),
                                .waits_for = why_waiting(*study)});
    }
    add_users(view);
    return view;
}

void QueueReport::add_users(QueueView& view) const {
    std::map<std::string, std::optional<Quota>> users;
    for (const QueuedStudyView& study : view.studies) users.emplace(study.user, std::nullopt);
    for (const Quota& quota : turns_.quotas().all()) users[quota.user] = quota;
    for (auto& [user, quota] : users) {
        const Usage held = agents_.held_by_user(user);
        view.users.push_back({.user = user,
                              .share = dominant_share(held, agents_.capacity()),
                              .held = held,
                              .quota = std::move(quota)});
    }
}

AgentView QueueReport::view_of(const Agent& agent) {
    const std::string& id = agent.facts.agent_id;
    AgentView view{.agent_id = id,
                   .host = agent.facts.host,
                   .version = agent.facts.version,
                   .silent_ms = clock_.monotonic_ms() - agent.heard_ms,
                   .room = agent.room,
                   .gpus = agent.facts.devices,
                   .excluded = agent.facts.excluded,
                   .is_waiting = waiting_.has_lease_poll(id)};
    if (!backfill_.holds().on(id).empty())
        view.held_for = backfill_.holds().on(id).front()->study->name();
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
            lease.expires_in_ms = member.expires_ms - clock_.monotonic_ms();
        view.leases.push_back(std::move(lease));
    }
    std::sort(view.leases.begin(), view.leases.end(), [](const auto& a, const auto& b) {
        return std::tie(a.study, a.number) < std::tie(b.study, b.number);
    });
    return view;
}

std::string QueueReport::why_kept(const Hold& hold) const {
    const std::size_t kept = hold.agents.size();
    const std::string agents = std::to_string(kept) + (kept == 1 ? " is" : " are") + " kept for it";
    const int nodes = hold.shape.nodes;
    const std::string wanted =
        nodes == 1 ? "no agent has room for a trial; "
                   : "a trial runs on " + std::to_string(nodes) + " agents at once; ";
    if (!hold.is_preempting) return wanted + agents + " and get nothing else that delays it";
    return wanted + agents + ", where " + std::to_string(hold.preempted) +
           (hold.preempted == 1 ? " trial" : " trials") +
           " of lower priority were asked to end at their checkpoints";
}

std::string QueueReport::why_after(const Study& study, const Study& other) const {
    const Turns::Standing own = turns_.standing_of(study);
    const Turns::Standing before = turns_.standing_of(other);
    const std::string name = "study '" + other.name() + "' comes first: ";
    const auto percent = [](double share) {
        return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %";
    };
    if (own.priority != before.priority)
        return name + "its priority is " + std::to_string(before.priority) + ", not " +
               std::to_string(own.priority);
    if (before.user_share < own.user_share)
        return name + "user '" + other.definition().user() + "' holds " +
               percent(before.user_share) + " of the machines, user '" + study.definition().user() +
               "' " + percent(own.user_share);
    if (before.share < own.share)
        return name + "it holds " + percent(before.share) + " of the machines, this one " +
               percent(own.share);
    return {};
}

/// The first reason that there is.
std::string QueueReport::why_waiting(Study& study) {
    if (study.config().command.empty()) return "its clients ask for trials themselves";
    if (!options_.only_study.empty() && study.name() != options_.only_study)
        return "this server runs the study '" + options_.only_study + "' only";
    if (study.is_experiment_deleted()) return "its experiment was deleted";
    if (study.state() == StudyState::kPaused) return "it is paused";
    if (study.state() != StudyState::kRunning) return "it is over";
    if (phase_.draining) return "the server is stopping";
    if (writer_.error()) return "the server cannot write: " + writer_.error()->message;
    const auto parallel = study.config().budget.parallel;
    if (parallel && study.trials().running().size() >= static_cast<std::size_t>(*parallel))
        return "it runs as many trials at a time as it may (" + std::to_string(*parallel) + ")";
    if (!turns_.may_lease(study)) return "its budget starts no more trials";
    if (!study.attendance().obstacle.empty()) return study.attendance().obstacle;
    if (const std::string quota = turns_.quota_reason(study); !quota.empty()) return quota;
    for (const Hold& hold : backfill_.holds().all())
        if (hold.study == &study) return why_kept(hold);
    if (study.suggestions().is_suggesting() && study.trials().queued().empty())
        return "a point is being suggested";
    if (const Study* const other = backfill_.study_before(study))
        if (const std::string why = why_after(study, *other); !why.empty()) return why;
    if (!backfill_.holds().empty())
        return "no agent has room for a trial, or it is kept for study '" +
               backfill_.holds().all().front().study->name() + "'";
    return "no agent has room for a trial now";
}

}  // namespace tune::tuner
