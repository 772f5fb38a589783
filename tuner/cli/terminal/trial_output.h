#pragma once
// What a trial's command printed, from the logs that its agent stored with the run.

#include <cstddef>
#include <string>
#include <string_view>

namespace tune::cli {

/// The last `lines_max` lines that the run's command wrote to stderr, or to stdout where stderr is
/// empty, indented by two blanks; empty: there are none, or they cannot be read. `url`: of the
/// server. Cost: reads the whole log, keeps its end.
[[nodiscard]] std::string last_output(const std::string& url, const std::string& run_id,
                                      std::size_t lines_max);

/// The last `lines_max` lines of `text`, each printable and indented.
[[nodiscard]] std::string last_lines(std::string_view text, std::size_t lines_max);

}  // namespace tune::cli
