#include "tracker/store/registry/registry_types.h"

#include <array>

#include "base/text/text.h"

namespace tune::tracker {
namespace {

constexpr std::array<std::string_view, 5> kStageNames = {"None", "Staging", "Production",
                                                         "Archived", "Deleted_Internal"};
constexpr std::size_t kNamedStages = 4;  // the last one cannot be asked for

}  // namespace

std::string_view stage_name(ModelStage stage) {
    return kStageNames[static_cast<std::size_t>(stage)];
}

Result<ModelStage> parse_stage(std::string_view name) {
    const std::string lower = lower_ascii(name);
    for (std::size_t i = 0; i < kNamedStages; ++i)
        if (lower_ascii(kStageNames[i]) == lower) return static_cast<ModelStage>(i);
    return Error{Code::kInvalidParameterValue,
                 "Invalid Model Version stage: " + std::string(name) +
                     ". Value must be one of None, Staging, Production, Archived."};
}

std::string_view model_version_status_name(ModelVersionStatus status) {
    switch (status) {
        case ModelVersionStatus::kPending: return "PENDING_REGISTRATION";
        case ModelVersionStatus::kFailed: return "FAILED_REGISTRATION";
        case ModelVersionStatus::kReady: break;
    }
    return "READY";
}

bool is_prompt(const std::vector<Tag>& tags) {
    for (std::size_t i = tags.size(); i-- > 0;)
        if (tags[i].key == kIsPromptTag) return lower_ascii(tags[i].value) == "true";
    return false;
}

}  // namespace tune::tracker
