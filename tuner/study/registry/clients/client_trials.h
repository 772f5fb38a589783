#pragma once
// Ask, report, tell and enqueue: trials in the hands of REST clients.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"

namespace tune::tuner {

/// Thread-safe; each public call takes the lock of Studies, but for `names`, which is called under
/// it. What the calls do: Studies.
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

    void ask(AskRequest request, Done<std::vector<AskedTrial>> done);
    void report(ClientReport report, Done<std::optional<Action>> done);
    void renew(const TrialName& name, Done<std::optional<Action>> done);
    void tell(TellRequest request, Done<void> done);
    void profile(const TrialName& name, std::int64_t steps, Done<void> done);
    void enqueue(const std::string& name, const std::string& params_json, std::string request_id,
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
