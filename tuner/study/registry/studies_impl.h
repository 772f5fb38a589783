#pragma once
// Inside of Studies: its parts, how they hear of each other, and what is not a part of its own yet:
// the agents' broker, which decides who runs what. Its files: studies_agents.cc (the agent
// protocol), polls/ (the one poll of an agent), studies_leases.cc (which agent gets which trial),
// studies_gangs.cc (trials on several agents), scheduling/ (whose turn it is, quotas, agents kept
// for a trial, priorities), studies_queue.cc (for whoever looks), studies_ticker.cc (time and
// commits).
//
// Threads. All state is guarded by `lock_`, which is held for bookkeeping only, never while
// anybody waits or computes a suggestion. It is taken by:
//   - callers (network, command line): the calls of Studies;
//   - the threads of Suggestions before and after a suggestion, one at a time a study; of Replays;
//   - the lock's own thread: what follows from a write; the store's writer thread only posts it;
//   - the store's observer thread: metrics that were logged;
//   - the ticker.
// Lock order: lock_, then those of AttemptCredentials, Renewals, WorkPool and the store's queue,
// each of which is held for a look-up and calls nothing.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/study/registry/agents.h"
#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/clients/client_trials.h"
#include "tuner/study/registry/lifecycle/study_creation.h"
#include "tuner/study/registry/lifecycle/study_lifecycle.h"
#include "tuner/study/registry/lifecycle/study_loader.h"
#include "tuner/study/registry/polls/lease_line.h"
#include "tuner/study/registry/polls/renewals.h"
#include "tuner/study/registry/registration/registrar.h"
#include "tuner/study/registry/scheduling/holds.h"
#include "tuner/study/registry/studies.h"
#include "tuner/study/registry/suggestions/replays.h"
#include "tuner/study/registry/timers.h"

namespace tune::tuner {

/// What a call of an agent gets that did not register.
[[nodiscard]] Error unknown_agent(const std::string& agent_id);
/// How long a long-poll that asks for so much may wait.
[[nodiscard]] std::int64_t poll_wait_ms(std::int64_t asked_ms);

/// How long agents that have room are kept for a trial, and how long its study rests when they were
/// kept in vain.
inline constexpr std::int64_t kHold_ms = 30'000;

class Studies::Impl final : public tracker::CommitObserver, private StudyEvents {
public:
    explicit Impl(StudiesOptions options);
    ~Impl() override;

    Result<void> load();
    void prepare_large();
    void observe_store() { store_.add_observer(this); }
    void start_ticker();
    void warm_up();
    void drain();
    void stop();
    void on_commit(const tracker::Commit& commit) override;

    [[nodiscard]] std::optional<std::int64_t> experiment_of(const std::string& name,
                                                            bool or_erased) const;
    void wait(const std::string& name, std::int64_t version, std::int64_t wait_ms, Done<void> done);
    void set_quota(Quota quota, Done<void> done);
    void remove_quota(const std::string& user, Done<void> done, const Recording& record);
    void register_agent(RegisterRequest request, Done<RegisterReply> done);
    void lease(const std::string& agent_id, LeaseRequest request, Done<LeaseReply> done);
    void heartbeat(const std::string& agent_id, HeartbeatRequest request,
                   Done<HeartbeatReply> done);
    void poll(const std::string& agent_id, PollRequest request, Done<PollReply> done);
    void report_metrics(const std::string& agent_id, ReportRequest request, Done<ReportReply> done);
    void finish(const std::string& agent_id, const AttemptId& attempt, FinishRequest request,
                Done<FinishReply> done);
    [[nodiscard]] QueueView queue(std::size_t agents_max);
    void tick();
    [[nodiscard]] std::size_t retired_count() const;
    Result<void> read(std::string_view name, const std::function<void(const Study&)>& read) const;
    void read_all(const std::function<void(const Study&)>& read) const;

private:
    friend class Studies;

    /// The one poll of an agent that waits. It consists of a lease poll and a heartbeat poll;
    /// whichever has something to say first ends both.
    struct PollCall {
        std::string agent_id;
        std::string session;
        std::int64_t turn = 0;
        std::int64_t ack = 0;
        bool is_leaving = false;
        LeaseRequest leases;           ///< what its lease poll asks for
        std::int64_t deadline_ms = 0;  ///< monotonic
        Done<PollReply> done;
        bool is_answered = false;
    };
    struct LeasePoll {
        std::string agent_id;
        LeaseRequest request;
        std::int64_t deadline_ms = 0;  ///< monotonic
        Done<LeaseReply> done;
        std::shared_ptr<PollCall> call = {};  ///< whose part it is; null: it stands alone
    };
    struct HeartbeatPoll {
        std::string agent_id;
        std::vector<AttemptId> lost;
        std::int64_t deadline_ms = 0;         ///< monotonic
        Done<HeartbeatReply> done;            ///< of one that stands alone
        std::shared_ptr<PollCall> call = {};  ///< whose part it is
    };
    /// A lease poll that is being answered.
    struct Granting {
        LeasePoll poll;
        std::vector<std::pair<TrialRef, int>> started;  ///< with the attempt
        std::int64_t since_ms = 0;                      ///< monotonic
        int places_taken = 0;
    };

