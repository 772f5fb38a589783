#pragma once
// The search space: named parameters, their domains and the conditions under which they exist.
//
// One representation for every source (study.yaml, JSON, the inline grammar of the command line),
// built and checked once, immutable afterwards. Samplers see points of doubles ("internal values");
// programs, files and the wire see JSON values ("external values").
//
//   kind       external            internal value
//   float      JSON number         the number itself (not its logarithm)
//   int        JSON integer        the number itself
//   choice     any JSON value      index into `choices`
//   ordinal    any JSON value      index into `choices`, whose order means something
//   const      any JSON value      0
//
// Threads: Space is immutable after `make`; share it freely.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tune::tuner {

/// 2^53: to here every integer is a double.
inline constexpr double kIntegerMax = 9007199254740992.0;

/// Most parameters of one space. A joint model of more is meaningless, and the page cannot show it.
inline constexpr std::size_t kParametersMax = 10'000;

/// Most values of one choice or ordinal.
inline constexpr std::size_t kChoicesMax = 10'000;

/// One internal value a parameter, in the order of Space::parameters(); `kInactive` where the
/// conditions switch the parameter off.
using Point = std::vector<double>;

/// Marks a parameter that does not exist in this point.
inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

[[nodiscard]] inline bool is_active(double internal) {
    return internal == internal;
}

enum class Kind { kFloat, kInt, kChoice, kOrdinal, kConst };

/// "float", "int", "choice", "ordinal", "const".
[[nodiscard]] std::string_view kind_name(Kind kind);

/// One key of `when`: holds if the parent is active and its internal value is one of `any_of` (when
/// that is not empty) or lies between `low` and `high` otherwise. All conditions of a parameter
/// must hold.
struct Condition {
    std::size_t parent = 0;      // index in Space::parameters()
    std::vector<double> any_of;  // internal values of the parent, ascending
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool low_open = false;   // `>` instead of `>=`
    bool high_open = false;  // `<` instead of `<=`

    [[nodiscard]] bool holds(double parent_internal) const;
    [[nodiscard]] bool operator==(const Condition&) const = default;
};

struct Parameter {
    std::string name;
    Kind kind = Kind::kFloat;
    double low = 0;    // inclusive; float, int: the bound itself; otherwise 0
    double high = 0;   // inclusive and on the grid; otherwise the last index
    double step = 0;   // 0: continuous (float only); int and ordinal: >= 1; choice, const: 1
    bool log = false;  // float and int: the logarithm is what is uniform
    std::vector<Json> choices;   // choice, ordinal; const: exactly one
    std::optional<double> init;  // internal value that the first trial tries
    std::vector<Condition> when;
    // What is believed of the parameter before the first trial; see prior.h. Uniform by default.
    double center = 0;            // float, int: mean, or median where `log`
    double spread = 0;            // standard deviation (of the logarithm where `log`); 0: uniform
    std::vector<double> weights;  // choice: relative, one a value; empty: all alike

    Parameter();
    Parameter(const Parameter&);
    Parameter(Parameter&&) noexcept;
    Parameter& operator=(const Parameter&);
    Parameter& operator=(Parameter&&) noexcept;
    ~Parameter();

    /// The number of values; 0 for continuous floats.
    [[nodiscard]] std::uint64_t count() const;

    /// True if only one value is possible (const, low == high, one choice).
    [[nodiscard]] bool is_single() const { return low == high; }

    /// True if `internal` is a value of this domain: inside the bounds and, where there is a step,
    /// on the grid (to 1e-9 of a step).
    [[nodiscard]] bool contains(double internal) const;

    /// The value of the domain nearest to `internal`: rounded to the grid, clamped to the bounds.
    [[nodiscard]] double snap(double internal) const;

    /// The external value. REQUIRES: contains(internal).
    [[nodiscard]] Json external(double internal) const;

    /// The internal value of a JSON value. Errors: kInvalidParameterValue with the reason.
    [[nodiscard]] Result<double> internal(const Json& external) const;

