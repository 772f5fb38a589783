#pragma once
// What it takes to register the model of a study's best trial: what to look for in the store, and
// what to write.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/store/commands/commands.h"
#include "tracker/store/permissions/permission_types.h"
#include "tracker/store/store.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// One model of one study that is to be registered. A value: it outlives the lock.
struct RegistrationOrder {
    std::string name = {};  ///< of the registered model
    std::string study = {};
    std::string study_id = {};
    std::int64_t experiment_id = 0;
    std::string run_id = {};  ///< of the best trial
    std::uint64_t trial = 0;
    std::string owner = {};  ///< the user for whom it is done; empty: the server's own
};

/// What the owner of the study may do.
struct RegistryRights {
    bool has_model = false;     ///< the registered model exists
    std::int64_t owner_id = 0;  ///< who will manage a new one; 0: nobody in particular
};

[[nodiscard]] RegistrationOrder registration_order(const Study& study);

/// The version that an earlier try made of this study's trial; nothing: there is none. Blocking.
[[nodiscard]] Result<std::optional<Registration>> find_registration(const tracker::Store& store,
                                                                    const RegistrationOrder& order);

/// The id of the trial's logged model: the last one that is READY. Blocking. Errors:
/// kResourceDoesNotExist in a sentence for the user.
[[nodiscard]] Result<std::string> find_trial_model(const tracker::Store& store,
                                                   const RegistrationOrder& order);

/// Whether the owner of a study may add a version to the model `name`, or make it. `by_default`:
/// what no grant is about; nothing: no users. Blocking. Errors: kPermissionDenied.
[[nodiscard]] Result<RegistryRights> registry_rights(
    const tracker::Store& store, const std::string& name, const std::string& owner,
    const std::optional<tracker::Permission>& by_default);

/// The version, and the registered model where there is none, in one transaction.
[[nodiscard]] std::vector<tracker::Command> registration_commands(const RegistrationOrder& order,
                                                                  const std::string& model_id,
                                                                  const RegistryRights& rights);

}  // namespace tune::tuner
