#pragma once
// The command of a trial: argv with placeholders.
//
//   {name}    the value of the parameter `name`, or of the derived value
//   {args}    --name=value for every active parameter and derived value that the command names
//   nowhere
//             else; stands
//   as
//             an argument of its own
//   {study} {trial} {attempt} {run_id} {seed}   unless a parameter has that name
//   {{name}}  the text {name}; any other brace is plain text
//
// An argument that names a parameter that is inactive in this trial is left out; if it is only that
// placeholder and the word before it is an option ("--momentum {momentum}"), so is the option.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Splits a command given as one string into words as a shell does: blanks separate, '...' and
/// "..." and backslash quote. Nothing is expanded: `*`, `$` and `|` are plain text. Errors:
/// kInvalidParameterValue for an open quote, with its column.
[[nodiscard]] Result<std::vector<std::string>> split_command(std::string_view text);

/// What a command may name besides parameters.
struct TrialFacts {
    std::string study;
    std::uint64_t trial = 0;
    int attempt = 1;
    std::string run_id;
    std::uint64_t seed = 0;
};

/// Refuses placeholders that are neither parameters nor facts: kInvalidParameterValue with the
/// name, a suggestion and the list of known ones.
[[nodiscard]] Result<void> check_command(const std::vector<std::string>& command,
                                         const Space& space);

/// Whether the command gets a parameter or a derived value as an argument: {args}, or one by its
/// name. REQUIRES: check_command passed.
[[nodiscard]] bool passes_parameters(const std::vector<std::string>& command, const Space& space);

/// The argv of one trial. REQUIRES: check_command passed; `point` belongs to `space`.
[[nodiscard]] std::vector<std::string> fill_command(const std::vector<std::string>& command,
                                                    const Space& space, const Point& point,
                                                    const TrialFacts& facts);

}  // namespace tune::tuner
