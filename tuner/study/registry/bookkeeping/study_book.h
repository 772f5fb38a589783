#pragma once
// The studies that a server knows, by name, and their trials by run.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tuner/study/retired.h"
#include "tuner/study/study.h"

namespace tune::tuner {

struct TrialRef {
    Study* study = nullptr;
    Trial* trial = nullptr;
};

/// A name stands in URLs, file names and event topics.
[[nodiscard]] Result<void> check_study_name(const std::string& name);

/// What is said of a study whose experiment is deleted, and how it goes on.
[[nodiscard]] Error experiment_was_deleted(const std::string& study);

/// Why nothing can be done with the study before it is restored; nothing: it can.
[[nodiscard]] Result<void> check_usable(const Study& study);

/// Not thread-safe: part of what the lock of Studies guards. Studies stay where they are in memory
/// until they are freed, and trials as long as their study.
class StudyBook {
public:
    using Studies = std::map<std::string, std::unique_ptr<Study>, std::less<>>;

    /// nullptr: there is none.
    [[nodiscard]] Study* find(std::string_view name) const;
    [[nodiscard]] const Studies& all() const { return studies_; }
    /// The answer to whoever asks for a study that is not there.
    [[nodiscard]] Error no_such_study(std::string_view name) const;

    Study& add(std::unique_ptr<Study> study);
    void rename(const std::string& from, const std::string& to);
    /// Takes the study out of the list. What is under way may still name it.
    void retire(Study& study);
    [[nodiscard]] bool is_retired(const Study& study) const { return retired_.contains(study); }
    [[nodiscard]] Retired& retired() { return retired_; }
    [[nodiscard]] const Retired& retired() const { return retired_; }
    /// Takes out retired studies that nothing names any more; `is_named` as of Retired::take_free.
    [[nodiscard]] std::vector<std::unique_ptr<Study>> take_free(
        const std::function<bool(const Study&)>& is_named);

    /// It cannot be read. Its documents stay as they are, and neither the other studies nor the
    /// tracker wait for it. What no_such_study says of it from now on.
    Error set_aside(const std::string& name, const std::string& why);
    [[nodiscard]] bool is_unreadable(std::string_view name) const {
        return unreadable_.contains(name);
    }

    /// Gives a trial that is new its run.
    void admit(Study& study, Trial& trial);
    /// From now on find_run knows the run of the trial, and no more as that of a study that was
    /// removed.
    void index_run(Study& study, Trial& trial);
    /// The opposite, for all runs of the study.
    void forget_runs(const Study& study);
    /// For those of the trials from `begin` on and before `end`.
    void forget_runs(const Study& study, std::size_t begin, std::size_t end);
    /// Nothing in it: it is no trial's run.
    [[nodiscard]] TrialRef find_run(std::string_view run_id) const;

private:
    Studies studies_;
    std::map<std::string, std::string, std::less<>> unreadable_;  // why, by name
    mutable Retired retired_;  // never reached the disk, or erased since
    std::unordered_map<std::string_view, TrialRef> by_run_;  // keys lie in the trials
};

}  // namespace tune::tuner
