// When a study is completed on disk, the model of its best trial becomes a version of the
// registered model that the study names. It is looked for on a reader thread and written in one
// transaction; then it is looked for again, which finds the version that was just made, or that was
// made before a restart. Only then the study itself notes it. A crash at any point leads back to
// the first look.

#include "tuner/study/registry/registration/registrar.h"

#include <string>
#include <utility>

#include "base/log.h"

namespace tune::tuner {
namespace {

/// Somebody may make the registered model between the look and the write.
constexpr int kTriesMax = 3;

}  // namespace

void Registrar::begin(LockedBatch& locked, Study& study) {
    if (!study.registration().is_wanted() || phase_.draining || phase_.stopping ||
        study.is_experiment_deleted())
        return;
    if (!under_way_.insert(&study).second) return;
    locked.after([this, &study, order = registration_order(study)] { look(study, order, 0); });
}

void Registrar::look(Study& study, const RegistrationOrder& order, int tries) {
    const auto fail = [this, &study, order](const Error& error) {
        end(study, {.name = order.name, .trial = order.trial, .error = error.message});
    };
    const bool is_asked = store_.post_read([this, &study, order, tries, fail] {
        const auto found = find_registration(store_, order);
        if (!found) return fail(found.error());
        if (*found) return end(study, **found);
        if (tries >= kTriesMax)
            return fail({Code::kResourceConflict, "the version could not be written"});
        const Result<std::string> model_id = find_trial_model(store_, order);
        if (!model_id) return fail(model_id.error());
        const auto rights = registry_rights(store_, order.name, order.owner, default_permission_);
        if (!rights) return fail(rights.error());
        write_version(study, order, *model_id, *rights, tries + 1);
    });
    if (!is_asked) fail({Code::kRequestLimitExceeded, "the server was busy"});
}

void Registrar::write_version(Study& study, const RegistrationOrder& order,
                              const std::string& model_id, RegistryRights rights, int tries) {
    LockedBatch locked(lock_);
    if (phase_.stopping || book_.is_retired(study))
        return static_cast<void>(under_way_.erase(&study));
    locked.write(registration_commands(order, model_id, rights), [this, &study, order, tries](
                                                                     LockedBatch& later,
                                                                     const Result<void>& result) {
        const bool is_made = !result && result.error().code == Code::kResourceAlreadyExists;
        later.after([this, &study, order, tries, result, is_made] {
            if (result || is_made) return look(study, order, tries);
            end(study, {.name = order.name, .trial = order.trial, .error = result.error().message});
        });
    });
}

void Registrar::end(Study& study, Registration registration) {
    LockedBatch locked(lock_);
    under_way_.erase(&study);
    if (book_.is_retired(study)) return;  // it was removed meanwhile
    if (!registration.error.empty())
        log_warning("study '" + study.name() + "': nothing is registered as '" + registration.name +
                    "': " + registration.error);
    study.registration().set(std::move(registration));
    writer_.write_study(locked, study, {});
}

}  // namespace tune::tuner
