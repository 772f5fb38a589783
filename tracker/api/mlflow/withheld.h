#pragma once
// What a DENY on all runs, logged models or versions takes out of answers about other things, as
// MLflow 3.17's basic-auth app does (its redact_* functions): they repeat ids of what is denied.

#include <optional>
#include <string_view>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/store/permissions/permission_types.h"
#include "tracker/store/reads/runs/run_fields.h"
#include "tracker/store/registry/registry_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Nothing is taken out for who has no viewer: they see all.
void withhold(ModelVersion& version, const std::optional<Viewer>& viewer);
void withhold(RegisteredModel& model, const std::optional<Viewer>& viewer);
void withhold(LoggedModel& model, const std::optional<Viewer>& viewer);
/// From the runs that are read with these fields.
void withhold(RunFields& fields, const std::optional<Viewer>& viewer);

/// A filter by a run's id would tell of which run the model or version is that answers leave out.
/// Errors: kPermissionDenied for those, where runs are denied; kInvalidParameterValue.
[[nodiscard]] Result<void> check_filter(search::Subject subject, std::string_view filter,
                                        const std::optional<Viewer>& viewer);

/// withhold() for each.
template <class Items>
void withhold_each(Items& items, const std::optional<Viewer>& viewer) {
    for (auto& item : items) withhold(item, viewer);
}

}  // namespace tune::tracker
