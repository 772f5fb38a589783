// Studies whose command cannot work: they stop early, and go on once it was mended.

#include <algorithm>

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {

void Studies::Impl::stop_if_failing(LockedBatch& locked, Study& study) {
    if (!study.stop_if_failing()) return;
    write_study(locked, study, {});
    const std::set<std::uint64_t> running = study.running();
    for (const std::uint64_t number : running)
        direct(locked, study, *study.find(number), Action::kStop,
               "the study was stopped: " + study.note());
}

std::vector<Trial*> Studies::Impl::run_again(Study& study) {
    const bool has_rested = study.state() != StudyState::kRunning;
    study.set_state(StudyState::kRunning);
    note_obstacle(study);
    if (!has_rested) return {};
    std::vector<Trial*> again = study.excuse_failures(now_ms());
    for (Trial* trial : again) admit(study, *trial);
    return again;
}

bool Studies::Impl::is_replaced(const Study& study, const Wanted& wanted) const {
    if (!wanted.options.replace || study.count(TrialState::kComplete) > 0 || is_held(study))
        return false;
    const std::vector<std::string> differences = study.differences(wanted.config);
    const bool is_extended =
        wanted.options.extend &&
        std::all_of(differences.begin(), differences.end(),
                    [](const std::string& difference) { return difference.starts_with("space."); });
    return !differences.empty() && !is_extended;
}

/// The other one can be restored, so nothing is lost but the name.
void Studies::Impl::replace(LockedBatch& locked, Study& study, Wanted wanted) {
    for (const std::string& difference : study.differences(wanted.config))
        wanted.replaced += (wanted.replaced.empty() ? "" : "; ") + difference;
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    erase_study(locked, study, {}, [this, shared](LockedBatch& later, const Result<void>& result) {
        if (!result) return later.after([shared, error = result.error()] { shared->done(error); });
        if (store_.post_read([this, shared] { find_experiment(std::move(*shared)); })) return;
        later.after([shared] {
            shared->done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
        });
    });
}

}  // namespace tune::tuner
