#pragma once
// What makes a parameter or a set of them impossible; shared by Space::make, whose callers built
// the parameters in code, and by the reader, which adds line and column. Private to tuner/space.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/space/space.h"

namespace tune::tuner {

/// `key`: the part of the parameter's object that is wrong ("float", "step", "when", ...); empty:
/// the parameter as a whole.
struct ParameterError {
    std::string key;
    std::string message;
};

/// The rule for names: a letter or '_', then letters, digits and _ - . /; at most 250 characters.
[[nodiscard]] std::optional<std::string> name_error(std::string_view name);

/// How far from a whole number of steps above `low` a value of the grid may be, in steps: what
/// rounding costs. REQUIRES: step > 0.
[[nodiscard]] double grid_tolerance(const Parameter& parameter, double internal);

/// The value so many steps above `low`. Of a float it is the decimal number that is meant: 0.9 for
/// 3 * 0.3, which is 0.8999999999999999 in doubles.
[[nodiscard]] double grid_value(const Parameter& parameter, double steps);

/// Checks bounds, step, log, choices and init, and lowers `high` to the grid.
[[nodiscard]] std::optional<ParameterError> settle_domain(Parameter& parameter);

/// Checks one condition of a child on its parent: the values asked for must be possible.
[[nodiscard]] std::optional<std::string> condition_error(const Condition& condition,
                                                         const Parameter& parent);

struct ConditionOrder {
    std::vector<std::size_t> parents_first;
    std::vector<std::size_t> cycle;  // not empty: the parameters that form one, first repeated last
};

/// Kahn's order, stable in the order of declaration. O(parameters + conditions).
[[nodiscard]] ConditionOrder order_parents_first(const std::vector<Parameter>& parameters);

/// "a -> b -> a"
[[nodiscard]] std::string cycle_text(const std::vector<Parameter>& parameters,
                                     const std::vector<std::size_t>& cycle);

}  // namespace tune::tuner
