// A study's suggestions repeated, from the journal as it lies on disk.

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// Replays that wait or run. One of a large study takes minutes, and there is one thread for them.
constexpr int kReplaysMax = 8;

}  // namespace

void Studies::Impl::replay(const std::string& name, Done<ReplayReport> done) {
    LockedBatch locked(*this);
    const Study* study = find_study(name);
    if (study == nullptr) return locked.after([done, error = no_such_study(name)] { done(error); });
    if (draining_ || replays_waiting_ >= kReplaysMax)
        return locked.after([done] {
            done(Error{Code::kRequestLimitExceeded,
                       std::to_string(kReplaysMax) +
                           " replays wait already, or the server is stopping; try again later"});
        });
    ++replays_waiting_;
    const std::string id = study->identity().id;
    const auto work = [this, name, id]() -> Result<ReplayReport> {
        TUNE_TRY(documents, store_.list_documents(kTrialCollection, id + "/"));
        std::vector<Trial> trials;
        for (const tracker::Document& document : documents) {
            TUNE_TRY(trial, trial_from_document(document.json_text));
            trials.push_back(std::move(trial));
        }
        // After the trials: what they may refer to is there.
        TUNE_TRY(studies, store_.list_documents(kStudyCollection, name));
        for (const tracker::Document& document : studies) {
            if (document.key != name) continue;
            TUNE_TRY(read, study_from_document(document.json_text));
            return tuner::replay(read, trials, [this] {
                const std::lock_guard<std::mutex> lock(mutex_);
                return stopping_;
            });
        }
        return no_such_study(name);
    };
    // On a thread of its own: readers and suggestions are not held up for as long as it takes.
    locked.after([this, work, done] {
        replays_.post([this, work, done] {
            const Result<ReplayReport> report = work();
            {
                const LockedBatch over(*this);
                --replays_waiting_;
            }
            done(report);
        });
    });
}

}  // namespace tune::tuner
