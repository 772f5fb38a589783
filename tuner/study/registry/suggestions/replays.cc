#include "tuner/study/registry/suggestions/replays.h"

#include <utility>
#include <vector>

#include "tuner/study/journal/journal.h"

namespace tune::tuner {
void Replays::replay(const std::string& name, Done<ReplayReport> done) {
    LockedBatch locked(lock_);
    const Study* study = book_.find(name);
    if (study == nullptr)
        return locked.after([done, error = book_.no_such_study(name)] { done(error); });
    if (phase_.draining || waiting_ >= kReplaysMax)
        return locked.after([done] {
            done(Error{Code::kRequestLimitExceeded,
                       std::to_string(kReplaysMax) +
                           " replays wait already, or the server is stopping; try again later"});
        });
    ++waiting_;
    locked.after([this, name, id = study->identity().id, done = std::move(done)] {
        pool_.post([this, name, id, done] {
            const Result<ReplayReport> report = run(name, id);
            {
                const auto lock = lock_.take();
                --waiting_;
            }
            done(report);
        });
    });
}

Result<ReplayReport> Replays::run(const std::string& name, const std::string& id) {
    if (options_.before_reading) options_.before_reading(name);
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
        return tuner::replay(*read, trials, [this] {
            const auto lock = lock_.take();
            return phase_.stopping;
        });
    }
    return book_.no_such_study(name);
}

}  // namespace tune::tuner
