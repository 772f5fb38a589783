#pragma once
// What plots need of a study, read from the JSON of the REST API.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// A value that is absent.
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct PlotMetric {
    std::string name = {};
    bool is_max = false;
};

struct PlotTrial {
    std::uint64_t number = 0;
    std::string state = {};
    Point point = {};
    std::vector<double> values = {};  // one a metric; NaN: none
    double violation = 0;             // above 0: beyond the study's bounds
    double start_s = 0;               // since the epoch; 0: not started
    double end_s = 0;                 // 0: not ended
    std::string worker = {};
    std::vector<std::pair<double, double>> curve = {};  // step, value

    [[nodiscard]] bool is_complete() const { return state == "complete"; }
};

struct StudyData {
    std::string name = {};
    Space space = {};
    std::vector<PlotMetric> metrics = {};  // at least one
    std::vector<PlotTrial> trials = {};

    /// Lower is better, whatever the goal. NaN without a value.
    [[nodiscard]] double loss(const PlotTrial& trial, std::size_t metric) const;
    /// Complete trials with a finite value of this metric, by number.
    [[nodiscard]] std::vector<const PlotTrial*> complete(std::size_t metric) const;
};

/// `study` and `trials` as GET .../studies/{name} and .../trials give them. Values of parameters
/// that the space does not know are left out. Errors: kInvalidParameterValue when the space cannot
/// be read.
[[nodiscard]] Result<StudyData> study_data(const Json& study, const Json& trials);

/// A number, "NaN", "Infinity" or "-Infinity"; NaN for anything else.
[[nodiscard]] double number_of(const Json& value);

}  // namespace tune::tuner
