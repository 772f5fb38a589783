#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/text.h"
#include "tracker/store/registry/registry_types.h"

namespace tune::tracker {

/// Of a version as MLflow stores it, "Deleted_Internal" too; empty is None. Errors: kDataLoss.
[[nodiscard]] inline Result<ModelStage> stored_stage(std::string_view name) {
    if (name.empty()) return ModelStage::kNone;
    for (const ModelStage stage : {ModelStage::kNone, ModelStage::kStaging, ModelStage::kProduction,
                                   ModelStage::kArchived, ModelStage::kDeleted})
        if (lower_ascii(stage_name(stage)) == lower_ascii(name)) return stage;
    return Error{Code::kDataLoss, "a version has an unknown stage"};
}

[[nodiscard]] inline ModelVersionStatus stored_version_status(std::string_view name) {
    for (const ModelVersionStatus status :
         {ModelVersionStatus::kPending, ModelVersionStatus::kFailed})
        if (model_version_status_name(status) == name) return status;
    return ModelVersionStatus::kReady;
}

}  // namespace tune::tracker
