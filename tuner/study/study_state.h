#pragma once
// Whether trials of a study may start, and why not.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tuner/study/budget/study_end.h"

namespace tune::tuner {

/// running: trials may start. paused: none start, running ones go on. stopped: ended by the user;
/// may be resumed. completed: the budget is used, or every point of a finite space.
enum class StudyState { kRunning, kPaused, kStopped, kCompleted };
[[nodiscard]] std::string_view study_state_name(StudyState state);
[[nodiscard]] Result<StudyState> study_state_from_name(std::string_view name);

struct StudyStatus {
    StudyState state = StudyState::kRunning;
    /// Why it is in this state, when that needs saying; one sentence or empty.
    std::string note = {};
    /// What completed it, or that failures stopped it; kNone otherwise.
    StudyEnd end = StudyEnd::kNone;
};

/// Whether somebody works on a study, as its registry sees it. Not kept on disk.
struct Attendance {
    bool is_attended = true;
    /// What its MLflow run says of that: RUNNING, or SCHEDULED while nobody works on it.
    bool is_shown = true;
    /// When a client or an agent last said something of it; 0: never since the registry was opened.
    std::int64_t last_activity_ms = 0;
    /// What keeps agents from running its trials, as a sentence; empty: nothing.
    std::string obstacle = {};
};

}  // namespace tune::tuner
