#pragma once
// From a line of a trial's output to metrics. Pure: no I/O.
//
// Two kinds of line count, on stdout and on stderr:
//
//   tune: {"val_loss": 0.31, "step": 4}
//     Numbers are metrics; "step" (an integer) is their step and "timestamp_ms" their time. An
//     object "params" logs params. NaN and infinities may be written as Python's json.dumps does
//     (NaN, Infinity, -Infinity), as programs print them (nan, -inf), or in quotes. A text
//     "artifact" names a file in TUNE_ARTIFACT_DIR that is complete. What is not this is malformed:
//     counted, kept once as an example, never fatal.
//
//   any line that a scrape pattern finds something in (RE2 syntax, which is Python's without
//   look-around and back-references; a user's pattern can therefore not hang the agent):
//     pattern is a plain name, or a name with an empty pattern: `name` then `=`, `:` or blank, then
//       a number;
//     with a name given: group `value` or the first group is the number, group `step` or the second
//       one the step;
//     without a name: groups `name` and `value`; or each named group is a metric of that name
//       (`step` the step); or, unnamed, the first group is the name and the second the value; a
//       single unnamed group is the study's objective.
//   Of a line that rewrites itself with carriage returns only the last state counts.
//
// A metric without a step gets 0, 1, 2, ... for its key.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tuner/protocol.h"

namespace tune::worker {

/// What lines said, in order.
struct LineFindings {
    std::vector<tuner::ReportedMetric> metrics;
    std::vector<tuner::ReportedParam> params;
    std::vector<std::string> artifacts = {};
    std::vector<tuner::ReportedTag> tags = {};  // never of a line
};

/// The next step of each key that was ever reported without one.
using NextSteps = std::map<std::string, std::int64_t, std::less<>>;

class MetricLines {
public:
    /// `objective` names the value of a pattern with one unnamed group. Errors:
    /// kInvalidParameterValue with the pattern and what is wrong with it.
    [[nodiscard]] static Result<MetricLines> create(
        const std::vector<tuner::ScrapePattern>& patterns, std::string objective);
    ~MetricLines();
    MetricLines(MetricLines&&) noexcept;
    MetricLines& operator=(MetricLines&&) noexcept;

    /// Adds what `line` (without its newline) says. O(length of the line times patterns).
    void read(std::string_view line, std::int64_t timestamp_ms, LineFindings& findings);

    [[nodiscard]] const NextSteps& next_steps() const { return next_steps_; }
    void set_next_steps(NextSteps steps) { next_steps_ = std::move(steps); }

    [[nodiscard]] std::int64_t malformed_count() const { return malformed_count_; }
    /// The first malformed `tune:` line (cut at 200 bytes) and why; empty if there was none.
    [[nodiscard]] const std::string& malformed_example() const { return malformed_example_; }

private:
    struct Pattern;
    explicit MetricLines(std::vector<std::unique_ptr<Pattern>> patterns);
    void read_tune_line(std::string_view line, std::string_view json, std::int64_t timestamp_ms,
                        LineFindings& findings);
    void scrape(const Pattern& pattern, std::string_view line, std::int64_t timestamp_ms,
                LineFindings& findings);
    void add(std::string key, double value, const std::int64_t* step, std::int64_t timestamp_ms,
             LineFindings& findings);
    void malformed(std::string_view line, const std::string& why);

    std::vector<std::unique_ptr<Pattern>> patterns_;
    NextSteps next_steps_;
    std::int64_t malformed_count_ = 0;
    std::string malformed_example_;
};

/// JSON with the bare words of Python's json.dumps (NaN, Infinity, -Infinity) and of format strings
/// (nan, inf, -inf) put in quotes; strings stay as they are.
[[nodiscard]] std::string quote_bare_words(std::string_view text);

/// Reads a number as programs print it: decimal or scientific, nan, inf, infinity in any case, with
/// a sign. False if the whole of `text` is not one.
[[nodiscard]] bool read_number(std::string_view text, double& value);

}  // namespace tune::worker
