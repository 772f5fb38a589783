#pragma once
// All studies of a server: the one place where trials are handed out, reported on and ended.
//
//   agents, REST clients --> Studies --> Store (documents and runs in one transaction)
//                            ^            |
//                            +- on_commit +  metrics of trials -> objective, pruner -> directives
//
// Concurrency: thread-safe; one mutex, held for bookkeeping only: suggestions are computed outside
// it. Calls that change something answer through a completion after the change is on disk; the
// completion runs on any thread but those of the store, without the lock, exactly once. Nothing
// blocks except open() and stop().
//
// What is answered is on disk. A call that fails with kRequestLimitExceeded, kResourceExhausted or
// kTemporarilyUnavailable (queue full, disk full) may or may not take effect; repeating it with the
// same request id is always right. What memory holds beyond the disk is written again each second.
//
// Memory: about 400 bytes a trial plus its point; a study is unloaded once it was removed and
// nothing under way names it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tracker/store/store.h"
#include "tuner/protocol.h"
#include "tuner/study/journal/replay.h"
#include "tuner/study/registry/broker/queue_view.h"
#include "tuner/study/registry/scheduling/quotas.h"
#include "tuner/study/study.h"

namespace tune::tuner {

class AgentCalls;
class AttemptCredentials;
class ClientTrials;

template <class T>
using Done = std::function<void(Result<T>)>;

/// Adds the record of a request's answer to the commands of its change. `study`: as it is after the
/// change, read under the lock; nullptr where none is left. Empty: nothing is recorded.
using Recording = std::function<std::vector<tracker::Command>(
    const Study* study, std::vector<tracker::Command> commands)>;

/// Told of every change after it is on disk, and of new intermediate values. Called with the lock
/// of Studies held: read what is given, hand it on, never block or call back.
class StudyListener {
public:
    virtual ~StudyListener() = default;
    virtual void on_trial(const Study& study, const Trial& trial) = 0;
    virtual void on_study(const Study& study) = 0;
};

/// In the error of a study that is there already and differs, before the differences.

struct StudiesOptions {
    tracker::Store* store = nullptr;  ///< outlives Studies or is stopped before it is destroyed
    const Clock* clock = nullptr;     ///< default: the system's
    StudyListener* listener = nullptr;
    std::int64_t heartbeat_ms = kHeartbeat_ms;
    std::int64_t lease_ttl_ms = kLeaseTtl_ms;
    /// Agents get trials of this study only; empty: of all. For a server inside `tune run`, which
    /// must not go on with other studies of the same folder.
    std::string only_study = {};
    /// On a server with users: what a user may do with a registered model that no grant is about.
    /// Nothing: there are no users, and studies register what they like.
    std::optional<tracker::Permission> default_permission = {};
    /// False: nobody calls tick() but the caller; for tests with a ManualClock.
    bool ticker = true;
    /// Called on the thread that is about to compute a suggestion of the study; for tests.
    std::function<void(const std::string& study)> before_suggestion = {};
    /// Called on the thread that is about to read a whole study: one that is restored, taken in,
    /// replayed or extended, or that another one learns from. For tests.
    std::function<void(const std::string& study)> before_reading = {};
};

class Studies {
public:
    /// Reads all studies from the store (100,000 trials in about a second), gives every live lease
    /// one time to live of grace, and observes the store from now on. REQUIRES: no command has been
    /// submitted yet. A study whose documents cannot be read is set aside: every call that names it
    /// gets kDataLoss with the reason. Errors: those of the store.
    [[nodiscard]] static Result<std::unique_ptr<Studies>> open(StudiesOptions options);
    ~Studies();
    Studies(const Studies&) = delete;
    Studies& operator=(const Studies&) = delete;

    /// Makes the samplers of running studies ready in the background, so that the first suggestion
    /// after a start is as fast as the others. For servers; a program that only looks needs none.
    void warm_up();
    /// No more trials start; waiting polls are answered (heartbeats with `draining`).
    void drain();
    /// drain, and the ticker ends. Idempotent. Completions of running writes still come.
    void stop();

    // --- studies ---

    struct Created {
        std::string name;
        bool is_new = false;        ///< false: a study of this name went on
        std::string replaced = {};  ///< how the study that it replaced differed; empty: none was
    };
    /// Creates the study, or goes on with the one of this name: then budget, pruner, sampler,
    /// command and the like become those of `config`, and a paused, stopped or completed study runs
    /// again. Errors: kInvalidParameterValue (check_study); kResourceConflict with the list of
    /// differences in space, metric or seed; kResourceConflict when the experiment of that name is
    /// deleted.
    /// With `extend` a study of this name may get another space: trials that exist count with the
    /// `init` of parameters that are new, and none may lie outside (else kResourceConflict).
    /// A new study with a warm start takes its trials from the study that names, which must exist
    /// (else kResourceDoesNotExist).
    /// With `replace` a study of this name that differs and has no complete trial is erased, and
    /// the new one takes its place; not one whose trials run in somebody's hands.
    struct CreateOptions {
        bool extend = false;
        bool replace = false;
        /// Refused where the study or its experiment exists: whoever asks was let in only to
        /// make one.
        bool only_new = false;
        std::int64_t owner_id = 0;  ///< the user who will manage a new experiment; 0: nobody
        /// The same user's name, on whose account a new study's trials run; empty: whose server
        /// it is.
        std::string user = {};
    };
    void create(StudyConfig config, Done<Created> done) {
        create(std::move(config), CreateOptions(), std::move(done));
    }
    void create(StudyConfig config, CreateOptions options, Done<Created> done);