    // studies.cc
    void follow(Study& study, Trial& trial) override;
    void after_change(LockedBatch& locked, Study& study) override;
    void notify(LockedBatch& locked, Study& study, const Trial* trial) override;
    void study_written(LockedBatch& locked, Study& study) override;
    void note_obstacle(Study& study) override;
    [[nodiscard]] bool is_held(const Study& study) const override;
    [[nodiscard]] bool is_attended(const Study& study) const;
    void stop_if_failing(LockedBatch& locked, Study& study);
    void cancel_queued(LockedBatch& locked, Study& study, const std::string& reason);
    void stop_trials(LockedBatch& locked, Study& study, const std::string& reason);
    /// Frees removed studies that nothing names any more.
    void free_retired(LockedBatch& locked);
    [[nodiscard]] bool is_named(const Study& study) const;

    // studies_agents.cc
    [[nodiscard]] bool is_current(const TrialRef& ref, const std::string& agent_id,
                                  int attempt) const;
    void renew_lease(const TrialRef& ref, Member& member) const;

    // polls/studies_polls.cc
    void take_ack(Agent& agent, const PollRequest& request);
    void decline(LockedBatch& locked, const Agent& agent, const std::vector<AttemptId>& attempts);
    void interrupt(LockedBatch& locked, Agent& agent, const PollRequest& request,
                   const Done<PollReply>& done);
    /// The attempts that the agent was given in answers after `ack`, which it never got.
    [[nodiscard]] std::vector<TrialRef> undelivered(const std::string& agent_id,
                                                    const std::string& session, std::int64_t ack);
    [[nodiscard]] bool begin_lease_part(LockedBatch& locked, const std::shared_ptr<PollCall>& call);
    [[nodiscard]] LeasePoll lease_part(const std::shared_ptr<PollCall>& call);
    void end_lease_part(LockedBatch& locked, const std::shared_ptr<PollCall>& call,
                        Result<LeaseReply> reply);
    void answer_poll(LockedBatch& locked, const std::shared_ptr<PollCall>& call,
                     HeartbeatReply news, std::vector<Lease> leases, std::string lease_error = {});
    [[nodiscard]] int take_ended(std::vector<AttemptId>& running) const;
    void drop_poll(LockedBatch& locked, const std::string& agent_id);
    void withdraw(PollCall& call);
    void label(const PollCall& call, std::vector<Lease>& leases);
    /// An attempt of the agent has ended, so that its poll may get one more.
    void gain_place(LockedBatch& locked, const std::string& agent_id);
    // studies_leases.cc
    /// Gives the poll what there is, or puts it into the line.
    void begin_lease_poll(LockedBatch& locked, LeasePoll poll);
    [[nodiscard]] Lease make_lease(const Study& study, const Trial& trial,
                                   const Member& member) const;
    Study* next_study(const Agent& agent);
    struct Choice {
        Study* first = nullptr;    ///< of all that may start a trial and do not rest
        Study* fitting = nullptr;  ///< of those that may start one there
    };
    [[nodiscard]] Choice choose_study(const Agent& agent);
    [[nodiscard]] bool has_work();
    [[nodiscard]] bool may_lease(Study& study);
    void grant(LockedBatch& locked, LeasePoll poll);
    void continue_grant(LockedBatch& locked, const std::shared_ptr<Granting>& granting);
    void end_grant(LockedBatch& locked, Granting& granting);
    bool repeat_grant(LockedBatch& locked, LeasePoll& poll);
    void give_leases(LockedBatch& locked, LeasePoll& poll, const std::vector<TrialRef>& started);
    [[nodiscard]] static bool logs_in(const Study& study);
    void wake_leases(LockedBatch& locked) override;
    void park(LockedBatch& locked, LeasePoll poll);
    [[nodiscard]] LeasePoll unpark(const std::string& agent_id);
    void sort_lease_line();
    void drop_lease_poll(LockedBatch& locked, const std::string& agent_id);
    void begin_lease(const Trial& trial) override;
    /// Says of each study what keeps agents from running it.
    void note_obstacles();
    void let_go(LockedBatch& locked, const RegisterRequest& request);

