#pragma once
// Filters and order_by of the model registry: registered models and model versions. MLflow reads
// them with other functions than those of runs, which differ in sentences and in quotes.

#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/grammar/comparison.h"

namespace tune::tracker::search {

// Attributes: name; of versions also version_number, run_id, source_path. Entities: attribute (or
// none), tag, tags. REQUIRES of all: subject is kRegisteredModels or kModelVersions. Errors:
// kInvalidParameterValue with MLflow's sentence.

[[nodiscard]] Result<Clause> validate_for_registry(Subject subject, const Comparison& comparison);

/// The canonical key of an order_by clause: "name", "last_updated_timestamp"; of versions also
/// "version_number", "creation_timestamp".
[[nodiscard]] Result<std::string> registry_order_key(Subject subject, std::string_view text);

}  // namespace tune::tracker::search
