#pragma once
// Inside of Studies, shared by its .cc files: studies.cc (opening, studies), studies_trials.cc
// (ask, report, tell), studies_suggestions.cc (models), studies_agents.cc (the agent protocol),
// polls/studies_polls.cc (the one poll of an agent), studies_leases.cc (which agent gets which
// trial), studies_gangs.cc (trials on several agents),
// studies_order.cc (whose turn it is, quotas), studies_holds.cc (agents kept for a trial),
// studies_preemption.cc (priorities),
// studies_ticker.cc (tick and commits),
// studies_writes.cc (the way to the store).
//
// Threads. All state is guarded by `mutex_`, which is held for bookkeeping only, never while
// anybody waits or computes a suggestion. It is taken by:
//   - callers (network, command line): the calls of Studies;
//   - `pool_`: before and after a suggestion, one at a time a study; `replays_`;
//   - `completions_`: what follows from a write; the store's writer thread only posts it there;
//   - the store's observer thread: metrics that were logged;
//   - the ticker.
// Lock order: mutex_, then those of AttemptCredentials, Renewals, WorkPool and the store's queue,
// each of which is held for a look-up and calls nothing.

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/study/journal/journal.h"
#include "tuner/study/registry/agents.h"
#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/registry/polls/lease_line.h"
#include "tuner/study/registry/polls/renewals.h"
#include "tuner/study/registry/registration/registration.h"
#include "tuner/study/registry/scheduling/holds.h"
#include "tuner/study/registry/studies.h"
#include "tuner/study/registry/timers.h"
#include "tuner/study/registry/work_pool.h"
#include "tuner/study/retired.h"

namespace tune::tuner {

/// What a call of an agent gets that did not register.
[[nodiscard]] Error unknown_agent(const std::string& agent_id);
/// How long a long-poll that asks for so much may wait.
[[nodiscard]] std::int64_t poll_wait_ms(std::int64_t asked_ms);

/// When the lease of a trial ends that is not in its holder's hands yet; monotonic.
inline constexpr std::int64_t kNotHandedOut_ms = std::numeric_limits<std::int64_t>::max();

/// How long agents that have room are kept for a trial, and how long its study rests when they were
/// kept in vain.
inline constexpr std::int64_t kHold_ms = 30'000;

/// Two: a study whose model takes seconds leaves one to the others.
inline constexpr int kSuggestionThreads = 2;
/// A name stands in URLs, file names and event topics.
[[nodiscard]] Result<void> check_study_name(const std::string& name);

class Studies::Impl final : public tracker::CommitObserver {
public:
    explicit Impl(StudiesOptions options);
    ~Impl() override;

    class LockedBatch;
    using Written = std::function<void(LockedBatch&, Result<void>)>;

    /// One piece of work under the lock. When it ends, its writes go to the store as one batch;
    /// then what it leaves in `after` runs without the lock, in order: completions may call back
    /// in.
    class LockedBatch {
    public:
        explicit LockedBatch(Impl& impl) : impl_(impl), lock_(impl.mutex_) {}
        ~LockedBatch();
        LockedBatch(const LockedBatch&) = delete;
        LockedBatch& operator=(const LockedBatch&) = delete;

        /// One change of the store, whole or not at all. `written` is called in a later batch, when
        /// it is on disk or was refused.
        void write(std::vector<tracker::Command> commands, Written written);
        void after(std::function<void()> call) { after_.push_back(std::move(call)); }

    private:
        struct Write {
            std::vector<tracker::Command> commands;
            Written written;
        };
        void submit();

        Impl& impl_;
        std::unique_lock<std::mutex> lock_;
        std::vector<Write> writes_;
        std::vector<std::function<void()>> after_;
    };

    Result<void> load();
    void prepare_large();
    void observe_store() { store_.add_observer(this); }
    void start_ticker();
    void warm_up();
    void drain();
    void stop();
    void on_commit(const tracker::Commit& commit) override;

