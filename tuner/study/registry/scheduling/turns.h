#pragma once
// Whose turn it is: the order of studies, what their users may hold, and what keeps a study from
// being run at all.

#include <cstddef>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/scheduling/quotas.h"

namespace tune::tuner {

/// Not thread-safe, but for set_quota and remove_quota, which take the lock of Studies: part of
/// what that lock guards. O(studies) where all are asked for.
class Turns {
public:
    Turns(const StudyServices& in, const Agents& agents)
        : options_(in.options),
          clock_(in.clock),
          store_(in.store),
          lock_(in.lock),
          events_(in.events),
          book_(in.book),
          agents_(agents) {}

    /// What decides whose turn it is; the name last, so that no two are equal.
    struct Standing {
        int priority = 0;
        double user_share = 0;
        double share = 0;
        std::size_t running = 0;
        const std::string* name = nullptr;
    };
    /// What the study asks for, cut to what its user's quota allows.
    [[nodiscard]] int priority_of(const Study& study) const;
    [[nodiscard]] Standing standing_of(const Study& study) const;
    [[nodiscard]] static bool comes_before(const Standing& a, const Standing& b);

    /// Whether this server's agents may be given trials of the study now.
    [[nodiscard]] bool may_lease(Study& study) const;
    /// The same, and some agent could run it if it had nothing else to do.
    [[nodiscard]] bool may_place(Study& study) const;
    /// Those that may be placed, first come first.
    [[nodiscard]] std::vector<Study*> in_order() const;

    /// Says of a study what keeps agents from running it; of all.
    void note_obstacle(Study& study) const;
    void note_obstacles() const;

    [[nodiscard]] bool is_within_quota(const Study& study, const Usage& more) const;
    /// Why its user's quota lets the study start nothing; empty: it does.
    [[nodiscard]] std::string quota_reason(const Study& study) const;
    [[nodiscard]] const Quotas& quotas() const { return quotas_; }
    /// Takes those that are on disk.
    Result<void> load_quotas();
    void set_quota(Quota quota, Done<void> done);
    void remove_quota(const std::string& user, Done<void> done, const Recording& record);

private:
    const StudiesOptions& options_;
    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    StudyEvents& events_;
    StudyBook& book_;
    const Agents& agents_;
    Quotas quotas_;
};

}  // namespace tune::tuner
