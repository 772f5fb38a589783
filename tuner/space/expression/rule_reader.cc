// `forbid`, `derive` and `initial` of a study, from the located tree to a space with rules.
//
// Everything that can be known to be wrong is refused here, with its line, before a trial runs: an
// expression that does not compile, rules that leave no point (feasible_point.cc), an initial point
// with a value outside its domain, a value whose condition the same point denies, an initial point
// that is forbidden by itself. Not searched for: whether what an initial point leaves open can be
// completed; the sampler goes on without one that cannot.

#include "tuner/space/expression/rule_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/space/error_text.h"
#include "tuner/space/expression/rules.h"
#include "tuner/space/feasible_point.h"

namespace tune::tuner {
namespace {

Result<void> read_forbid(const Node& node, RuleTexts& texts) {
    if (node.type == Node::Type::kNull) return {};
    if (node.type == Node::Type::kString) {
        texts.forbid.push_back(node.text);
        return {};
    }
    if (node.type != Node::Type::kList)
        return error_at(node.place, "forbid",
                        "expected a list of conditions such as \"opt == 'sgd' and lr > 0.05\", "
                        "found " +
                            describe(node));
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        const Node& item = node.items[i];
        if (item.type != Node::Type::kString)
            return error_at(item.place, "forbid[" + std::to_string(i) + "]",
                            "expected a condition in quotes such as \"opt == 'sgd' and lr > "
                            "0.05\", found " +
                                describe(item));
        texts.forbid.push_back(item.text);
    }
    return {};
}

Result<void> read_derive(const Node& node, RuleTexts& texts) {
    if (node.type == Node::Type::kNull) return {};
    if (node.type != Node::Type::kMap)
        return error_at(node.place, "derive",
                        "expected a map such as {lr_scaled: \"lr * sqrt(batch / 256)\"}, found " +
                            describe(node));
    for (const Entry& entry : node.entries) {
        const Node& value = entry.value;
        const bool is_number = value.is_number();
        if (value.type != Node::Type::kString && !is_number)
            return error_at(value.place.line != 0 ? value.place : entry.place,
                            "derive." + shortened(entry.key),
                            "expected an expression such as \"lr * sqrt(batch / 256)\", found " +
                                describe(value));
        texts.derive.emplace_back(entry.key, is_number ? to_text(to_json(value)) : value.text);
    }
    return {};
}

/// Where the wrong rule stands.
Error located(const RuleNodes& nodes, const RuleError& error) {
    if (!error.derived.empty()) {
        const Node* value = nodes.derive == nullptr ? nullptr : nodes.derive->find(error.derived);
        return error_at(value == nullptr ? Place{} : value->place,
                        "derive." + shortened(error.derived), error.message);
    }
    if (!error.forbid) {
        const Node* rules = nodes.forbid != nullptr ? nodes.forbid : nodes.derive;
        return error_at(rules->place, nodes.forbid != nullptr ? "forbid" : "derive", error.message);
    }
    const bool is_listed = nodes.forbid->type == Node::Type::kList;
    return error_at(is_listed ? nodes.forbid->items[*error.forbid].place : nodes.forbid->place,
                    "forbid[" + std::to_string(*error.forbid) + "]", error.message);
}

std::string nothing_allowed(Feasibility allowed, const char* what) {
    if (allowed == Feasibility::kNone)
        return std::string(what) + " is forbidden; nothing is left to try";
    return std::string(what) +
           " that was looked at is forbidden (1,000 random ones, and the search around them); "
           "loosen the rules, or narrow the space to where they hold";
}

/// A value of a parameter whose conditions the same point denies would silently be dropped.
Result<void> check_conditions(const Space& space, const Point& point, const Node& item,
                              const std::string& path) {
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (!is_active(point[i])) continue;
        for (const Condition& condition : space[i].when) {
            const double parent = point[condition.parent];
            if (!is_active(parent) || condition.holds(parent)) continue;
            const Node* value = item.find(space[i].name);
            return error_at(value == nullptr ? item.place : value->place,
                            path + "." + space[i].name,
                            "it has a value although its condition on " +
                                in_quotes(space[condition.parent].name) + " does not hold");
        }
    }
    return {};
}

Result<Space> with_initial(const Space& space, const Node& node) {
    if (node.type == Node::Type::kNull) return space;
    if (node.type != Node::Type::kList)
        return error_at(
            node.place, "initial",
            "expected a list of points such as [{lr: 0.01, opt: sgd}], found " + describe(node));
    if (node.items.size() > kInitialPointsMax)
        return error_at(node.place, "initial",
                        "at most " + std::to_string(kInitialPointsMax) + " points are supported");
    std::vector<Point> points;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        const Node& item = node.items[i];
        const std::string path = "initial[" + std::to_string(i) + "]";
        if (item.type != Node::Type::kMap)
            return error_at(
                item.place, path,
                "expected a point such as {lr: 0.01, opt: sgd}, found " + describe(item));
        Point point = space.empty_point();
        for (const Entry& entry : item.entries) {
            Json one = Json::object();
            one[entry.key] = to_json(entry.value);
            const Result<Point> read = space.point_from_json(one);
            if (!read) return error_at(entry.place, path, read.error().message);
            for (std::size_t j = 0; j < point.size(); ++j)
                if (is_active((*read)[j])) point[j] = (*read)[j];
        }
        TUNE_TRY_VOID(check_conditions(space, point, item, path));
        points.push_back(std::move(point));
    }
    return space.with_initial(std::move(points));
}

/// What first points give must not be forbidden by itself. That something is left to complete them
/// with is not searched for here: the sampler goes on without a point that cannot be completed.
Result<void> check_first_points(const Space& space, const RuleNodes& nodes) {
    if (space.rules() == nullptr) return {};
    const std::vector<Point> points = space.first_points();
    for (std::size_t i = 0; i < points.size(); ++i) {
        const std::optional<std::string> error = space.rules()->error(points[i]);
        if (!error) continue;
        if (space.initial().empty())
            return error_at(nodes.forbid != nullptr ? nodes.forbid->place : Place{},
                            nodes.forbid != nullptr ? "forbid" : "derive",
                            "the 'init' values: " + *error);
        return error_at(nodes.initial->items[i].place, "initial[" + std::to_string(i) + "]",
                        *error);
    }
    return {};
}

}  // namespace

Result<Space> with_rules(const Space& space, const RuleNodes& nodes) {
    RuleTexts texts;
    if (nodes.forbid != nullptr) TUNE_TRY_VOID(read_forbid(*nodes.forbid, texts));
    if (nodes.derive != nullptr) TUNE_TRY_VOID(read_derive(*nodes.derive, texts));
    RuleError error;
    std::shared_ptr<const SpaceRules> rules = SpaceRules::make(space, std::move(texts), error);
    if (!error.message.empty()) return located(nodes, error);
    Space whole = space.with_rules(std::move(rules));
    if (whole.rules() != nullptr) {
        const Feasibility allowed = search_feasible_point(whole, {}).answer;
        const bool has_forbid = !whole.rules()->texts().forbid.empty();
        const Node* where = has_forbid ? nodes.forbid : nodes.derive;
        if (allowed != Feasibility::kSome)
            return error_at(where->place, has_forbid ? "forbid" : "derive",
                            nothing_allowed(allowed, "every point of the space"));
    }
    if (nodes.initial != nullptr) {
        TUNE_TRY(with_points, with_initial(whole, *nodes.initial));
        whole = std::move(with_points);
    }
    TUNE_TRY_VOID(check_first_points(whole, nodes));
    return whole;
}

}  // namespace tune::tuner