    void create(StudyConfig config, CreateOptions options, Done<Created> done);
    void replay(const std::string& name, Done<ReplayReport> done);
    void change(const std::string& name, Change change, Done<void> done);
    void set_priority(const std::string& name, int priority, Done<void> done);
    void set_quota(Quota quota, Done<void> done);
    void remove_quota(const std::string& user, Done<void> done, const Recording& record);
    void rename(const std::string& name, const std::string& new_name, Done<void> done,
                const Recording& record);
    void erase(const std::string& name, Done<void> done, const Recording& record);
    std::optional<std::int64_t> experiment_of(const std::string& name, bool or_erased) const;
    void restore(const std::string& name, Done<void> done, const Recording& record);
    void take_in(tracker::PutDocument document, tracker::DeleteDocument note, Done<void> done);
    void wait(const std::string& name, std::int64_t version, std::int64_t wait_ms, Done<void> done);
    void ask(AskRequest request, Done<std::vector<AskedTrial>> done);
    void report(ClientReport report, Done<std::optional<Action>> done);
    void renew(const TrialName& name, Done<std::optional<Action>> done);
    void tell(TellRequest request, Done<void> done);
    void enqueue(const std::string& name, const std::string& params_json, std::string request_id,
                 Done<AskedTrial> done);
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
    [[nodiscard]] const AttemptCredentials& credentials() const { return credentials_; }

private:
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
    struct StudyPoll {
        const Study* study = nullptr;
        std::int64_t deadline_ms = 0;  ///< monotonic
        Done<void> done;
    };
    struct Snapshot {
        std::string run_id;
        std::uint64_t number = 0;
    };
    /// Somebody who wants a suggestion of a study. `settled`: the trial that it made, or nullptr
    /// where none was needed, allowed or left. Called once, under the lock.
    struct Wish {
        SuggestionWish wanted;
        std::string request_id;  ///< kGiven: a trial that this request made needs no other
        std::function<void(LockedBatch&, Result<Trial*>)> settled;
    };
    /// Who waits for suggestions of one study. One thread at a time serves it.
    struct Line {
        std::deque<Wish> waiting;
        bool is_served = false;
        bool has_turned_away = false;  ///< polls for which it was too long
    };
    /// An ask that is being answered. Its leases begin when it is.
    struct Asking {
        AskRequest request;
        Study* study = nullptr;
        std::vector<Trial*> trials;
        std::vector<Done<std::vector<AskedTrial>>> done;  ///< repeats of the request wait too
    };
    /// A lease poll that is being answered.
    struct Granting {
        LeasePoll poll;
        std::vector<std::pair<TrialRef, int>> started;  ///< with the attempt
        std::int64_t since_ms = 0;                      ///< monotonic
        int places_taken = 0;
    };

    // studies.cc
    Study* find_study(std::string_view name) const;
    [[nodiscard]] Error no_such_study(std::string_view name) const;
    Result<void> load_study(const tracker::Document& document);
    Result<void> load_trials(Study& study);
    Result<void> load_progress(Study& study, Trial& trial);
    [[nodiscard]] static std::vector<Snapshot> with_reports(const Study& study);
    void load_history(Study& study);
    /// A study that is to be made or gone on with, on its way through the store.
    struct Wanted {
        StudyConfig config;
        CreateOptions options;
        Done<Created> done;
        std::string replaced = {};  ///< how the study that was erased for this one differed
    };
    void create_in_experiment(Wanted wanted, std::int64_t experiment_id);
    void find_experiment(Wanted wanted);
    void experiment_made(Wanted& wanted, const Result<tracker::Outcome>& outcome);
    void add_study(LockedBatch& locked, std::unique_ptr<Study> made,
                   const std::vector<Trial*>& first, Done<Created> done, std::string replaced);
    void resume(LockedBatch& locked, Study& study, Wanted wanted);
    Result<void> take_other_config(Study& study, StudyConfig config, const CreateOptions& options);
    Result<void> fill_warm_start(StudyConfig& config) const;
    [[nodiscard]] std::vector<Trial*> begin_warm(Study& study) const;
    void prepare(LockedBatch& locked, Study& study);

    // studies_lifecycle.cc
    /// Why nothing can be done with the study before it is restored; nothing: it can.
    [[nodiscard]] static Result<void> check_usable(const Study& study);
    void take_experiment(LockedBatch& locked, const tracker::Experiment& experiment);
    void rename_experiment(std::int64_t experiment_id, const std::string& name,
                           const std::string& new_name, const Done<void>& done);
    /// Takes the study out of memory and of the list, its document to those of erased studies.
    void erase_study(LockedBatch& locked, Study& study, const Recording& record, Written written);
    void change_runs(LockedBatch& locked, const Study& study, bool deletes);
    /// Frees removed studies that nothing names any more.
    void free_retired(LockedBatch& locked);
    void retire(std::unique_ptr<Study> study) { retired_.add(std::move(study)); }
    [[nodiscard]] bool is_named(const Study& study) const;
    void restore_erased(const std::string& name, Done<void> done, const Recording& record);
    /// Reads a study that is in the store and shows it once `commands` are written.
    void bring_in(LockedBatch& locked, const tracker::Document& document,
                  std::vector<tracker::Command> commands, Done<void> done,
                  const Recording& record = {});
    [[nodiscard]] bool is_held(const Study& study) const;
    [[nodiscard]] bool is_attended(const Study& study) const;
    /// The runs of studies that run are RUNNING while a server is there, else SCHEDULED.
    void show_interrupted(LockedBatch& locked, bool is_interrupted);

