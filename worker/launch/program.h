#pragma once
// Other programs (sbatch, ssh, a site's script) as calls: input, output, exit code, a time limit.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::launch {

struct ProgramCall {
    std::vector<std::string> arguments = {};  ///< the program first; looked for in PATH
    std::string input = {};                   ///< its stdin
    /// Added to this process's environment, or in its place.
    std::vector<std::pair<std::string, std::string>> environment = {};
    std::vector<std::string> removed = {};  ///< variables that it does not get
    std::int64_t timeout_ms = 60'000;
};

struct ProgramEnd {
    int exit_code = 0;  ///< 128 + signal where one ended it
    std::string output = {};
    std::string errors = {};  ///< its stderr
};

/// Runs it to its end, in a session of its own: Ctrl-C at our terminal does not reach it. Of each
/// output the first 16 MiB are kept. Errors: kResourceDoesNotExist if there is no such program,
/// kDeadlineExceeded (it is killed then), kInternalError.
[[nodiscard]] Result<ProgramEnd> run_program(const ProgramCall& call);

/// As above, and an exit code other than 0 is kInvalidState with the last lines of its stderr.
[[nodiscard]] Result<std::string> output_of(const ProgramCall& call);

/// Starts it in a session of its own, with `log` for its output, and leaves it; it outlives us.
/// Errors: as run_program.
[[nodiscard]] Result<void> start_program(const ProgramCall& call, const std::string& log);

/// Runs the shell line `at_the_end` when the returned descriptor is closed, also by our death.
[[nodiscard]] Result<UniqueFd> run_when_we_end(const std::string& at_the_end);

/// What a failed program said: the last lines of its stderr, else of its stdout.
[[nodiscard]] std::string complaint_of(const ProgramEnd& end);

/// The last `count` lines of `text`, without the blank ones at its end.
[[nodiscard]] std::string last_lines(std::string_view text, std::size_t count);

}  // namespace tune::launch
