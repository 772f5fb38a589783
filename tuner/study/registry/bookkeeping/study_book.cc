// Studies are found by name, trials by run. A study that is taken out of the list keeps its place
// in memory (Retired) and in the index of runs until nothing names it any more: what is under way
// on other threads holds plain references.

#include "tuner/study/registry/bookkeeping/study_book.h"

#include <algorithm>
#include <utility>

#include "base/id.h"

namespace tune::tuner {

Result<void> check_study_name(const std::string& name) {
    constexpr std::size_t kNameBytesMax = 200;
    const auto is_bad = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/' || c == '\\';
    };
    if (name.empty())
        return Error{Code::kInvalidParameterValue,
                     "the study needs a name ('study' in a file, 'name' over REST)"};
    if (name.size() > kNameBytesMax || std::any_of(name.begin(), name.end(), is_bad) ||
        name == "." || name == "..")
        return Error{Code::kInvalidParameterValue,
                     "'" + name.substr(0, kNameBytesMax) +
                         "' cannot name a study: at most 200 bytes, no '/', no '\\' and no "
                         "control characters"};
    return {};
}

Error experiment_was_deleted(const std::string& study) {
    return {Code::kResourceConflict,
            "the experiment of study '" + study +
                "' was deleted by an MLflow client. `tune restore --study " + study +
                "` brings both back, `tune rm " + study +
                "` removes the study and frees its name; or choose another name (--study NEW)"};
}

Result<void> check_usable(const Study& study) {
    if (!study.is_experiment_deleted()) return {};
    return experiment_was_deleted(study.name());
}

Study* StudyBook::find(std::string_view name) const {
    const auto found = studies_.find(name);
    return found == studies_.end() ? nullptr : found->second.get();
}

Error StudyBook::no_such_study(std::string_view name) const {
    if (const auto aside = unreadable_.find(name); aside != unreadable_.end())
        return {Code::kDataLoss, "study '" + aside->first +
                                     "' cannot be read and is left as it is (" + aside->second +
                                     "); a newer `tune` or a backup may have a readable copy"};
    return {Code::kResourceDoesNotExist,
            "there is no study '" + std::string(name) + "'; `tune ls` lists them"};
}

Study& StudyBook::add(std::unique_ptr<Study> study) {
    const std::string name = study->name();
    return *studies_.emplace(name, std::move(study)).first->second;
}

void StudyBook::rename(const std::string& from, const std::string& to) {
    auto node = studies_.extract(from);
    node.key() = to;
    node.mapped()->rename(to);
    studies_.insert(std::move(node));
}

void StudyBook::retire(Study& study) {
    const auto found = studies_.find(study.name());
    const bool is_here = found != studies_.end() && found->second.get() == &study;
    if (is_here) retired_.add(std::move(studies_.extract(found).mapped()));
}

std::vector<std::unique_ptr<Study>> StudyBook::take_free(
    const std::function<bool(const Study&)>& is_named) {
    std::vector<std::unique_ptr<Study>> freed = retired_.take_free(is_named);
    for (const std::unique_ptr<Study>& study : freed) forget_runs(*study);
    return freed;
}

Error StudyBook::set_aside(const std::string& name, const std::string& why) {
    unreadable_.emplace(name, why);
    return no_such_study(name);
}

void StudyBook::admit(Study& study, Trial& trial) {
    if (!trial.run_id.empty()) return;
    trial.run_id = random_hex(16);
    index_run(study, trial);
}

void StudyBook::index_run(Study& study, Trial& trial) {
    const auto [place, is_new] =
        by_run_.emplace(std::string_view(trial.run_id), TrialRef{&study, &trial});
    if (is_new || place->second.study == &study) return;
    // Of a study that was restored; the key lies in the trial of the removed one.
    by_run_.erase(place);
    by_run_.emplace(std::string_view(trial.run_id), TrialRef{&study, &trial});
}

/// The same runs may be those of a study that was restored meanwhile.
void StudyBook::forget_runs(const Study& study) {
    forget_runs(study, 0, study.trials().size());
}

void StudyBook::forget_runs(const Study& study, std::size_t begin, std::size_t end) {
    for (std::size_t number = begin; number < std::min(end, study.trials().size()); ++number) {
        const auto found = by_run_.find(study.trials()[number].run_id);
        if (found != by_run_.end() && found->second.study == &study) by_run_.erase(found);
    }
}

TrialRef StudyBook::find_run(std::string_view run_id) const {
    const auto found = by_run_.find(run_id);
    if (found == by_run_.end()) return {};
    retired_.touch(*found->second.study);
    return found->second;
}

}  // namespace tune::tuner
