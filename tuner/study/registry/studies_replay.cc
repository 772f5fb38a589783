// A study's suggestions repeated, from the journal as it lies on disk.

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {

void Studies::Impl::replay(const std::string& name, Done<ReplayReport> done) const {
    std::string id;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const Study* study = find_study(name);
        if (study != nullptr) id = study->identity().id;
    }
    if (id.empty()) return done(no_such_study(name));
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
            TUNE_TRY(study, study_from_document(document.json_text));
            return tuner::replay(study, trials, [this] {
                const std::lock_guard<std::mutex> lock(mutex_);
                return stopping_;
            });
        }
        return no_such_study(name);
    };
    if (!store_.post_read([work, done] { done(work()); }))
        done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
}

}  // namespace tune::tuner
