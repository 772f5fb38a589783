#pragma once
// Follows the two output files of an attempt and turns their new lines into segments of metrics.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/unique_fd.h"
#include "worker/agent/output/log_rules.h"
#include "worker/agent/output/metric_lines.h"

namespace tune::worker {

/// How far the output has been read: bytes of stdout and stderr that were consumed as whole lines,
/// and the step counters at that point.
struct OutputPosition {
    std::array<std::int64_t, 2> offset = {0, 0};
    NextSteps next_steps = {};
};

/// Metrics of a stretch of output, and where it ends. Their timestamps are `timestamp_ms` unless
/// the lines carried their own, so that reading the same stretch again gives the same metrics.
struct Segment {
    LineFindings findings;
    OutputPosition end;
    std::int64_t timestamp_ms = 0;
};

/// Not thread-safe.
class TrialOutput {
public:
    /// Lines longer than this are not looked at (they are in the log all the same).
    static constexpr std::size_t kLineBytesMax = 64 << 10;
    /// Read at a time from each file; bounds a segment.
    static constexpr std::size_t kChunkBytes = 64 << 10;

    /// Continues at `from`. The files may not exist yet.
    TrialOutput(std::filesystem::path directory, MetricLines lines, OutputPosition from);

    /// Reads at most one chunk of each file. `segment` gets what was found (possibly nothing).
    /// False when there was nothing new.
    [[nodiscard]] bool read(std::int64_t timestamp_ms, Segment& segment);

    /// After the trial has ended and `read` has returned false: the last lines, if they lack a
    /// newline.
    void read_unfinished_lines(std::int64_t timestamp_ms, Segment& segment);

    /// Reads exactly up to `end`, a stretch that an earlier agent read and sent with this time.
    [[nodiscard]] Segment read_again(const std::array<std::int64_t, 2>& end,
                                     std::int64_t timestamp_ms);

    /// From now on lines are held against these too.
    void set_rules(LogRules rules) { rules_ = std::move(rules); }
    [[nodiscard]] const std::optional<LogRules>& rules() const { return rules_; }

    [[nodiscard]] const MetricLines& lines() const { return lines_; }
    /// Bytes seen so far, both files.
    [[nodiscard]] std::int64_t bytes() const;

    /// The last `bytes` of a stream's file (0 stdout, 1 stderr); empty if there is none.
    [[nodiscard]] std::string tail(int stream, std::size_t bytes) const;

private:
    struct Stream {
        std::filesystem::path path;
        UniqueFd file;
        std::int64_t offset = 0;  // end of the last whole line
        std::string partial;      // read, but not yet a whole line
        bool skipping = false;    // within a line that is too long
    };
    bool open_file(Stream& stream);
    bool read_chunk(Stream& stream, std::int64_t until, std::int64_t timestamp_ms,
                    LineFindings& findings);
    void take(Stream& stream, std::string_view bytes, std::int64_t timestamp_ms,
              LineFindings& findings);
    void end_line(Stream& stream, std::int64_t timestamp_ms, LineFindings& findings);
    void close_segment(std::int64_t timestamp_ms, Segment& segment) const;

    MetricLines lines_;
    std::optional<LogRules> rules_;
    std::array<Stream, 2> streams_;
    std::vector<char> buffer_;
};

/// The last line of `text` that is not blank, without control characters, cut to `bytes_max`.
[[nodiscard]] std::string last_line(std::string_view text, std::size_t bytes_max);

}  // namespace tune::worker