    // studies_failures.cc
    /// Whether the study gives way to the wanted one (CreateOptions::replace).
    [[nodiscard]] bool is_replaced(const Study& study, const Wanted& wanted) const;
    void replace(LockedBatch& locked, Study& study, Wanted wanted);
    /// Stops a study whose command cannot work (Study::stop_if_failing).
    void stop_if_failing(LockedBatch& locked, Study& study);
    /// Runs a study again after a rest. The trials that are queued once more, to be written after
    /// the study.
    std::vector<Trial*> run_again(Study& study);
    [[nodiscard]] AskedTrial asked(const Study& study, const Trial& trial) const;
    void index_run(Study& study, Trial& trial);

    // studies_suggestions.cc
    /// Puts the wish at the end of the study's line.
    void want(LockedBatch& locked, Study& study, Wish wish);
    /// Makes the study's model know all trials, in the background.
    void look(LockedBatch& locked, Study& study);
    void serve(Study& study);
    [[nodiscard]] std::optional<SuggestionWork> next_suggestion(LockedBatch& locked, Study& study);
    void end_suggestion(LockedBatch& locked, Study& study, const SuggestionWork& work,
                        const Suggestion& made);
    void answer_first(LockedBatch& locked, Study& study, const Result<Trial*>& trial);
    void give_up_suggestions(LockedBatch& locked);
    /// Completes the study, or finds out from its model whether it is complete.
    void complete_if_done(LockedBatch& locked, Study& study);

    // registration/studies_registration.cc
    /// Begins to register the model of the best trial, where the study wants that.
    void register_best(LockedBatch& locked, Study& study);
    void look_for_model(Study& study, const RegistrationOrder& order, int tries);
    void write_version(Study& study, const RegistrationOrder& order, const std::string& model_id,
                       RegistryRights rights, int tries);
    void end_registration(Study& study, Registration registration);

    // studies_trials.cc
    void continue_ask(LockedBatch& locked, const std::shared_ptr<Asking>& asking);
    void end_ask(LockedBatch& locked, const std::shared_ptr<Asking>& asking);
    void enqueue_point(LockedBatch& locked, Study& study, Point point, std::string request_id,
                       Done<AskedTrial> done);
    void answer_enqueued(LockedBatch& locked, Study& study, Trial& trial, Done<AskedTrial> done);
    void reuse_known(LockedBatch& locked, Study& study);
    Result<TrialRef> find_named(const TrialName& name) const;
    [[nodiscard]] static Result<void> check_held_by_client(const TrialRef& ref, int attempt);
    [[nodiscard]] Result<std::optional<TrialRef>> held_by_client(const TrialName& name) const;
    void renew_lease(Trial& trial) const;
    void renew_lease(const TrialRef& ref, Member& member) const;
    /// Gives the trial what it needs before it is first written: a run id, its place in the index.
    void admit(Study& study, Trial& trial);
    void report_written(const TrialName& name, Done<std::optional<Action>> done);
    void tell_after_metrics(TellRequest request, Done<void> done);
    Result<void> apply_tell(LockedBatch& locked, const TrialRef& ref, const TellRequest& request);
    void write_final_values(LockedBatch& locked, const TrialRef& ref,
                            const std::vector<std::optional<double>>& given,
                            std::optional<double> cost);
    void answer_written(LockedBatch& locked, const TrialRef& ref, const FinishRequest* finish,
                        Done<void> done);