    // studies_order.cc
    /// What decides whose turn it is; the name last, so that no two are equal.
    struct Standing {
        int priority = 0;
        double user_share = 0;
        double share = 0;
        std::size_t running = 0;
        const std::string* name = nullptr;
    };
    [[nodiscard]] int priority_of(const Study& study) const;
    [[nodiscard]] Standing standing_of(const Study& study) const;
    [[nodiscard]] static bool comes_before(const Standing& a, const Standing& b);
    [[nodiscard]] bool may_place(Study& study);
    [[nodiscard]] std::vector<Study*> in_order();
    [[nodiscard]] Study* study_before(const Study& study);
    [[nodiscard]] bool is_within_quota(const Study& study, const Usage& more) const;
    [[nodiscard]] std::string quota_reason(const Study& study) const;

    // studies_holds.cc
    [[nodiscard]] std::optional<Part> part_beside_holds(const Agent& agent, const Study& study,
                                                        const TrialNeeds& needs, int nproc) const;
    [[nodiscard]] std::optional<Part> fit(const Agent& agent, const Study& study) const;
    [[nodiscard]] bool is_reachable(const Agent& agent) const;
    [[nodiscard]] bool is_kept_before(const std::string& agent_id, const Study& study) const;
    [[nodiscard]] std::set<std::string> nearest_agents(const Study& study, const TrialNeeds& needs,
                                                       const Shape& shape);
    void hold_for(Study& study);
    void consider_for_hold(const Agent& agent);
    void release_hold(const Study& study, const std::vector<std::string>& ids);
    [[nodiscard]] bool is_ready(const Hold& hold);
    void drop_idle_holds();
    void expire_holds(LockedBatch& locked);
    [[nodiscard]] std::int64_t next_hold_ms() const;

    // studies_preemption.cc
    /// Agents for one trial, and the trials that have to end there first.
    struct Claim {
        Shape shape;
        std::set<std::string> agents = {};
        std::vector<TrialRef> victims = {};
    };
    void preempt(LockedBatch& locked);
    void preempt_for(LockedBatch& locked, Study& study);
    void make_places(LockedBatch& locked, Study& study, const TrialNeeds& needs,
                     std::size_t wanted);
    [[nodiscard]] std::optional<Room> room_to_be(const Agent& agent, const Study& study,
                                                 const Claim& claim);
    [[nodiscard]] std::optional<std::vector<TrialRef>> victims_on(const Agent& agent,
                                                                  const Study& study,
                                                                  const TrialNeeds& needs,
                                                                  int nproc, const Claim& claim);
    [[nodiscard]] std::vector<std::string> preemptible_agents(const Study& study);
    void claim_free_room(Claim& claim, const Study& study, const TrialNeeds& needs);
    [[nodiscard]] std::optional<Claim> find_claim(const Study& study, const TrialNeeds& needs,
                                                  const Shape& shape, std::size_t before);
    [[nodiscard]] static std::optional<Part> part_of_empty(const Agent& agent,
                                                           const TrialNeeds& needs, int nproc);

    // studies_gangs.cc
    [[nodiscard]] Usage usage_on(const std::vector<std::string>& ids, const Study& study,
                                 const TrialNeeds& needs, const Shape& shape);
    [[nodiscard]] static Member make_member(const Agent& agent, const LeaseRequest& request,
                                            Part part);
    /// nullptr: the attempt is not the current one, or the agent has no part of it (any more).
    [[nodiscard]] Member* current_member(const TrialRef& ref, const std::string& agent_id,
                                         int attempt) const;
    std::optional<FinishRequest> end_part(LockedBatch& locked, const TrialRef& ref, Member& member,
                                          FinishRequest finish);
    void settle_trial(const TrialRef& ref, const FinishRequest& finish);
    void lose_part(LockedBatch& locked, const TrialRef& ref, Member& member,
                   const std::string& reason);
    [[nodiscard]] std::vector<std::string> choose_agents(const Study& study,
                                                         const TrialNeeds& needs,
                                                         const Shape& shape);
    void place_gangs(LockedBatch& locked);
    bool place_gang(LockedBatch& locked, Study& study);
    void start_gang(LockedBatch& locked, Study& study, const TrialNeeds& needs, const Shape& shape,
                    const std::vector<std::string>& ids);
    void give_gang(LockedBatch& locked, const TrialRef& ref, std::vector<LeasePoll> polls);