    /// Asks a new sampler for every suggestion of the study again (tuner/study/journal/replay.h),
    /// one study at a time. Errors: kResourceDoesNotExist; kRequestLimitExceeded when several wait.
    void replay(const std::string& study, Done<ReplayReport> done) const;

    enum class Change { kPause, kResume, kStop };
    /// kPause: no trial starts, running ones go on. kStop: running ones are stopped and cancelled,
    /// queued ones cancelled. kResume: runs again. Idempotent. Errors: kResourceDoesNotExist;
    /// kResourceConflict for pausing or stopping a completed study.
    void change(const std::string& study, Change change, Done<void> done);

    /// Gives a study another priority, also a running one: the next trial that is placed follows
    /// it. Errors: kResourceDoesNotExist; kInvalidParameterValue outside
    /// -kPriorityMax..kPriorityMax.
    void set_priority(const std::string& study, int priority, Done<void> done);

    /// Gives the study another name, and its experiment where that has the study's. Errors:
    /// kResourceDoesNotExist; kInvalidParameterValue for a name that none can have;
    /// kResourceAlreadyExists; kResourceConflict while trials run, whose holders know it by its
    /// name.
    void rename(const std::string& study, const std::string& new_name, Done<void> done,
                const Recording& record = {});
    /// Removes the study; its name is free. Running trials are cancelled, and its runs are deleted
    /// as MLflow deletes runs: until `tune gc` takes them, restore() brings all back. Errors:
    /// kResourceDoesNotExist. Cost: a write a trial, a group of them at a time, after the answer.
    void erase(const std::string& study, Done<void> done, const Recording& record = {});
    /// Brings back the study of this name that was erased last, or one whose experiment an MLflow
    /// client has deleted. Errors: kResourceDoesNotExist naming those that can be restored;
    /// kResourceAlreadyExists when the name is taken by now; kDataLoss when its run is gone.
    void restore(const std::string& study, Done<void> done, const Recording& record = {});
    /// Takes in a study whose trials and runs are in the store: from now on it is one of these. Its
    /// document is written together with the deletion of a `note`. Errors: kResourceAlreadyExists;
    /// kDataLoss for documents that are none; those of the store, and it is not taken in then.
    void take_in(tracker::PutDocument study, tracker::DeleteDocument note, Done<void> done);

    /// Calls `read` under the lock. Errors: kResourceDoesNotExist naming the study.
    Result<void> read(std::string_view study, const std::function<void(const Study&)>& read) const;
    /// Calls `read` for each study under the lock, oldest first.
    void read_all(const std::function<void(const Study&)>& read) const;
    /// The experiment of the study of this name; with `or_erased`, where there is none, that of the
    /// one that was erased last. Waits for a read then.
    [[nodiscard]] std::optional<std::int64_t> experiment_of(const std::string& name,
                                                            bool or_erased) const;

    /// Answers once the study's version is another one than `version`, or after `wait_ms` (at most
    /// kLongPollMax_ms). Errors: kResourceDoesNotExist.
    void wait(const std::string& study, std::int64_t version, std::int64_t wait_ms,
              Done<void> done);

    // --- whose trials these are ---

    /// Ask, report, tell and enqueue: trials in the hands of REST clients.
    [[nodiscard]] ClientTrials& clients();
    /// Agents that run trials (tuner/protocol.h).
    [[nodiscard]] AgentCalls& agents();

    /// What runs where and what waits, with at most so many agents. Cost: O(agents).
    [[nodiscard]] QueueView queue(std::size_t agents_max);

    // --- quotas (tuner/study/registry/scheduling/quotas.h) ---

    /// Sets all limits of a user, or of everybody who has none of his own. Trials that run stay.
    /// Errors: kInvalidParameterValue for a name that is empty or longer than 250 bytes, a limit
    /// below 0; kResourceExhausted when there are too many.
    void set_quota(Quota quota, Done<void> done);
    /// Errors: kResourceDoesNotExist.
    void remove_quota(const std::string& user, Done<void> done, const Recording& record = {});

    /// The credentials of attempts that agents lease; as long as this.
    [[nodiscard]] const AttemptCredentials& credentials() const;

    /// Expires leases and polls, ends studies whose time is over, writes again what failed, frees
    /// studies that were removed. The ticker calls it when something is due.
    void tick();

    /// Studies in memory that were removed or refused and that something under way still names.
    [[nodiscard]] std::size_t retired_count() const;

private:
    class Impl;
    explicit Studies(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tune::tuner