    // studies_agents.cc
    [[nodiscard]] bool is_current(const TrialRef& ref, const std::string& agent_id,
                                  int attempt) const;
    TrialRef find_run(std::string_view run_id) const;

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
    /// As many agents wait for suggestions of the study as may. The others are looked at when these
    /// have been served.
    [[nodiscard]] bool is_line_full(Study& study);
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
    [[nodiscard]] static std::string issue_token(Trial& trial);
    void wake_leases(LockedBatch& locked);
    void park(LockedBatch& locked, LeasePoll poll);
    [[nodiscard]] LeasePoll unpark(const std::string& agent_id);
    void sort_lease_line();
    void drop_lease_poll(LockedBatch& locked, const std::string& agent_id);
    /// From now on the trial's lease ends when it is not renewed.
    void begin_lease(const Trial& trial);
    /// Says of each study what keeps agents from running it.
    void note_obstacles();
    void note_obstacle(Study& study);
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
    void direct(LockedBatch& locked, Study& study, Trial& trial, Action action, std::string reason);
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
    void wake_heartbeat(LockedBatch& locked, const std::string& agent_id);
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
    void cancel_queued(LockedBatch& locked, Study& study, const std::string& reason);
    void stop_trials(LockedBatch& locked, Study& study, const std::string& reason);
    void expire_polls(LockedBatch& locked);
    void write_unsynced(LockedBatch& locked, Study& study);
    void take_metrics(LockedBatch& locked, const tracker::MetricsLogged& event);
    [[nodiscard]] std::int64_t next_deadline_ms() const;
    /// Wakes the ticker if it sleeps past this time (monotonic). Without need it would only wait
    /// for the lock that its waker holds.
    void wake_ticker(std::int64_t deadline_ms);
    /// The same for what a trial that has just started brings: its lease's end, its study's.
    void wake_ticker_for(const Study& study, const Trial& trial);
    void run_ticker();
    /// Runs `call` (without the lock) once every commit that is on disk now has been observed.
    void after_observed(LockedBatch& locked, std::function<void()> call);
    /// What follows from any change: a stopped study's queue is cancelled, a used budget completes
    /// the study, free places are handed out.
    void after_change(LockedBatch& locked, Study& study);

    /// Tells the listener and whoever waits for a change. `trial`: nullptr for the study itself.
    void notify(LockedBatch& locked, Study& study, const Trial* trial);

    // studies_writes.cc
    void write_trial(LockedBatch& locked, Study& study, Trial& trial, const FinishRequest* finish,
                     Written written);
    void trial_written(LockedBatch& locked, Study& study, Trial& trial, bool creates,
                       Result<void> result, const Written& written);
    void write_study(LockedBatch& locked, Study& study, Written written);
    void write_best(LockedBatch& locked, Study& study);
    void write_again_later();
    void note_write(LockedBatch& locked, const Result<void>& result);
    /// What is known beside the trial follows its change: its credential, who holds it.
    void follow(Study& study, Trial& trial);
    void finish_trial(LockedBatch& locked, Study& study, Trial& trial, TrialEnd end);

    [[nodiscard]] std::int64_t now_ms() const { return clock_.now_ms(); }
    [[nodiscard]] std::int64_t monotonic_ms() const { return clock_.monotonic_ms(); }

    StudiesOptions options_;
    SystemClock system_clock_;
    const Clock& clock_;
    tracker::Store& store_;

    mutable std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Study>, std::less<>> studies_;
    /// Why it cannot be read, by name; settled when the server starts. Its documents stay as they
    /// are, and neither the other studies nor the tracker wait for it.
    std::map<std::string, std::string, std::less<>> unreadable_;
    std::int64_t retired_looked_ms_ = 0;  // monotonic
    mutable Retired
        retired_;  // never reached the disk, or erased since; what is under way names them
    std::unordered_map<std::string_view, TrialRef> by_run_;  // keys lie in the trials
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
    std::unordered_map<Study*, Line> lines_;
    std::map<std::pair<const Study*, std::string>, std::shared_ptr<Asking>> asking_;  // by request
    std::map<std::string, std::shared_ptr<Granting>> granting_;                       // by agent
    std::list<StudyPoll> study_polls_;
    std::multimap<std::int64_t, std::function<void()>> after_position_;
    std::int64_t seen_position_ = 0;
    std::int64_t opened_ms_ = 0;
    std::set<Study*> unsynced_studies_;
    std::set<const Study*> registering_;  ///< whose best model is on its way into the registry
    int unsynced_trials_ = 0;
    /// Why the store did not take the last write of a trial or study; nothing: it did, or it never
    /// will. What failed is tried again, so this is never stale for long.
    std::optional<Error> write_error_;
    std::int64_t retry_at_ms_ =
        0;                     // monotonic; when unsynced trials are written again; 0: none are
    int replays_waiting_ = 0;  // or running
    bool serves_ = false;      // others may reach it; else it is only looked at
    bool draining_ = false;
    bool stopping_ = false;

    std::condition_variable ticker_wake_;
    std::int64_t ticker_sleeps_until_ms_ = 0;  // monotonic; 0: it is awake
    std::thread ticker_;
    // Last: their threads use all of the above.
    WorkPool completions_{{.name = "study-writes", .threads = 1}};
    WorkPool pool_{{.name = "suggestions", .threads = kSuggestionThreads, .stand_back = 5}};
    WorkPool replays_{{.name = "replays", .threads = 1, .stand_back = 5}};
};

}  // namespace tune::tuner
