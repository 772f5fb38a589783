#pragma once
// Forbidden combinations and derived values of a space.
//
// A point is forbidden if a clause of `forbid` is true of it, or if a derived value of it is not a
// finite number: such a point cannot be run. A derived value that depends on a parameter that is
// switched off does not exist in that trial, as the parameter itself.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/space/expression/expression.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Clauses of `forbid`, and derived values.
inline constexpr std::size_t kRulesMax = 1000;

/// Of all expressions of a space together: what one check of a point may cost.
inline constexpr std::size_t kRuleBytesMax = 64u << 10;

struct RuleTexts {
    std::vector<std::string> forbid;
    std::vector<std::pair<std::string, std::string>> derive;  // name, expression; in order of name

    [[nodiscard]] bool operator==(const RuleTexts&) const = default;
};

/// Which rule is wrong: forbid[index] or derive's entry of this name.
struct RuleError {
    std::optional<std::size_t> forbid;
    std::string derived;
    std::string message;
};

/// Immutable. Threads: share it freely.
class SpaceRules {
public:
    /// Null (and no error) for no rules. Does not look for an allowed point: find_feasible_point
    /// does.
    [[nodiscard]] static std::shared_ptr<const SpaceRules> make(const Space& space, RuleTexts texts,
                                                                RuleError& error);

    [[nodiscard]] const RuleTexts& texts() const { return texts_; }

    [[nodiscard]] bool has_derived(std::string_view name) const;

    /// The parameters that some rule reads, ascending.
    [[nodiscard]] const std::vector<std::size_t>& parameters() const { return parameters_; }

    /// The parameters that the broken rule reads; empty: none is broken for sure.
    [[nodiscard]] std::vector<std::size_t> broken_by(const Point& point) const;

    /// How many rules are broken for sure.
    [[nodiscard]] std::size_t broken_count(const Point& point) const;

    /// The sentence about the first broken rule.
    [[nodiscard]] std::optional<std::string> error(const Point& point) const;

    /// Adds {"name": value} of the derived values that exist in this point.
    void add_derived(const Point& point, Json& values) const;

    /// name -> text of the derived values that exist in this point, in order of name.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> derived_texts(
        const Point& point) const;

    /// Derived values that `params` gives must be what `point` makes them. Errors:
    /// kInvalidParameterValue naming the value.
    [[nodiscard]] Result<void> check_derived(const Point& point, const Json& params) const;

private:
    struct Derived {
        std::string name;
        Expression expression;
        std::size_t slot = 0;
        std::vector<std::size_t> reads;  // parameters, through other derived values too
    };
    struct Clause {
        Expression expression;
        std::vector<std::size_t> reads;
    };

    [[nodiscard]] Json external(const Derived& derived, double value) const;
    /// The derived value, or the mark of an inactive one; `is_broken`: it is not finite.
    [[nodiscard]] static double computed(const Derived& derived, const std::vector<double>& slots,
                                         bool& is_broken);
    [[nodiscard]] std::vector<double> slots_of(const Point& point) const;
    template <class Broken>
    void each_broken(const Point& point, Broken broken) const;
    [[nodiscard]] std::vector<std::size_t> parameters_read(const Expression& expression) const;

    RuleTexts texts_;
    ComparedValues compared_;
    std::size_t parameter_count_ = 0;
    std::vector<std::string> names_;  // of the parameters, for sentences
    std::vector<Derived> derived_;    // those they depend on come first
    std::vector<Clause> clauses_;
    std::vector<std::size_t> parameters_;
};

}  // namespace tune::tuner
