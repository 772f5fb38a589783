#include "tuner/study/study_state.h"

#include <array>

namespace tune::tuner {
namespace {

constexpr std::array<std::string_view, 4> kStudyStateNames = {"running", "paused", "stopped",
                                                              "completed"};

}  // namespace

std::string_view study_state_name(StudyState state) {
    return kStudyStateNames.at(static_cast<std::size_t>(state));
}

Result<StudyState> study_state_from_name(std::string_view name) {
    for (std::size_t i = 0; i < kStudyStateNames.size(); ++i)
        if (kStudyStateNames[i] == name) return static_cast<StudyState>(i);
    return Error{Code::kInvalidParameterValue, "unknown study state '" + std::string(name) +
                                                   "'; known: running, paused, stopped, completed"};
}

}  // namespace tune::tuner
