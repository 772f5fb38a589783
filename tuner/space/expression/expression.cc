// Expressions as postfix programs, and how they are computed. The parser is expression_parser.cc.
//
// A program is a list of steps over a stack, each in constant time (`in` in the length of its
// list), without jumps: so a value costs O(length), whatever the user wrote. The compiler has
// checked types and the depth of the stack, hence there is no error here.
//
// Unknown values follow Kleene's three-valued logic: `and` is false if one side is, `or` true if
// one side is, everything else with an unknown part is unknown. `a if c else b` computes both sides
// and chooses, which is right because nothing has an effect. A comparison with NaN (0 / 0) is
// unknown, not false: a rule about what cannot be computed neither holds nor fails.
//
// Numbers behave as in Python: % has the sign of the divisor, // is the floor of the exact
// quotient, round goes half to even.

#include "tuner/space/expression/expression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace tune::tuner {
namespace {

using Step = Expression::Step;

Known known(double value) {
    return {value, true};
}

Known truth(bool value) {
    return {value ? 1.0 : 0.0, true};
}

/// With the sign of the divisor, as in Python. What std::fmod gives is exact.
double modulo(double a, double b) {
    const double rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(rest, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Python's: the quotient of what is left of `a` without the rest, so that a quotient that rounds
/// up to a whole number is not one too large.
double floor_divide(double a, double b) {
    if (b == 0 || !std::isfinite(a) || !std::isfinite(b)) return std::floor(a / b);
    return std::rint((a - modulo(a, b)) / b);
}

double arithmetic(Step step, double a, double b) {
    // The comparisons of max and min are all false for NaN, which must not get lost.
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    switch (step) {
        case Step::kAdd: return a + b;
        case Step::kSubtract: return a - b;
        case Step::kMultiply: return a * b;
        case Step::kDivide: return a / b;
        case Step::kFloorDivide: return floor_divide(a, b);
        case Step::kModulo: return modulo(a, b);
        case Step::kPower: return std::pow(a, b);
        case Step::kMax: return std::max(a, b);
        case Step::kMin: return std::min(a, b);
        default: break;
    }
    TUNE_CHECK(false, "an arithmetic step");
    return 0;
}

double function(Step step, double a) {
    switch (step) {
        case Step::kNegate: return -a;
        case Step::kAbs: return std::abs(a);
        case Step::kCeil: return std::ceil(a);
        case Step::kExp: return std::exp(a);
        case Step::kFloor: return std::floor(a);
        case Step::kLog: return std::log(a);
        case Step::kLog10: return std::log10(a);
        case Step::kLog2: return std::log2(a);
        case Step::kRound: return std::nearbyint(a);
        case Step::kSqrt: return std::sqrt(a);
        default: break;
    }
    TUNE_CHECK(false, "a function of one number");
    return 0;
}

/// What cannot be computed (0 / 0) neither holds nor fails.
Known comparison(Step step, Known a, Known b) {
    if (!a.is_known || !b.is_known || std::isnan(a.value) || std::isnan(b.value)) return {};
    switch (step) {
        case Step::kLess: return truth(a.value < b.value);
        case Step::kLessEqual: return truth(a.value <= b.value);
        case Step::kGreater: return truth(a.value > b.value);
        case Step::kGreaterEqual: return truth(a.value >= b.value);
        case Step::kEqual: return truth(a.value == b.value);
        default: return truth(a.value != b.value);
    }
}

/// `a and b` where `decides` is 0, `a or b` where it is 1.
Known joined(Known a, Known b, double decides) {
    if ((a.is_known && a.value == decides) || (b.is_known && b.value == decides))
        return known(decides);
    return a.is_known && b.is_known ? known(1 - decides) : Known{};
}

Known binary(Step step, Known a, Known b) {
    switch (step) {
        case Step::kLess:
        case Step::kLessEqual:
        case Step::kGreater:
        case Step::kGreaterEqual:
        case Step::kEqual:
        case Step::kNotEqual: return comparison(step, a, b);
        case Step::kAnd: return joined(a, b, 0);
        case Step::kOr: return joined(a, b, 1);
        default: break;
    }
    if (!a.is_known || !b.is_known) return {};
    return known(arithmetic(step, a.value, b.value));
}

bool is_unary(Step step) {
    switch (step) {
        case Step::kNegate:
        case Step::kAbs:
        case Step::kCeil:
        case Step::kExp:
        case Step::kFloor:
        case Step::kLog:
        case Step::kLog10:
        case Step::kLog2:
        case Step::kRound:
        case Step::kSqrt: return true;
        default: return false;
    }
}

}  // namespace

double ComparedValues::place_of(const Json& value) {
    const auto [at, is_new] = places_.emplace(to_text(value), values_.size());
    if (is_new) values_.push_back(value);
    return static_cast<double>(at->second);
}

const Json& ComparedValues::at(double place) const {
    return values_.at(static_cast<std::size_t>(place));
}

ComparedValues::Table ComparedValues::table_of(std::size_t slot, const Parameter& parameter,
                                               ValueType type) {
    Table& table = tables_[slot];
    if (table) return table;
    std::vector<double> values;
    for (const Json& value : parameter.choices)
        values.push_back(type == ValueType::kWord    ? place_of(value)
                         : type == ValueType::kTruth ? (value.get<bool>() ? 1.0 : 0.0)
                                                     : value.get<double>());
    table = std::make_shared<const std::vector<double>>(std::move(values));
    return table;
}

Known Expression::value(const std::vector<double>& slots) const {
    std::array<Known, kExpressionStackMax> stack;  // its depth was checked when it was compiled
    std::size_t top = 0;                           // the free place
    for (const Op& op : ops_) {
        switch (op.step) {
            case Step::kConstant: stack[top++] = known(op.constant); continue;
            case Step::kLoad: {
                const double value = slots[op.index];
                stack[top++] = {value, is_active(value)};
                continue;
            }
            case Step::kLoadListed: {
                const double value = slots[op.index];
                stack[top++] = is_active(value)
                                   ? known((*tables_[op.list])[static_cast<std::size_t>(value)])
                                   : Known{};
                continue;
            }
            case Step::kNot: {
                Known& last = stack[top - 1];
                if (last.is_known) last = truth(last.value == 0);
                continue;
            }
            case Step::kAmong: {
                Known& last = stack[top - 1];
                const auto first = lists_.begin() + static_cast<std::ptrdiff_t>(op.index);
                const auto end = first + static_cast<std::ptrdiff_t>(op.count);
                if (last.is_known) last = truth(std::find(first, end, last.value) != end);
                continue;
            }
            case Step::kSelect: {  // value if true, condition, value if not
                const Known condition = stack[top - 2];
                const Known chosen = condition.value != 0 ? stack[top - 3] : stack[top - 1];
                top -= 2;
                stack[top - 1] = condition.is_known ? chosen : Known{};
                continue;
            }
            default: break;
        }
        if (is_unary(op.step)) {
            Known& last = stack[top - 1];
            if (last.is_known) last.value = function(op.step, last.value);
            continue;
        }
        --top;
        stack[top - 1] = binary(op.step, stack[top - 1], stack[top]);
    }
    return stack[0];
}

}  // namespace tune::tuner
