// What makes a domain, a condition or a set of parameters impossible, with the sentence for it.
//
// Three kinds of limits stand here. What the user means: low above high, a step larger than the
// range, a logarithm of zero. What doubles can do: integers up to 2^53, ranges whose sums and
// differences do not overflow, steps that are not lost beside the bounds. And what JSON can store:
// no infinities, no value listed twice under two spellings (1 and 1.0).
//
// settle_domain also lowers `high` to the last value of the grid, so that all later code may take
// `high` for a value. order_parents_first is Kahn's algorithm with the lowest index first, so that
// the order is that of declaration wherever conditions leave a choice; whoever still waits at its
// end has a parent that waits too, so following such parents must come round, and that walk is the
// cycle which the error shows.

#include "tuner/space/space_check.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_set>

#include "base/limits.h"
#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/prior.h"

namespace tune::tuner {
namespace {

/// Integers beyond 2^53 are not exact as doubles.

/// Sums and differences of bounds, and parts of a range, must be doubles with all their digits.
constexpr double kBoundMax = 1e307;
constexpr double kRangeMin = 1e-290;
/// Of a step: what rounding may cost.
constexpr double kRoundingMax = 0.25;

using Fault = std::optional<ParameterError>;

std::string shown(const Parameter& p, double value) {
    return p.kind == Kind::kInt && value == std::floor(value) && std::abs(value) <= kIntegerMax
               ? std::to_string(static_cast<std::int64_t>(value))
               : number_text(value);
}

Fault range_error(const Parameter& p) {
    const std::string key(kind_name(p.kind));
    if (!std::isfinite(p.low) || !std::isfinite(p.high))
        return ParameterError{key, "bounds must be finite numbers"};
    if (p.low > p.high)
        return ParameterError{key, "the lower bound " + shown(p, p.low) +
                                       " is above the upper bound " + shown(p, p.high) +
                                       "; expected [low, high]"};
    const auto range_is = [&](const char* what) {
        return ParameterError{key, "the range from " + shown(p, p.low) + " to " + shown(p, p.high) +
                                       " is too " + what + " for a double"};
    };
    const bool is_bounded = std::max(std::abs(p.low), std::abs(p.high)) <= kBoundMax;
    if (!is_bounded && !p.log && p.low < p.high) return range_is("large");
    const bool has_room =
        p.log && p.low > 0 ? std::log(p.low) < std::log(p.high) : p.high - p.low >= kRangeMin;
    if (!has_room && p.low < p.high) return range_is("narrow");
    if (p.kind != Kind::kInt) return std::nullopt;
    if (p.low != std::floor(p.low) || p.high != std::floor(p.high))
        return ParameterError{key, "an int needs integer bounds, found " + number_text(p.low) +
                                       " and " + number_text(p.high) +
                                       "; use float for real numbers"};
    if (std::abs(p.low) > kIntegerMax || std::abs(p.high) > kIntegerMax)
        return ParameterError{key, "integers beyond 2^53 are not exact; expected smaller bounds"};
    return std::nullopt;
}

Fault step_error(const Parameter& p) {
    if (p.kind == Kind::kFloat && p.step == 0) return std::nullopt;
    if (!std::isfinite(p.step) || p.step <= 0)
        return ParameterError{"step", "a step must be above 0, found " + shown(p, p.step)};
    if (p.kind == Kind::kInt && p.step != std::floor(p.step))
        return ParameterError{"step", "an int needs an integer step, found " + number_text(p.step)};
    if (p.low < p.high && (p.high - p.low) / p.step < 1 - 1e-9)  // 0.9..1 by 0.1 has two values
        return ParameterError{"step", "step " + shown(p, p.step) + " is larger than the range " +
                                          shown(p, p.low) + ".." + shown(p, p.high) +
                                          ", so only one value would be left"};
    const double largest = std::max(std::abs(p.low), std::abs(p.high));
    if (p.kind == Kind::kFloat && p.low < p.high && grid_tolerance(p, largest) > kRoundingMax)
        return ParameterError{"step", "step " + shown(p, p.step) + " is too fine beside " +
                                          shown(p, largest) + ": doubles have 16 digits"};
    if ((p.high - p.low) / p.step > kIntegerMax)
        return ParameterError{"step", "step " + shown(p, p.step) + " gives more than 2^53 values"};
    return std::nullopt;
}

Fault log_error(const Parameter& p) {
    if (!p.log) return std::nullopt;
    if (p.low <= 0)
        return ParameterError{
            std::string(kind_name(p.kind)),
            "a log scale needs bounds above 0, found " + shown(p, p.low) +
                (p.kind == Kind::kInt ? "; start at 1" : "; start at a small number such as 1e-6")};
    if (p.kind == Kind::kFloat && p.step > 0)
        return ParameterError{"step",
                              "a float on a log scale cannot have a step; drop 'step', or "
                              "use an int or an ordinal"};
    if (p.kind == Kind::kInt && p.low - p.step / 2 <= 0)
        return ParameterError{"step", "on a log scale the lower bound must be above half a step; " +
                                          shown(p, p.low) + " is not above " +
                                          number_text(p.step / 2)};
    return std::nullopt;
}

/// JSON has neither, so they would not come back from where a study is stored.
bool has_no_json(const Json& value) {
    if (value.is_number_float()) return !std::isfinite(value.get<double>());
    return value.is_structured() && std::any_of(value.begin(), value.end(), has_no_json);
}

Fault choices_error(Parameter& p) {
    const std::string key(kind_name(p.kind));
    if (p.choices.empty())
        return ParameterError{key, "the list of values is empty; expected at least one"};
    if (p.choices.size() > kChoicesMax)
        return ParameterError{key, "the list has " + std::to_string(p.choices.size()) +
                                       " values; at most " + std::to_string(kChoicesMax) +
                                       " are supported"};
    std::unordered_set<std::string> seen;
    for (const Json& value : p.choices) {
        if (has_no_json(value))
            return ParameterError{key,
                                  "infinity and NaN are no values of JSON; write the text "
                                  "that your program reads, such as \"inf\""};
        // 1 and 1.0 are one value, as they are in JSON.
        const bool whole = value.is_number_float() && std::abs(value.get<double>()) < 1e15 &&
                           value.get<double>() == std::floor(value.get<double>());
        const std::string text =
            to_text(whole ? Json(static_cast<std::int64_t>(value.get<double>())) : value);
        if (!seen.insert(text).second)
            return ParameterError{key, "the value " + shortened(text) + " is listed twice"};
    }
    p.low = 0;
    p.high = static_cast<double>(p.choices.size() - 1);
    p.step = 1;
    p.log = false;
    return std::nullopt;
}

Fault init_error(const Parameter& p) {
    if (!p.init || p.contains(*p.init)) return std::nullopt;
    return ParameterError{
        "init", "the first value " + number_text(*p.init) + " is not a value of this parameter"};
}

}  // namespace

std::optional<std::string> name_error(std::string_view name) {
    if (name.empty()) return "a parameter needs a name";
    if (name.size() > kKeyCharsMax)
        return "the name " + in_quotes(name) + " has " + std::to_string(name.size()) +
               " characters; at most " + std::to_string(kKeyCharsMax) + " are allowed";
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto is_inner = [&](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/';
    };
    if (!is_letter(name[0]) || !std::all_of(name.begin(), name.end(), is_inner))
        return "the name " + in_quotes(name) +
               " is not usable; expected a letter or '_', then letters, digits, '_', '-', '.', '/'";
    if (name == "args") return "the name 'args' is taken by the placeholder {args}; choose another";
    return std::nullopt;
}

Fault settle_domain(Parameter& p) {
    if (p.kind == Kind::kFloat || p.kind == Kind::kInt) {
        if (p.kind == Kind::kInt && p.step == 0) p.step = 1;
        for (Fault (*check)(const Parameter&) : {range_error, step_error, log_error})
            if (Fault error = check(p)) return error;
        if (p.step > 0 && p.low < p.high) {
            // Also where it is a grid point as written, but for rounding: another program's, or
            // one that an earlier version recorded.
            const double rounding = p.kind == Kind::kFloat ? grid_tolerance(p, p.high) : 1e-9;
            const double steps = std::floor((p.high - p.low) / p.step + rounding);
            p.high = std::max(p.low, grid_value(p, steps));
        }
    } else if (Fault error = choices_error(p)) {
        return error;
    }
    if (Fault error = prior_error(p)) return error;
    return init_error(p);
}

std::optional<std::string> condition_error(const Condition& condition, const Parameter& parent) {
    for (const double value : condition.any_of)
        if (!parent.contains(value))
            return in_quotes(parent.name) + " can never have the value asked for";
    if (!condition.any_of.empty()) return std::nullopt;
    const bool some_low =
        condition.low_open ? parent.high > condition.low : parent.high >= condition.low;
    const bool some_high =
        condition.high_open ? parent.low < condition.high : parent.low <= condition.high;
    const bool crossed =
        condition.low > condition.high ||
        (condition.low == condition.high && (condition.low_open || condition.high_open));
    if (some_low && some_high && !crossed) return std::nullopt;
    return "the condition can never hold: " + in_quotes(parent.name) +
           " has no value in that range";
}

ConditionOrder order_parents_first(const std::vector<Parameter>& parameters) {
    const std::size_t count = parameters.size();
    std::vector<std::vector<std::size_t>> children(count);
    std::vector<std::size_t> waiting(count, 0);
    for (std::size_t i = 0; i < count; ++i)
        for (const Condition& condition : parameters[i].when) {
            children[condition.parent].push_back(i);
            ++waiting[i];
        }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < count; ++i)
        if (waiting[i] == 0) ready.push(i);
    ConditionOrder order;
    while (!ready.empty()) {
        const std::size_t next = ready.top();
        ready.pop();
        order.parents_first.push_back(next);
        for (const std::size_t child : children[next])
            if (--waiting[child] == 0) ready.push(child);
    }
    if (order.parents_first.size() == count) return order;

    // Whoever still waits has a parent that waits: following parents must come round.
    std::size_t at = 0;
    while (waiting[at] == 0) ++at;
    std::vector<std::size_t> path;
    std::vector<std::size_t> seen_at(count, count);
    while (seen_at[at] == count) {
        seen_at[at] = path.size();
        path.push_back(at);
        for (const Condition& condition : parameters[at].when)
            if (waiting[condition.parent] != 0) {
                at = condition.parent;
                break;
            }
    }
    order.cycle.assign(path.begin() + static_cast<std::ptrdiff_t>(seen_at[at]), path.end());
    order.cycle.push_back(at);
    return order;
}

std::string cycle_text(const std::vector<Parameter>& parameters,
                       const std::vector<std::size_t>& cycle) {
    std::vector<std::string> names;
    for (const std::size_t index : cycle) names.push_back(parameters[index].name);
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i == 8 && names.size() > 10) {
            text += " -> ... -> " + names.back();
            break;
        }
        text += (i == 0 ? "" : " -> ") + names[i];
    }
    return text;
}

}  // namespace tune::tuner