    /// The internal value of a text as the command line or an MLflow param holds it. Errors:
    /// kInvalidParameterValue with the reason.
    [[nodiscard]] Result<double> internal_from_text(std::string_view text) const;

    /// The external value as a command line or an MLflow param holds it: a string without quotes,
    /// a float as Python's repr writes it (shortest text that reads back the same double), any
    /// other value as compact JSON.
    [[nodiscard]] std::string text(double internal) const;
};

class SpaceRules;

class Space {
public:
    /// The space without parameters.
    Space();

    /// Checks the parameters (names, bounds, steps, conditions, cycles). `when[].parent` indexes
    /// `parameters`. Errors: kInvalidParameterValue naming the parameter and what was expected.
    [[nodiscard]] static Result<Space> make(std::vector<Parameter> parameters);

    /// From the `space` object of a study: {"lr": {"float": [1e-5, 0.1], "log": true}, ...}. JSON
    /// objects have no order; parameters come in order of name.
    [[nodiscard]] static Result<Space> from_json(const Json& space);

    /// The canonical `space` object; from_json reads it back to an equal space.
    [[nodiscard]] Json to_json() const;

    /// The same parameters under other rules; null: none. See rules.h, which makes them.
    [[nodiscard]] Space with_rules(std::shared_ptr<const SpaceRules> rules) const;

    /// Forbidden combinations and derived values; null where there are none.
    [[nodiscard]] const SpaceRules* rules() const { return rules_.get(); }

    /// The same parameters and rules with these points to be tried first (kInactive: left open).
    [[nodiscard]] Space with_initial(std::vector<Point> initial) const;

    /// Points to be tried before any other, as they were given.
    [[nodiscard]] const std::vector<Point>& initial() const { return initial_; }

    /// What the first trials try: `initial`, with the `init` values where a point leaves them open;
    /// without `initial` the `init` values alone, if there are any.
    [[nodiscard]] std::vector<Point> first_points() const;

    /// True if a rule excludes the point for sure; never for lack of a value, so a point that is
    /// not filled in yet may be asked about too. O(rules).
    [[nodiscard]] bool is_forbidden(const Point& point) const;

    /// In order of declaration.
    [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
    [[nodiscard]] std::size_t size() const { return parameters_.size(); }
    [[nodiscard]] const Parameter& operator[](std::size_t index) const {
        return parameters_[index];
    }

    /// The index of a name.
    [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

    /// Indices such that every parent comes before its children.
    [[nodiscard]] const std::vector<std::size_t>& parents_first() const { return parents_first_; }

    /// True if all conditions of the parameter hold in `point` (whose parents are filled in).
    [[nodiscard]] bool active(std::size_t index, const Point& point) const;

    /// A point with every parameter inactive.
    [[nodiscard]] Point empty_point() const { return Point(size(), kInactive); }

    /// Checks a whole point: size, domains, exactly the active parameters present, and the rules.
    /// Errors: kInvalidParameterValue naming the parameter or the rule.
    [[nodiscard]] Result<void> check(const Point& point) const;

    /// {"name": value} of the active parameters and of the derived values.
    [[nodiscard]] Json to_json(const Point& point) const;

    /// name -> text of the active parameters, in order of declaration, and of the derived values;
    /// what is logged as params.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> texts(const Point& point) const;

    /// From {"name": value}. Unknown names and values outside the domain are errors
    /// (kInvalidParameterValue, with a suggestion). Parameters that are not named stay kInactive:
    /// the result may be partial (an enqueued trial); `check` tells whether it is whole. A derived
    /// value may stand there if the others make it what it says.
    [[nodiscard]] Result<Point> point_from_json(const Json& params) const;

    /// Equal parameters in equal order, equal rules and initial points.
    [[nodiscard]] bool operator==(const Space& other) const;

private:
    std::vector<Parameter> parameters_;
    std::vector<std::size_t> parents_first_;
    std::unordered_map<std::string, std::size_t> index_;
    std::shared_ptr<const SpaceRules> rules_;
    std::vector<Point> initial_;
};

}  // namespace tune::tuner
