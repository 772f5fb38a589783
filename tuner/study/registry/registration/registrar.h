#pragma once
// Brings the best trial's model into the model registry, where its study wants that.

#include <optional>
#include <set>
#include <string>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/registration/registration.h"

namespace tune::tuner {

/// Not thread-safe, but for what it posts: part of what the lock of Studies guards.
class Registrar {
public:
    explicit Registrar(const StudyServices& in)
        : store_(in.store),
          lock_(in.lock),
          phase_(in.phase),
          book_(in.book),
          writer_(in.writer),
          default_permission_(in.options.default_permission) {}

    /// Begins to register the model of the study's best trial, if that is wanted and due. What came
    /// of it, the study notes (RegistrationState).
    void begin(LockedBatch& locked, Study& study);
    /// Whether the study's model is on its way.
    [[nodiscard]] bool names(const Study& study) const { return under_way_.contains(&study); }

private:
    void look(Study& study, const RegistrationOrder& order, int tries);
    void write_version(Study& study, const RegistrationOrder& order, const std::string& model_id,
                       RegistryRights rights, int tries);
    void end(Study& study, Registration registration);

    tracker::Store& store_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyBook& book_;
    StudyWriter& writer_;
    std::optional<tracker::Permission> default_permission_;
    std::set<const Study*> under_way_;
};

}  // namespace tune::tuner
