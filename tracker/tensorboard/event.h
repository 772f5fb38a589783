#pragma once
// One event of a TensorBoard file: a time, a step, and values by tag.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::tensorboard {

struct Scalar {
    std::string_view tag;
    double value = 0.0;
};

/// A value of an event; views into the event's bytes.
struct Value {
    std::string_view tag;
    /// A simple value, or a tensor of one number: TF2, and torch with new_style, write the latter.
    std::optional<double> number;
    bool is_simple = false;
    /// Of what is neither: "images", "histograms" or "audio" as TF1 stored them.
    std::string_view kind = {};
    /// Of the metadata, which a writer may leave out after a tag's first value.
    std::string_view plugin = {};
    std::string_view plugin_content = {};
};

struct Event {
    double wall_time_s = 0.0;
    std::int64_t step = 0;
    std::string_view file_version = {};
    /// What came before with this step or a later one counts no more: the writer began anew.
    bool starts_session = false;
    std::vector<Value> values = {};
};

/// Values of one event, at most: each takes 100 bytes of memory, and two in a file.
inline constexpr std::size_t kEventValuesMax = 1'000'000;

/// Errors: kDataLoss where the bytes are no event. `values` refer to `bytes`.
[[nodiscard]] Result<Event> parse_event(std::string_view bytes);

/// The first record of a file.
[[nodiscard]] std::string version_event(double wall_time_s);
/// A writer that begins anew: what earlier files have from `step` on is not shown.
[[nodiscard]] std::string start_event(double wall_time_s, std::int64_t step);
/// Scalars as the 32-bit simple values that every version of TensorBoard shows (its fast loader
/// passes over 64-bit ones); beside each lies the whole number, which parse_event() reads.
[[nodiscard]] std::string scalar_event(double wall_time_s, std::int64_t step,
                                       std::span<const Scalar> scalars);
/// A tag that is all metadata of a plugin.
[[nodiscard]] std::string plugin_event(double wall_time_s, std::string_view tag,
                                       std::string_view plugin, std::string_view content);

}  // namespace tune::tensorboard
