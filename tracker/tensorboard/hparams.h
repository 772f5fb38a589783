#pragma once
// What the plugin `hparams` keeps of a run: its parameters, and how it ended.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tune::tensorboard {

inline constexpr std::string_view kHparamsPlugin = "hparams";
/// Tags of the two events that a session has.
inline constexpr std::string_view kSessionStartTag = "_hparams_/session_start_info";
inline constexpr std::string_view kSessionEndTag = "_hparams_/session_end_info";

enum class SessionStatus { kUnknown, kSuccess, kFailure, kRunning };

/// What one event of the plugin says: either of its two halves.
struct Session {
    /// Name and text; numbers in their shortest form, True and False as Python writes them.
    std::vector<std::pair<std::string, std::string>> params = {};
    std::optional<SessionStatus> status = {};
    std::optional<double> end_time_s = {};
};

/// `content` of the plugin's metadata. What is no text, number or truth value is left out. Errors:
/// kDataLoss.
[[nodiscard]] Result<Session> parse_session(std::string_view content);

/// Contents of the two events. A param becomes a number where reading that back gives its text.
[[nodiscard]] std::string session_start(
    const std::vector<std::pair<std::string, std::string>>& params, double time_s);
[[nodiscard]] std::string session_end(SessionStatus status, double time_s);

}  // namespace tune::tensorboard
