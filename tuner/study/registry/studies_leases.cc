// Which agent gets which trial. A poll is answered with as many trials as the agent has places;
// while one of them is only being suggested, others go on. A poll for which there is nothing waits.

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tuner/config/command_template.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/registry/studies_impl.h"
#include "tuner/study/trial/lineage.h"

namespace tune::tuner {
namespace {

/// How long a poll that has a trial already waits for the suggestion of another.
constexpr std::int64_t kGatherMax_ms = 200;
/// Trials of one answer; the agent asks again at once.
constexpr std::size_t kGrantMax = kAgentSlotsMax;

/// What the command of population based training needs to know.
void add_origin(const Study& study, const Trial& trial, Lease& lease) {
    const std::optional<Steps> steps = steps_of(study, trial);
    if (!steps) return;
    lease.env.push_back({"TUNE_STEP_FROM", std::to_string(steps->from)});
    lease.env.push_back({"TUNE_STEP_TO", std::to_string(steps->to)});
    if (!trial.origin->parent) return;
    lease.env.push_back({"TUNE_PARENT", std::to_string(*trial.origin->parent)});
    lease.resume_from = trial_key(study.identity(), *trial.origin->parent);
    if (const Trial* parent = study.find(*trial.origin->parent))
        lease.resume_run_id = parent->run_id;
}

}  // namespace

Lease Studies::Impl::make_lease(const Study& study, const Trial& trial,
                                const Member& member) const {
    const StudyConfig& config = study.config();
    Lease lease;
    lease.study = study.name();
    lease.number = static_cast<std::int64_t>(trial.number);
    lease.attempt = trial.attempt;
    lease.run_id = trial.run_id;
    lease.experiment_id = std::to_string(study.identity().experiment_id);
    lease.params_json = to_text(config.space.to_json(trial.point));
    lease.seed = study.trial_seed(trial.number);
    lease.command = fill_command(config.command, config.space, trial.point,
                                 {.study = study.name(),
                                  .trial = trial.number,
                                  .attempt = trial.attempt,
                                  .run_id = trial.run_id,
                                  .seed = lease.seed});
    for (const auto& [name, value] : config.env) lease.env.push_back({name, value});
    lease.working_dir = config.working_dir;
    lease.checkpoint_dir = trial_key(study.identity(), trial.number);
    lease.checkpoints = config.checkpoints;
    lease.is_continued = trial.origin.has_value();
    add_origin(study, trial, lease);
    lease.grace_ms = config.grace_ms;
    lease.timeout_ms = config.timeout_ms.value_or(0);
    lease.metric = config.metric.name;
    for (const ScrapeConfig& scrape : config.scrape)
        lease.scrape.push_back({scrape.name, scrape.pattern});
    lease.log_rules = config.log_rules;
    lease.cpus_per_trial = member.part.cores;
    lease.gpus_per_trial = static_cast<double>(member.part.gpus.size());
    lease.devices = member.part.gpus;
    lease.memory_bytes = member.part.memory_bytes;
    if (!member.part.pool.empty())
        lease.pool = PoolPlace{.name = member.part.pool, .size = member.part.pool_size};
    const Holder& holder = trial.progress->holder;
    if (!holder.is_gang() && member.part.nproc == 1) return lease;
    Gang gang{.nproc = member.part.nproc,
              .node = static_cast<int>(&member - holder.members.data())};
    for (const Member& one : holder.members) gang.nodes.push_back(one.node);
    lease.gang = std::move(gang);
    return lease;
}

/// Whether the study's commands log in themselves: a client sends only one credential.
bool Studies::Impl::logs_in(const Study& study) {
    const auto& env = study.config().env;
    return std::any_of(env.begin(), env.end(), [](const auto& variable) {
        return variable.first == "MLFLOW_TRACKING_TOKEN" ||
               variable.first == "MLFLOW_TRACKING_USERNAME" ||
               variable.first == "MLFLOW_TRACKING_AUTH";
    });
}

// --- polls ---------------------------------------------------------------------------------------

void Studies::Impl::lease(const std::string& agent_id, LeaseRequest request,
                          Done<LeaseReply> done) {
    LockedBatch locked(lock_);
    Agent* const agent = agents_.find(agent_id);
    if (agent == nullptr) return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    agents_.heard(*agent, monotonic_ms());
    LeasePoll poll{.agent_id = agent_id,
                   .request = std::move(request),
                   .deadline_ms = 0,
                   .done = std::move(done)};
    poll.deadline_ms = monotonic_ms() + poll_wait_ms(poll.request.wait_ms);
    begin_lease_poll(locked, std::move(poll));
}

void Studies::Impl::begin_lease_poll(LockedBatch& locked, LeasePoll poll) {
    // One poll an agent: an older one belongs to a connection that is gone.
    const auto older = granting_.find(poll.agent_id);
    if (older != granting_.end()) {
        Granting& granting = *older->second;
        for (const auto& [ref, attempt] : granting.started)
            if (Member* const member = current_member(ref, poll.agent_id, attempt))
                member->request_id = poll.request.request_id;
        std::swap(granting.poll, poll);
        return locked.after([answer = std::move(poll.done)] { answer(LeaseReply{}); });
    }
    drop_lease_poll(locked, poll.agent_id);
    if (!repeat_grant(locked, poll)) grant(locked, std::move(poll));
}

bool Studies::Impl::may_lease(Study& study) {
    if (!options_.only_study.empty() && study.name() != options_.only_study) return false;
    return !study.config().command.empty() && study.may_start(now_ms());
}

/// The first of the studies that may start a trial there. Where another one that comes before it
/// finds no room, agents are kept for that first.
Study* Studies::Impl::next_study(const Agent& agent) {
    const Choice choice = choose_study(agent);
    const bool is_passed = choice.fitting != nullptr && choice.first != nullptr &&
                           choice.first != choice.fitting && holds_.waiting() == nullptr;
    if (!is_passed) return choice.fitting;
    hold_for(*choice.first);
    return choose_study(agent).fitting;
}

Studies::Impl::Choice Studies::Impl::choose_study(const Agent& agent) {
    Choice choice;
    Standing first;
    Standing fitting;
    for (const auto& [name, study] : book_.all()) {
        if (!may_place(*study) || suggestions_.is_full(*study)) continue;
        const Standing standing = standing_of(*study);
        const bool may_be_first = choice.first == nullptr || comes_before(standing, first);
        const bool may_fit = choice.fitting == nullptr || comes_before(standing, fitting);
        if (!may_fit) continue;  // then it is not the first of all either
        const std::optional<Part> part = fit(agent, *study);
        const std::optional<Usage> used =
            part ? std::optional(usage_of(*part, agent.room)) : std::nullopt;
        if (used ? !is_within_quota(*study, *used) : !quota_reason(*study).empty()) continue;
        if (may_be_first && !hold_rests_.contains(study.get())) {
            choice.first = study.get();
            first = standing;
        }
        if (!used) continue;
        choice.fitting = study.get();
        fitting = standing;
    }
    return choice;
}

void Studies::Impl::note_obstacle(Study& study) {
    const bool is_for_agents = !study.config().command.empty();
    const bool is_served = options_.only_study.empty() || study.name() == options_.only_study;
    std::string obstacle = is_for_agents && is_served ? agents_.obstacle(study.needs()) : "";
    if (obstacle == study.obstacle()) return;
    study.set_obstacle(std::move(obstacle));
}

void Studies::Impl::note_obstacles() {
    for (const auto& [name, study] : book_.all()) note_obstacle(*study);
}

/// The answer to this request was lost on the way: the attempts it started are given again.
bool Studies::Impl::repeat_grant(LockedBatch& locked, LeasePoll& poll) {
    if (poll.request.request_id.empty()) return false;
    std::vector<TrialRef> started;
    if (const auto* const held = agents_.held_by(poll.agent_id))
        for (const auto& [run_id, ref] : *held)
            if (ref.trial->sync.run_confirmed &&
                ref.trial->progress->holder.find_running(poll.agent_id)->request_id ==
                    poll.request.request_id)
                started.push_back(ref);
    if (started.empty()) return false;
    std::sort(started.begin(), started.end(), [](const TrialRef& a, const TrialRef& b) {
        return std::tuple(a.study->name(), a.trial->number) <
               std::tuple(b.study->name(), b.trial->number);
    });
    give_leases(locked, poll, started);
    return true;
}

/// Starts as many trials as the agent has places, then answers. None while the disk fails: the
/// writes that wait find out when it works again.
void Studies::Impl::grant(LockedBatch& locked, LeasePoll poll) {
    auto granting = std::make_shared<Granting>();
    granting->since_ms = monotonic_ms();
    granting->poll = std::move(poll);
    granting_[granting->poll.agent_id] = granting;
    continue_grant(locked, granting);
}

void Studies::Impl::continue_grant(LockedBatch& locked, const std::shared_ptr<Granting>& granting) {
    const std::string& agent_id = granting->poll.agent_id;
    while (!phase_.draining && !writer_.error() && granting->poll.request.free_slots > 0) {
        const Agent* const agent = agents_.find(agent_id);
        // What it registered and what it holds count, whatever it asks for.
        if (agent == nullptr || agent->room.slots_all <= 0) break;
        consider_for_hold(*agent);
        Study* study = next_study(*agent);
        if (study == nullptr) break;
        suggestions_.reuse_known(locked, *study);
        if (!study->may_start(now_ms())) continue;
        std::optional<Part> part = fit(*agent, *study);
        if (!part) continue;  // what is known by now of its needs has changed
        // Of those in one process only the first one takes a place.
        const bool joins = agent->room.pools.contains(part->pool);
        if (!joins && granting->places_taken >= granting->poll.request.free_slots) break;
        if (granting->started.size() >= kGrantMax) break;
        if (study->queued().empty()) {
            const bool is_late = monotonic_ms() - granting->since_ms > kGatherMax_ms;
            if (is_late && !granting->started.empty()) break;
            const auto go_on = [this, granting](LockedBatch& later, const Result<Trial*>&) {
                continue_grant(later, granting);
            };
            return suggestions_.want(locked, *study, {.settled = go_on});
        }
        if (!joins) ++granting->places_taken;
        std::vector<Member> members = {
            make_member(*agent, granting->poll.request, *std::move(part))};
        Trial& trial = study->start({.holder = {.agent_id = agent_id,
                                                .request_id = granting->poll.request.request_id,
                                                .ttl_ms = options_.lease_ttl_ms,
                                                .members = std::move(members)},
                                     .worker = agent->facts.host,
                                     .ask_request = {},
                                     .now_ms = now_ms()});
        release_hold(*study, {agent_id});
        agents_.follow(*study, trial);
        granting->started.push_back({{study, &trial}, trial.attempt});
    }
    end_grant(locked, *granting);
}

/// Those that were stopped or lost while others were suggested are not the agent's any more.
void Studies::Impl::end_grant(LockedBatch& locked, Granting& granting) {
    LeasePoll& poll = granting.poll;
    const std::shared_ptr<Granting> kept = granting_.extract(poll.agent_id).mapped();
    std::vector<TrialRef> started;
    for (const auto& [ref, attempt] : granting.started)
        if (is_current(ref, poll.agent_id, attempt)) started.push_back(ref);
    if (!started.empty()) return give_leases(locked, poll, started);
    if (writer_.error())
        return locked.after(
            [done = std::move(poll.done), error = *writer_.error()] { done(error); });
    if (phase_.draining || monotonic_ms() >= poll.deadline_ms)
        return locked.after([answer = std::move(poll.done)] { answer(LeaseReply{}); });
    park(locked, std::move(poll));
}

/// Answers once all is on disk, also the hashes of the credentials. One whose answer was lost gets
/// another credential: nobody has the first, and its text is kept nowhere. If none
/// could be written, the answer is the error.
void Studies::Impl::give_leases(LockedBatch& locked, LeasePoll& poll,
                                const std::vector<TrialRef>& started) {
    struct Join {
        std::size_t left = 0;
        LeaseReply reply;
        std::optional<Error> error;
        Done<LeaseReply> done;
    };
    auto join = std::make_shared<Join>();
    join->left = started.size();
    join->done = std::move(poll.done);
    for (const TrialRef& ref : started) {
        const Member& member = *ref.trial->progress->holder.find_running(poll.agent_id);
        Lease lease = make_lease(*ref.study, *ref.trial, member);
        // Only who has rank 0 reports; a credential of another would end his.
        const bool is_reporting = !lease.gang || lease.gang->node == 0;
        if (is_reporting) ref.trial->progress->holder.credential_hash.clear();
        if (is_reporting && poll.request.wants_tokens && !logs_in(*ref.study))
            lease.token = issue_token(*ref.trial);
        begin_lease(*ref.trial);
        wake_ticker_for(*ref.study, *ref.trial);
        writer_.write_trial(
            locked, *ref.study, *ref.trial, nullptr,
            [this, join, ref, lease = std::move(lease)](LockedBatch& later,
                                                        const Result<void>& result) {
                if (result) {
                    join->reply.leases.push_back(lease);
                } else {
                    join->error = result.error();
                    const bool is_still_held = ref.trial->state == TrialState::kRunning &&
                                               ref.trial->attempt == lease.attempt;
                    if (is_still_held) {
                        ref.study->requeue(*ref.trial, "could not be written", now_ms());
                        follow(*ref.study, *ref.trial);
                    }
                }
                if (--join->left > 0) return;
                later.after([join] {
                    if (join->reply.leases.empty()) return join->done(*join->error);
                    join->done(std::move(join->reply));
                });
            });
    }
}

void Studies::Impl::park(LockedBatch& locked, LeasePoll poll) {
    if (poll.call && poll.call->is_answered) return;
    if (!poll.call) {  // else its heartbeat part ends with its time
        wake_ticker(poll.deadline_ms);
        lease_poll_ends_.set(poll.agent_id, poll.deadline_ms);
    }
    const std::string agent_id = poll.agent_id;
    const Agent* const agent = agents_.find(agent_id);
    lease_line_.add(agent_id, agent == nullptr ? std::string() : room_text(agent->room));
    lease_polls_.insert_or_assign(agent_id, std::move(poll));
    place_gangs(locked);
}

Studies::Impl::LeasePoll Studies::Impl::unpark(const std::string& agent_id) {
    LeasePoll taken = std::move(lease_polls_.extract(agent_id).mapped());
    lease_line_.erase(agent_id);
    lease_poll_ends_.erase(agent_id);
    return taken;
}

void Studies::Impl::drop_lease_poll(LockedBatch& locked, const std::string& agent_id) {
    if (!lease_polls_.contains(agent_id)) return;
    const LeasePoll dropped = unpark(agent_id);
    if (dropped.call) return answer_poll(locked, dropped.call, {}, {});
    locked.after([done = dropped.done] { done(LeaseReply{}); });
}

void Studies::Impl::sort_lease_line() {
    for (const std::string& agent_id : agents_.take_changed())
        if (const Agent* const agent = agents_.find(agent_id))
            lease_line_.move(agent_id, room_text(agent->room));
}

/// Whether some study could start a trial of its own on one agent or several.
bool Studies::Impl::has_work() {
    return std::any_of(book_.all().begin(), book_.all().end(), [this](const auto& entry) {
        return may_place(*entry.second) && !suggestions_.is_full(*entry.second);
    });
}

/// Looks at one agent of each group of those that have the same left. Whoever finds nothing waits
/// again, behind those that are looked at now.
void Studies::Impl::wake_leases(LockedBatch& locked) {
    drop_idle_holds();
    if (writer_.error() || !has_work()) return;
    std::size_t left = lease_polls_.size();
    for (bool is_given = true; is_given && left > 0;) {
        is_given = false;
        sort_lease_line();
        for (const std::string& agent_id : lease_line_.fronts()) {
            if (left == 0 || writer_.error() || !has_work()) break;
            const Agent* const agent = agents_.find(agent_id);
            if (agent == nullptr || !lease_polls_.contains(agent_id)) continue;
            consider_for_hold(*agent);
            if (next_study(*agent) == nullptr) continue;
            --left;
            is_given = true;
            grant(locked, unpark(agent_id));
        }
    }
    if (!writer_.error()) place_gangs(locked);
}

void Studies::Impl::begin_lease(const Trial& trial) {
    Holder& holder = trial.progress->holder;
    holder.expires_ms = monotonic_ms() + holder.ttl_ms;
    for (Member& member : holder.members) member.expires_ms = holder.expires_ms;
    if (holder.ttl_ms > 0) lease_ends_.set(trial.run_id, holder.expires_ms);
}

}  // namespace tune::tuner
