#pragma once
// Inside of Studies: its parts, and how they hear of each other (StudyEvents).
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

#include <functional>
#include <optional>
#include <string>

#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/broker.h"
#include "tuner/study/registry/clients/client_trials.h"
#include "tuner/study/registry/lifecycle/run_sweeps.h"
#include "tuner/study/registry/lifecycle/study_creation.h"
#include "tuner/study/registry/lifecycle/study_lifecycle.h"
#include "tuner/study/registry/lifecycle/study_loader.h"
#include "tuner/study/registry/registration/registrar.h"
#include "tuner/study/registry/studies.h"
#include "tuner/study/registry/suggestions/replays.h"
#include "tuner/study/registry/ticker.h"

namespace tune::tuner {

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
    void tick();
    [[nodiscard]] std::size_t retired_count() const;
    Result<void> read(std::string_view name, const std::function<void(const Study&)>& read) const;
    void read_all(const std::function<void(const Study&)>& read) const;

private:
    friend class Studies;

    // What the parts tell each other.
    void follow(Study& study, Trial& trial) override;
    void after_change(LockedBatch& locked, Study& study) override;
    void notify(LockedBatch& locked, Study& study, const Trial* trial) override;
    void study_written(LockedBatch& locked, Study& study) override;
    void direct(LockedBatch& locked, Study& study, Trial& trial, Action action,
                std::string reason) override {
        broker_.attempts.direct(locked, study, trial, action, std::move(reason));
    }
    void wake_heartbeat(LockedBatch& locked, const std::string& agent_id) override {
        broker_.polls.wake(locked, agent_id);
    }
    void wake_leases(LockedBatch& locked) override { broker_.leases.wake(locked); }
    void begin_lease(const Trial& trial) override { broker_.attempts.begin(trial); }
    void note_obstacle(Study& study) override { broker_.turns.note_obstacle(study); }
    [[nodiscard]] bool is_held(const Study& study) const override;
    void wake_ticker(std::int64_t deadline_ms) override { ticker_.wake_by(deadline_ms); }
    void wake_ticker_for(const Study& study, const Trial& trial) override;

    [[nodiscard]] bool is_held_since(const Study& study, std::int64_t heard_since_ms) const;
    [[nodiscard]] std::int64_t heard_ms(const Study& study) const;
    [[nodiscard]] bool is_attended(const Study& study) const;
    [[nodiscard]] bool is_running_alone(const Study& study) const;
    [[nodiscard]] std::optional<std::int64_t> silence_due_ms(const Study& study) const;
    void stop_if_failing(LockedBatch& locked, Study& study);
    void cancel_queued(LockedBatch& locked, Study& study, const std::string& reason);
    void stop_trials(LockedBatch& locked, Study& study, const std::string& reason);
    void end_if_over(LockedBatch& locked, Study& study);
    void take_metrics(LockedBatch& locked, const tracker::MetricsLogged& event);
    void expire_polls(LockedBatch& locked);
    void free_retired(LockedBatch& locked);
    [[nodiscard]] bool is_named(const Study& study) const;
    [[nodiscard]] std::int64_t next_deadline_ms() const;

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
    RunSweeps sweeps_{services_};
    StudyLifecycle lifecycle_{services_, loader_, sweeps_};
    StudyCreation creation_{services_, loader_, lifecycle_};
    ClientTrials clients_{services_};
    AttemptCredentials credentials_;
    Broker broker_{services_, credentials_};
    Ticker ticker_{lock_, clock_, phase_, [this] { return next_deadline_ms(); },
                   [this] { tick(); }};
    std::int64_t opened_ms_ = 0;
    std::int64_t retired_looked_ms_ = 0;  // monotonic
};

}  // namespace tune::tuner