    // studies_queue.cc
    [[nodiscard]] AgentView view_of(const Agent& agent);
    [[nodiscard]] std::string why_waiting(Study& study);
    [[nodiscard]] std::string why_kept(const Hold& hold) const;
    [[nodiscard]] std::string why_after(const Study& study, const Study& other) const;
    void add_users(QueueView& view) const;

    // studies_agents.cc
    void direct(LockedBatch& locked, Study& study, Trial& trial, Action action,
                std::string reason) override;
    HeartbeatReply heartbeat_reply(const HeartbeatPoll& poll);
    /// Which of the attempts that an agent names are not its own. `is_news`: some of them it was
    /// not told before.
    [[nodiscard]] std::vector<AttemptId> note_lost(Agent& agent,
                                                   const std::vector<AttemptId>& running,
                                                   bool& is_news);
    void park_heartbeat(HeartbeatPoll poll);
    void drop_heartbeat_poll(LockedBatch& locked, const std::string& agent_id);
    [[nodiscard]] bool has_news(const std::string& agent_id);
    /// Renewals that have arrived and are not counted yet.
    void count_renewals();
    void wake_heartbeat(LockedBatch& locked, const std::string& agent_id) override;
    [[nodiscard]] static std::vector<tracker::Command> report_commands(const AttemptReport& report,
                                                                       std::int64_t now);
    void settle(const std::string& agent_id, const AttemptId& attempt, FinishRequest request,
                Done<FinishReply> done);
    void answer_finish(LockedBatch& locked, const TrialRef& ref, const FinishRequest* finish,
                       Done<FinishReply> done);

    // studies_ticker.cc
    void expire_leases(LockedBatch& locked);
    void expire_lease(LockedBatch& locked, const TrialRef& ref, std::int64_t now);
    void end_if_over(LockedBatch& locked, Study& study);
    void expire_polls(LockedBatch& locked);
    void take_metrics(LockedBatch& locked, const tracker::MetricsLogged& event);
    [[nodiscard]] std::int64_t next_deadline_ms() const;
    /// Wakes the ticker if it sleeps past this time. Without need it would only wait for the lock
    /// that its waker holds.
    void wake_ticker(std::int64_t deadline_ms) override;
    void wake_ticker_for(const Study& study, const Trial& trial) override;
    void run_ticker();

    [[nodiscard]] std::int64_t now_ms() const { return clock_.now_ms(); }
    [[nodiscard]] std::int64_t monotonic_ms() const { return clock_.monotonic_ms(); }

    StudiesOptions options_;
    SystemClock system_clock_;
    const Clock& clock_;
    tracker::Store& store_;

    Phase phase_;
    StudyBook book_;
    mutable StudyLock lock_{store_, book_.retired()};
    ObservedCommits commits_{store_};
    StudyWaits waits_;
    StudyWriter writer_{book_, clock_, *this};
    Suggestions suggestions_{
        lock_, book_, writer_, clock_, phase_, *this, options_.before_suggestion};
    const StudyServices services_{options_, clock_,   store_, lock_,   phase_,      *this,
                                  book_,    commits_, waits_, writer_, suggestions_};
    Registrar registrar_{services_};
    Replays replays_{services_};
    StudyLoader loader_{services_};
    StudyLifecycle lifecycle_{services_, loader_};
    StudyCreation creation_{services_, loader_, lifecycle_};
    ClientTrials clients_{services_};
    std::int64_t opened_ms_ = 0;
    std::int64_t retired_looked_ms_ = 0;  // monotonic

    // The broker.
    AttemptCredentials credentials_;
    Agents agents_;
    std::unordered_map<std::string, LeasePoll> lease_polls_;  // by agent: there is nothing for them
    LeaseLine lease_line_;                                    // the same agents
    Holds holds_;
    Quotas quotas_;
    std::map<Study*, std::int64_t>
        hold_rests_;                 // who held in vain, until when it does not; monotonic
    std::set<Study*> gangs_wanted_;  // a point is being suggested for a trial on several agents
    bool is_placing_ = false;        // within place_gangs
    std::unordered_map<std::string, HeartbeatPoll> heartbeat_polls_;         // by agent
    std::unordered_map<std::string, std::shared_ptr<PollCall>> poll_calls_;  // by agent; waiting
    Timers lease_poll_ends_;
    Timers heartbeat_poll_ends_;
    /// Running trials by run id, when their lease ends at the earliest: it may have been renewed.
    Timers lease_ends_;
    Renewals renewals_;
    std::map<std::string, std::shared_ptr<Granting>> granting_;  // by agent

    std::condition_variable ticker_wake_;
    std::int64_t ticker_sleeps_until_ms_ = 0;  // monotonic; 0: it is awake
    std::thread ticker_;
};

}  // namespace tune::tuner
