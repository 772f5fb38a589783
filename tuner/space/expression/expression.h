#pragma once
// The small language of rules: `lr * sqrt(batch / 256)`, `opt == 'sgd' and lr > 0.05`.
//
//   operators   a if c else b; or; and; not; == != < <= > >= in, not in; + -; * / // %; -x; **
//               (loosest first, with Python's meaning; comparisons do not chain)
//   functions   abs ceil exp floor log log10 log2 max min pow round sqrt
//   values      1e-3, 'text', true, false, null, [lists] after `in`
//   names       lr, opt.lr, or {weight-decay} for any name of a parameter or derived value
//
// Safe: no loops, no calls of the user's, no access to anything; a bound on length and nesting, and
// therefore on time and memory. Numbers are doubles: a division by zero is infinite or NaN, never a
// trap.
//
// Three-valued: what is said of a parameter that the conditions switch off (or that has no value
// yet) is unknown. `a and b` is false if one of them is, `a or b` true if one of them is, whatever
// the other; everything else with an unknown part is unknown. Private to tuner/space.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Longest expression.
inline constexpr std::size_t kExpressionBytesMax = 4096;

/// Brackets, signs and powers within each other; a parser of expressions recurses.
inline constexpr int kExpressionDepthMax = 50;

/// Values that wait for an operator while an expression is computed.
inline constexpr std::size_t kExpressionStackMax = 256;

/// kInteger is a number that is written without a point. kWord: any JSON value that is only
/// compared; held as its place in ComparedValues.
enum class ValueType { kNumber, kInteger, kTruth, kWord };

/// A value, or that it is unknown.
struct Known {
    double value = 0;
    bool is_known = false;
};

/// The JSON values that expressions compare, each once.
class ComparedValues {
public:
    [[nodiscard]] double place_of(const Json& value);
    [[nodiscard]] const Json& at(double place) const;

    /// What the values of a listed parameter count as in expressions; made once a slot.
    using Table = std::shared_ptr<const std::vector<double>>;
    [[nodiscard]] Table table_of(std::size_t slot, const Parameter& parameter, ValueType type);

private:
    std::map<std::size_t, Table> tables_;
    std::map<std::string, std::size_t> places_;
    std::vector<Json> values_;
};

/// What a name in an expression stands for.
struct Variable {
    std::size_t slot = 0;                  // of the values that `value` reads
    ValueType type = ValueType::kNumber;   // derived values
    const Parameter* parameter = nullptr;  // null: a derived value
};

/// Where names are looked up. The error, if there is none, is the sentence.
using Scope = std::function<Result<Variable>(std::string_view name)>;

/// Immutable once compiled. Threads: share it freely.
class Expression {
public:
    /// Errors: kInvalidParameterValue, "in 'lr *', column 5: expected ...".
    [[nodiscard]] static Result<Expression> compile(std::string_view text, const Scope& scope,
                                                    ComparedValues& compared);

    [[nodiscard]] ValueType type() const { return type_; }

    /// `slots`: internal values of the parameters, then derived values; NaN: unknown. O(length).
    [[nodiscard]] Known value(const std::vector<double>& slots) const;

    /// Slots that it reads, ascending, each once.
    [[nodiscard]] const std::vector<std::size_t>& slots() const { return slots_; }

    enum class Step : std::uint8_t {
        kConstant,
        kLoad,
        kLoadListed,
        kNegate,
        kNot,
        kAdd,
        kSubtract,
        kMultiply,
        kDivide,
        kFloorDivide,
        kModulo,
        kPower,
        kLess,
        kLessEqual,
        kGreater,
        kGreaterEqual,
        kEqual,
        kNotEqual,
        kAmong,
        kAnd,
        kOr,
        kSelect,
        kAbs,
        kCeil,
        kExp,
        kFloor,
        kLog,
        kLog10,
        kLog2,
        kMax,
        kMin,
        kRound,
        kSqrt
    };

    struct Op {
        Step step = Step::kConstant;
        double constant = 0;    // kConstant
        std::size_t index = 0;  // kLoad, kLoadListed: the slot; kAmong: where its list begins
        std::size_t list = 0;   // kLoadListed: which table
        std::size_t count = 0;  // kAmong: of the list
    };

private:
    friend class ExpressionParser;

    std::vector<Op> ops_;  // in postfix order
    std::vector<double> lists_;
    std::vector<ComparedValues::Table> tables_;
    std::vector<std::size_t> slots_;
    ValueType type_ = ValueType::kNumber;
};

/// The names that an expression uses, in order, with repetitions. Errors as compile's.
[[nodiscard]] Result<std::vector<std::string>> names_in(std::string_view text);

}  // namespace tune::tuner
