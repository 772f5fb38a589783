// The search space: parameters in order of declaration, the order of their dependences, rules and
// first points; and points of it as JSON and as texts.
//
// A Space that exists is valid. Its only makers check names, domains, conditions and cycles
// (space_check.cc), and it never changes: with_rules and with_initial return another one. So
// samplers ask nothing twice, and a copy can be shared by any number of threads. Points are plain
// vectors of internal values with a mark for what is inactive; check() is the one place that says
// whether such a vector is a whole point of this space.

#include "tuner/space/space.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/counted.h"
#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/expression/rules.h"
#include "tuner/space/node.h"
#include "tuner/space/space_check.h"
#include "tuner/space/space_reader.h"

namespace tune::tuner {
namespace {

Error bad(const std::string& name, const std::string& message) {
    return error_at({}, name, message);
}

std::vector<std::string> names_of(const std::vector<Parameter>& parameters) {
    std::vector<std::string> names;
    for (const Parameter& parameter : parameters) names.push_back(parameter.name);
    return names;
}

bool same(const Parameter& a, const Parameter& b) {
    return a.name == b.name && a.kind == b.kind && a.low == b.low && a.high == b.high &&
           a.step == b.step && a.log == b.log && a.choices == b.choices && a.init == b.init &&
           a.when == b.when && a.center == b.center && a.spread == b.spread &&
           a.weights == b.weights;
}

}  // namespace

Space::Space() = default;

Result<Space> Space::make(std::vector<Parameter> parameters) {
    if (parameters.size() > kParametersMax)
        return bad("space", "it has " + std::to_string(parameters.size()) +
                                " parameters; at most " + std::to_string(kParametersMax) +
                                " are supported");
    Space space;
    space.index_.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        Parameter& parameter = parameters[i];
        if (const auto error = name_error(parameter.name)) return bad("space", *error);
        if (!space.index_.emplace(parameter.name, i).second)
            return bad("space", "the name " + in_quotes(parameter.name) + " is used twice");
        if (const auto error = settle_domain(parameter)) return bad(parameter.name, error->message);
    }
    for (const Parameter& parameter : parameters)
        for (const Condition& condition : parameter.when) {
            if (condition.parent >= parameters.size())
                return bad(parameter.name, "a condition names a parameter that does not exist");
            if (const auto error = condition_error(condition, parameters[condition.parent]))
                return bad(parameter.name, *error);
        }
    ConditionOrder order = order_parents_first(parameters);
    if (!order.cycle.empty())
        return bad("space", "the conditions form a cycle: " + cycle_text(parameters, order.cycle));
    space.parents_first_ = std::move(order.parents_first);
    space.parameters_ = std::move(parameters);
    return space;
}

Result<Space> Space::from_json(const Json& space) {
    TUNE_TRY(node, node_from_json(space));
    return read_space(node, "space");
}

std::optional<std::size_t> Space::find(std::string_view name) const {
    const auto found = index_.find(std::string(name));
    if (found == index_.end()) return std::nullopt;
    return found->second;
}

bool Space::active(std::size_t index, const Point& point) const {
    for (const Condition& condition : parameters_[index].when)
        if (!condition.holds(point[condition.parent])) return false;
    return true;
}

Space Space::with_rules(std::shared_ptr<const SpaceRules> rules) const {
    Space space = *this;
    space.rules_ = std::move(rules);
    return space;
}

Space Space::with_initial(std::vector<Point> initial) const {
    Space space = *this;
    space.initial_ = std::move(initial);
    return space;
}

std::vector<Point> Space::first_points() const {
    std::vector<Point> points = initial_;
    const bool has_init = std::any_of(parameters_.begin(), parameters_.end(),
                                      [](const Parameter& one) { return one.init.has_value(); });
    if (points.empty() && has_init) points.push_back(empty_point());
    for (Point& point : points)
        for (std::size_t i = 0; i < size(); ++i)
            if (!is_active(point[i]) && parameters_[i].init) point[i] = *parameters_[i].init;
    return points;
}

bool Space::is_forbidden(const Point& point) const {
    return rules_ && rules_->error(point).has_value();
}

Result<void> Space::check(const Point& point) const {
    if (point.size() != size())
        return bad("point", "it has " + counted(static_cast<std::int64_t>(point.size()), "value") +
                                "; the space has " +
                                counted(static_cast<std::int64_t>(size()), "parameter"));
    for (std::size_t i = 0; i < size(); ++i) {
        const Parameter& parameter = parameters_[i];
        const bool wanted = active(i, point);
        if (wanted && !is_active(point[i])) return bad(parameter.name, "its value is missing");
        if (!wanted && is_active(point[i]))
            return bad(parameter.name, "it has a value although its conditions do not hold");
        if (wanted && !parameter.contains(point[i]))
            return bad(parameter.name, number_text(point[i]) + " is not a value of this parameter");
    }
    if (!rules_) return {};
    if (const auto error = rules_->error(point)) return bad("point", *error);
    return {};
}

Json Space::to_json(const Point& point) const {
    Json values = Json::object();
    for (std::size_t i = 0; i < size(); ++i)
        if (is_active(point[i])) values[parameters_[i].name] = parameters_[i].external(point[i]);
    if (rules_) rules_->add_derived(point, values);
    return values;
}

std::vector<std::pair<std::string, std::string>> Space::texts(const Point& point) const {
    std::vector<std::pair<std::string, std::string>> texts;
    for (std::size_t i = 0; i < size(); ++i)
        if (is_active(point[i]))
            texts.emplace_back(parameters_[i].name, parameters_[i].text(point[i]));
    if (!rules_) return texts;
    std::vector<std::pair<std::string, std::string>> derived = rules_->derived_texts(point);
    texts.insert(texts.end(), std::make_move_iterator(derived.begin()),
                 std::make_move_iterator(derived.end()));
    return texts;
}

Result<Point> Space::point_from_json(const Json& params) const {
    if (!params.is_object())
        return bad("params",
                   "expected an object {\"name\": value}, found " + shortened(to_text(params)));
    Point point = empty_point();
    for (const auto& [name, value] : params.items()) {
        const std::optional<std::size_t> index = find(name);
        if (!index && rules_ && rules_->has_derived(name)) continue;
        if (!index)
            return bad("params", "the space has no parameter " + in_quotes(name) +
                                     known_words(name, names_of(parameters_)));
        Result<double> internal = parameters_[*index].internal(value);
        if (!internal) return bad("params." + name, internal.error().message);
        point[*index] = *internal;
    }
    if (rules_) TUNE_TRY_VOID(rules_->check_derived(point, params));
    return point;
}

bool Space::operator==(const Space& other) const {
    if (size() != other.size()) return false;
    for (std::size_t i = 0; i < size(); ++i)
        if (!same(parameters_[i], other.parameters_[i])) return false;
    const auto texts_of = [](const Space& space) {
        return space.rules_ ? space.rules_->texts() : RuleTexts();
    };
    const auto is_same_point = [](const Point& a, const Point& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
            return x == y || (!is_active(x) && !is_active(y));
        });
    };
    return texts_of(*this) == texts_of(other) &&
           std::equal(initial_.begin(), initial_.end(), other.initial_.begin(),
                      other.initial_.end(), is_same_point);
}

}  // namespace tune::tuner
