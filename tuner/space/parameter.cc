// A parameter's domain: what it contains, and the way between internal and external values.
//
// Internally a value is a double: a float or int itself, the place in the list of a choice, ordinal
// or const. Grids are low + k * step, and that is not the number that people mean: 3 * 0.3 is
// 0.8999999999999999. grid_value gives the decimal of 15 digits instead where that is within the
// tolerance of the grid, so that logged params read as they were written; contains() allows for as
// much rounding, a billionth of a step or a few units in the last place, whichever is more. snap()
// goes through the same function, so a value that is read back from its text is the same double.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/space.h"
#include "tuner/space/space_check.h"

namespace tune::tuner {
namespace {

/// Of a step: what rounding in `low + k * step` may cost.
constexpr double kGridTolerance = 1e-9;

std::string bounds_text(const Parameter& parameter) {
    const auto shown = [&](double v) {
        return parameter.kind == Kind::kInt ? std::to_string(static_cast<std::int64_t>(v))
                                            : number_text(v);
    };
    return shown(parameter.low) + ".." + shown(parameter.high);
}

Result<double> internal_of_number(const Parameter& parameter, double value) {
    if (!std::isfinite(value)) return invalid_parameter("expected a finite number");
    if (parameter.kind == Kind::kInt && value != std::floor(value))
        return invalid_parameter("expected an integer, found " + number_text(value));
    if (value < parameter.low || value > parameter.high)
        return invalid_parameter(number_text(value) + " lies outside " + bounds_text(parameter));
    if (!parameter.contains(value))
        return invalid_parameter(number_text(value) + " is not on the grid " +
                                 bounds_text(parameter) + " with step " +
                                 number_text(parameter.step));
    return parameter.step > 0 ? parameter.snap(value) : value;
}

/// "the text '1'", "the number 1", ...: values that look alike.
std::string with_type(const Json& value) {
    if (value.is_string()) return "the text " + in_quotes(value.get<std::string>());
    return (value.is_number() ? "the number " : "the value ") + shortened(to_text(value));
}

std::vector<std::string> choice_texts(const Parameter& parameter) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < parameter.choices.size(); ++i)
        texts.push_back(parameter.text(static_cast<double>(i)));
    return texts;
}

}  // namespace

std::string_view kind_name(Kind kind) {
    switch (kind) {
        case Kind::kFloat: return "float";
        case Kind::kInt: return "int";
        case Kind::kChoice: return "choice";
        case Kind::kOrdinal: return "ordinal";
        case Kind::kConst: return "const";
    }
    return "?";
}

bool Condition::holds(double parent_internal) const {
    if (!is_active(parent_internal)) return false;
    if (!any_of.empty()) return std::binary_search(any_of.begin(), any_of.end(), parent_internal);
    const bool above = low_open ? parent_internal > low : parent_internal >= low;
    const bool below = high_open ? parent_internal < high : parent_internal <= high;
    return above && below;
}

Parameter::Parameter() = default;
Parameter::Parameter(const Parameter&) = default;
Parameter::Parameter(Parameter&&) noexcept = default;
Parameter& Parameter::operator=(const Parameter&) = default;
Parameter& Parameter::operator=(Parameter&&) noexcept = default;
Parameter::~Parameter() = default;

double grid_tolerance(const Parameter& parameter, double internal) {
    // Of a fine grid the values themselves are off by some ulps, which are parts of a step.
    return std::max(kGridTolerance, 4 * std::numeric_limits<double>::epsilon() *
                                        std::max(std::abs(internal), std::abs(parameter.low)) /
                                        parameter.step);
}

double grid_value(const Parameter& parameter, double steps) {
    const double value = parameter.low + steps * parameter.step;
    if (parameter.kind != Kind::kFloat) return value;
    // 15 digits of the larger of the two: below zero the sum keeps the rounding of what it was
    // subtracted from. A double has 308 digits before the point or after it, at most.
    char text[400];
    const double low = std::abs(parameter.low);
    if (low <= std::abs(value)) {
        std::snprintf(text, sizeof text, "%.15g", value);
    } else {
        const double decimals = 14 - std::floor(std::log10(low));
        std::snprintf(text, sizeof text, "%.*f", static_cast<int>(std::max(decimals, 0.0)), value);
    }
    const double decimal = std::strtod(text, nullptr) + 0.0;  // no -0
    // A finer grid needs more digits than that.
    const double tolerance = grid_tolerance(parameter, value) * parameter.step;
    return std::abs(decimal - value) > tolerance ? value : decimal;
}

std::uint64_t Parameter::count() const {
    if (step == 0) return is_single() ? 1 : 0;
    return static_cast<std::uint64_t>(std::rint((high - low) / step)) + 1;
}

bool Parameter::contains(double internal) const {
    if (!(internal >= low && internal <= high)) return false;
    if (step == 0) return true;
    const double steps = (internal - low) / step;
    return std::abs(steps - std::rint(steps)) <= grid_tolerance(*this, internal);
}

double Parameter::snap(double internal) const {
    const double inside = std::clamp(internal, low, high);
    if (step == 0) return inside;
    return std::clamp(grid_value(*this, std::rint((inside - low) / step)), low, high);
}

Json Parameter::external(double internal) const {
    switch (kind) {
        case Kind::kFloat: return internal;
        case Kind::kInt: return static_cast<std::int64_t>(internal);
        default: return choices[static_cast<std::size_t>(internal)];
    }
}

Result<double> Parameter::internal(const Json& external) const {
    if (kind == Kind::kFloat || kind == Kind::kInt) {
        if (!external.is_number())
            return invalid_parameter("expected " +
                                     std::string(kind == Kind::kInt ? "an integer" : "a number") +
                                     ", found " + shortened(to_text(external)));
        return internal_of_number(*this, external.get<double>());
    }
    for (std::size_t i = 0; i < choices.size(); ++i)
        if (choices[i] == external) return static_cast<double>(i);
    const std::string word = external.is_string() ? external.get<std::string>() : to_text(external);
    for (std::size_t i = 0; i < choices.size(); ++i)
        if (text(static_cast<double>(i)) == word)
            return invalid_parameter(with_type(external) + " is not one of its values, but " +
                                     with_type(choices[i]) + " is");
    return invalid_parameter(in_quotes(word) + " is not one of its values" +
                             known_words(word, choice_texts(*this)));
}

Result<double> Parameter::internal_from_text(std::string_view text) const {
    if (kind == Kind::kFloat || kind == Kind::kInt) {
        double value = 0;
        const char* end = text.data() + text.size();
        const auto [stop, ec] = std::from_chars(text.data(), end, value);
        if (ec != std::errc() || stop != end)
            return invalid_parameter("expected a number, found " + in_quotes(text));
        return internal_of_number(*this, value);
    }
    for (std::size_t i = 0; i < choices.size(); ++i)
        if (this->text(static_cast<double>(i)) == text) return static_cast<double>(i);
    return invalid_parameter(in_quotes(text) + " is not one of its values" +
                             known_words(text, choice_texts(*this)));
}

std::string Parameter::text(double internal) const {
    if (kind == Kind::kFloat) return number_text(internal);
    if (kind == Kind::kInt) return std::to_string(static_cast<std::int64_t>(internal));
    const Json& value = choices[static_cast<std::size_t>(internal)];
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) return number_text(value.get<double>());
    return to_text(value);
}

}  // namespace tune::tuner
