#pragma once
// Ask, report, tell and enqueue: trials in the hands of REST clients.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/clients/client_requests.h"

namespace tune::tuner {

/// Thread-safe; each public call takes the lock of Studies, but for `names`, which is called under
/// it. Completions are called as those of Studies are.
class ClientTrials {
public:
    explicit ClientTrials(const StudyServices& in)
        : clock_(in.clock),
          lock_(in.lock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book),
          commits_(in.commits),
          writer_(in.writer),
          suggestions_(in.suggestions) {}

    /// Fewer than `count` trials (also none) when the study may not start more; `read` says why.
    /// Errors: kResourceDoesNotExist; kInvalidParameterValue for a count outside 1..kAskCountMax,
    /// a lease outside 0..kAskLeaseMax_ms.
    void ask(AskRequest request, Done<std::vector<AskedTrial>> done);
    /// Logs the value and answers what the pruner says of it: nothing means go on. Errors:
    /// kResourceConflict for an attempt that is not the current one; kInvalidParameterValue for a
    /// metric that the study does not measure, or none where it has several objectives; for a trial
    /// with a lease whose attempt is not named.
    void report(ClientReport report, Done<std::optional<Action>> done);
    /// The attempt's lease begins anew. Answers as report does; without a lease that is all.
    /// Nothing is written. Errors: those of report about the attempt.
    void renew(const TrialName& trial, Done<std::optional<Action>> done);
    /// Asks the agents of a running trial for a trace of so many steps. Errors:
    /// kResourceDoesNotExist; kInvalidParameterValue for steps outside 1..kProfileStepsMax;
    /// kResourceConflict for a trial that does not run, or not in a process of its own of an agent.
    void profile(const TrialName& trial, std::int64_t steps, Done<void> done);
    /// Ends the attempt. A repeat is fine. Errors: kResourceConflict for an attempt that is not
    /// the current one or a trial that has ended otherwise (cancelled: fine);
    /// kInvalidParameterValue for more or fewer values than objectives, a constraint or a cost that
    /// the study does not have, a complete trial of which a value is missing, a trial with a lease
    /// whose attempt is not named.
    void tell(TellRequest request, Done<void> done);
    /// `params_json`: an object, may be partial. The trial waits for the next ask or agent.
    void enqueue(const std::string& study, const std::string& params_json, std::string request_id,
                 Done<AskedTrial> done);

    /// Whether an ask that is being answered is about the study. Under the lock.
    [[nodiscard]] bool names(const Study& study) const;

private:
    /// An ask that is being answered. Its leases begin when it is.
    struct Asking {
        AskRequest request;
        Study* study = nullptr;
        std::vector<Trial*> trials;
        std::vector<Done<std::vector<AskedTrial>>> done;  ///< repeats of the request wait too
    };
    void continue_ask(LockedBatch& locked, const std::shared_ptr<Asking>& asking);
    void end_ask(LockedBatch& locked, const std::shared_ptr<Asking>& asking);
    void enqueue_point(LockedBatch& locked, Study& study, Point point, std::string request_id,
                       Done<AskedTrial> done);
    void answer_enqueued(LockedBatch& locked, Study& study, Trial& trial, Done<AskedTrial> done);
    [[nodiscard]] Result<TrialRef> find_named(const TrialName& name) const;
    [[nodiscard]] Result<std::optional<TrialRef>> held_by_client(const TrialName& name) const;
    void renew_lease(Trial& trial) const;
    void report_written(const TrialName& name, Done<std::optional<Action>> done);
    void tell_after_metrics(TellRequest request, Done<void> done);
    Result<void> apply_tell(LockedBatch& locked, const TrialRef& ref, const TellRequest& request);
    void write_final_values(LockedBatch& locked, const TrialRef& ref,
                            const std::vector<std::optional<double>>& given,
                            std::optional<double> cost);
    void answer_written(LockedBatch& locked, const TrialRef& ref, Done<void> done);

    const Clock& clock_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
    ObservedCommits& commits_;
    StudyWriter& writer_;
    Suggestions& suggestions_;
    std::map<std::pair<const Study*, std::string>, std::shared_ptr<Asking>> asking_;  // by request
};

}  // namespace tune::tuner
