#pragma once
// The event files of one run, read together.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "tracker/store/metrics/metric_block.h"
#include "tracker/tensorboard/hparams.h"

namespace tune::tracker {

/// Files in the order of their names, which is that of their times; one thread.
class RunEvents {
public:
    /// `keeps` false: points and params are only counted.
    explicit RunEvents(bool keeps) : keeps_(keeps) {}

    /// Adds a file up to its end or its first damaged record. `name` for notes. Errors: kDataLoss
    /// for a run of more points than can be held, the system's reasons.
    [[nodiscard]] Result<void> add_file(UniqueFd file, const std::string& name);

    /// By tag, in the order in which they were written.
    [[nodiscard]] std::map<std::string, std::vector<Point>, std::less<>>& series() {
        return series_;
    }
    [[nodiscard]] const std::map<std::string, std::string>& params() const { return params_; }
    [[nodiscard]] tensorboard::SessionStatus status() const { return status_; }
    [[nodiscard]] std::optional<std::int64_t> first_ms() const { return first_ms_; }
    [[nodiscard]] std::optional<std::int64_t> last_ms() const { return last_ms_; }

    /// Values that are no scalars, by what they are.
    [[nodiscard]] const std::map<std::string, std::int64_t>& left_out() const { return left_out_; }
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    Result<void> add_event(std::string_view record, const std::string& name);
    Result<void> add_scalar(std::string_view tag, const Point& point);
    void add_session(std::string_view content);
    void restart(std::int64_t step);

    const bool keeps_;
    std::map<std::string, std::vector<Point>, std::less<>> series_;
    std::map<std::string, std::string, std::less<>> plugins_;  // of tags
    std::map<std::string, std::string> params_;
    tensorboard::SessionStatus status_ = tensorboard::SessionStatus::kUnknown;
    std::optional<std::int64_t> first_ms_;
    std::optional<std::int64_t> last_ms_;
    std::map<std::string, std::int64_t> left_out_;
    std::vector<std::string> notes_;
    std::size_t point_count_ = 0;
};

}  // namespace tune::tracker
