// Rules as compiled programs over one vector of slots: the parameters of a point, then the derived
// values, each after those that it names (the order of conditions serves, as does its report of a
// cycle). So a check of a point is one pass.
//
// When a rule counts as broken. Only if it is known to be: a clause that is true, or a derived
// value that is known and not finite (or an integer beyond 2^53, which is not exact as a double). A
// derived value that is unknown although all parameters that it reads are there hangs on a
// comparison with NaN and counts as broken too. What is unknown for lack of a value breaks nothing:
// partial points can be asked about, and a rule over a parameter that conditions switch off is
// silent.
//
// For each rule the parameters that it reads are listed through derived values, so that a repair
// (feasible_point.cc) knows what may mend it.

#include "tuner/space/expression/rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"
#include "tuner/space/space_check.h"

namespace tune::tuner {
namespace {

/// Integers beyond 2^53 are not exact as doubles.

Error sentence(std::string message) {
    return Error{Code::kInvalidParameterValue, std::move(message)};
}

/// Derived values such that those an expression names come before it. `error` tells of a cycle.
std::vector<std::size_t> order_of(const RuleTexts& texts, RuleError& error) {
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < texts.derive.size(); ++i) index.emplace(texts.derive[i].first, i);
    // The order of conditions serves: a derived value depends on what it names.
    std::vector<Parameter> nodes(texts.derive.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].name = texts.derive[i].first;
        const Result<std::vector<std::string>> names = names_in(texts.derive[i].second);
        if (!names) continue;  // compiling it says what is wrong
        for (const std::string& name : *names)
            if (const auto found = index.find(name); found != index.end())
                nodes[i].when.push_back(Condition{.parent = found->second, .any_of = {}});
    }
    ConditionOrder order = order_parents_first(nodes);
    if (!order.cycle.empty()) {
        error.derived = nodes[order.cycle.front()].name;
        error.message = "derived values form a cycle: " + cycle_text(nodes, order.cycle);
    }
    return std::move(order.parents_first);
}

std::optional<std::string> derived_name_error(const Space& space, const std::string& name) {
    if (const auto error = name_error(name)) return error;
    if (space.find(name)) return "there is a parameter " + in_quotes(name) + " already";
    for (const char* fact : {"study", "trial", "attempt", "run_id", "seed"})
        if (name == fact)
            return "the name " + in_quotes(name) + " is taken by the placeholder {" + name + "}";
    return std::nullopt;
}

std::optional<std::string> size_error(const RuleTexts& texts) {
    std::size_t bytes = 0;
    for (const std::string& clause : texts.forbid) bytes += clause.size();
    for (const auto& [name, text] : texts.derive) bytes += text.size();
    if (texts.forbid.size() > kRulesMax || texts.derive.size() > kRulesMax)
        return "more than " + std::to_string(kRulesMax) + " rules";
    if (bytes > kRuleBytesMax)
        return "the rules have " + std::to_string(bytes) + " bytes together; at most " +
               std::to_string(kRuleBytesMax) + " are supported, since each point is held to all";
    return std::nullopt;
}

}  // namespace

std::shared_ptr<const SpaceRules> SpaceRules::make(const Space& space, RuleTexts texts,
                                                   RuleError& error) {
    if (texts.forbid.empty() && texts.derive.empty()) return nullptr;
    const auto refuse = [&](std::string message) {
        error.message = std::move(message);
        return nullptr;
    };
    if (auto wrong = size_error(texts)) return refuse(std::move(*wrong));
    auto rules = std::make_shared<SpaceRules>();
    rules->parameter_count_ = space.size();
    std::vector<std::string> known;
    for (const Parameter& parameter : space.parameters()) known.push_back(parameter.name);
    rules->names_ = known;
    std::sort(texts.derive.begin(), texts.derive.end());
    for (const auto& [name, text] : texts.derive) {
        error.derived = name;
        if (auto wrong = derived_name_error(space, name)) return refuse(std::move(*wrong));
        known.push_back(name);
    }
    std::map<std::string, const Derived*, std::less<>> made;
    const Scope scope = [&](std::string_view name) -> Result<Variable> {
        if (const auto index = space.find(name))
            return Variable{.slot = *index, .parameter = &space[*index]};
        if (const auto found = made.find(name); found != made.end())
            return Variable{.slot = found->second->slot, .type = found->second->expression.type()};
        return sentence("there is no parameter " + in_quotes(name) + known_words(name, known));
    };
    const std::vector<std::size_t> order = order_of(texts, error);
    if (!error.message.empty()) return nullptr;
    rules->derived_.reserve(order.size());
    for (const std::size_t index : order) {
        const auto& [name, text] = texts.derive[index];
        error.derived = name;
        Result<Expression> compiled = Expression::compile(text, scope, rules->compared_);
        if (!compiled) return refuse(compiled.error().message);
        Derived derived{name, std::move(*compiled), space.size() + rules->derived_.size(), {}};
        derived.reads = rules->parameters_read(derived.expression);
        rules->derived_.push_back(std::move(derived));
        made.emplace(name, &rules->derived_.back());
    }
    error.derived.clear();
    for (std::size_t i = 0; i < texts.forbid.size(); ++i) {
        error.forbid = i;
        Result<Expression> compiled = Expression::compile(texts.forbid[i], scope, rules->compared_);
        if (!compiled) return refuse(compiled.error().message);
        if (compiled->type() != ValueType::kTruth)
            return refuse("expected a condition such as \"opt == 'sgd' and lr > 0.05\", found " +
                          in_quotes(texts.forbid[i]));
        std::vector<std::size_t> reads = rules->parameters_read(*compiled);
        rules->clauses_.push_back({std::move(*compiled), std::move(reads)});
    }
    error.forbid.reset();
    std::vector<std::size_t>& all = rules->parameters_;
    for (const Clause& clause : rules->clauses_)
        all.insert(all.end(), clause.reads.begin(), clause.reads.end());
    for (const Derived& derived : rules->derived_)
        all.insert(all.end(), derived.reads.begin(), derived.reads.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    rules->texts_ = std::move(texts);
    return rules;
}

std::vector<std::size_t> SpaceRules::parameters_read(const Expression& expression) const {
    std::vector<std::size_t> reads;
    for (const std::size_t slot : expression.slots()) {
        if (slot < parameter_count_) {
            reads.push_back(slot);
            continue;
        }
        const std::vector<std::size_t>& more = derived_[slot - parameter_count_].reads;
        reads.insert(reads.end(), more.begin(), more.end());
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    return reads;
}

bool SpaceRules::has_derived(std::string_view name) const {
    return std::any_of(derived_.begin(), derived_.end(),
                       [&](const Derived& derived) { return derived.name == name; });
}

double SpaceRules::computed(const Derived& derived, const std::vector<double>& slots,
                            bool& is_broken) {
    const Known known = derived.expression.value(slots);
    const bool is_too_large =
        derived.expression.type() == ValueType::kInteger && std::abs(known.value) > kIntegerMax;
    // Unknown although all that it reads is there: it hangs on a comparison with NaN.
    const bool is_lost =
        !known.is_known && std::all_of(derived.reads.begin(), derived.reads.end(),
                                       [&](std::size_t slot) { return is_active(slots[slot]); });
    is_broken = is_lost || (known.is_known && (!std::isfinite(known.value) || is_too_large));
    return known.is_known && !is_broken ? known.value : kInactive;
}

std::vector<double> SpaceRules::slots_of(const Point& point) const {
    std::vector<double> slots = point;
    slots.reserve(point.size() + derived_.size());
    bool is_broken = false;
    for (const Derived& derived : derived_) slots.push_back(computed(derived, slots, is_broken));
    return slots;
}

/// `broken(reads, derived, clause)` for each rule that is broken for sure, until it returns false.
template <class Broken>
void SpaceRules::each_broken(const Point& point, Broken broken) const {
    std::vector<double> slots = point;
    slots.reserve(point.size() + derived_.size());
    for (const Derived& derived : derived_) {
        bool is_broken = false;
        slots.push_back(computed(derived, slots, is_broken));
        if (is_broken && !broken(derived.reads, &derived, clauses_.size())) return;
    }
    for (std::size_t i = 0; i < clauses_.size(); ++i) {
        const Known known = clauses_[i].expression.value(slots);
        const bool is_broken = known.is_known && known.value != 0;
        if (is_broken && !broken(clauses_[i].reads, nullptr, i)) return;
    }
}

std::vector<std::size_t> SpaceRules::broken_by(const Point& point) const {
    std::vector<std::size_t> found;
    each_broken(point, [&](const std::vector<std::size_t>& reads, const Derived*, std::size_t) {
        found = reads;
        return false;
    });
    return found;
}

std::size_t SpaceRules::broken_count(const Point& point) const {
    std::size_t count = 0;
    each_broken(point, [&](const std::vector<std::size_t>&, const Derived*, std::size_t) {
        ++count;
        return true;
    });
    return count;
}

std::optional<std::string> SpaceRules::error(const Point& point) const {
    std::optional<std::string> error;
    each_broken(
        point, [&](const std::vector<std::size_t>&, const Derived* derived, std::size_t clause) {
            if (derived != nullptr) {
                const auto text =
                    std::find_if(texts_.derive.begin(), texts_.derive.end(),
                                 [&](const auto& one) { return one.first == derived->name; });
                error = "the derived value " + in_quotes(derived->name) + " = " +
                        in_quotes(text->second) + " is not a finite number here";
            } else {
                error = "this combination is forbidden: " + shortened(texts_.forbid[clause]);
            }
            return false;
        });
    return error;
}

Json SpaceRules::external(const Derived& derived, double value) const {
    switch (derived.expression.type()) {
        case ValueType::kNumber: return value;
        case ValueType::kInteger: return static_cast<std::int64_t>(value);
        case ValueType::kTruth: return value != 0;
        case ValueType::kWord: return compared_.at(value);
    }
    return nullptr;
}

void SpaceRules::add_derived(const Point& point, Json& values) const {
    const std::vector<double> slots = slots_of(point);
    for (const Derived& derived : derived_)
        if (is_active(slots[derived.slot]))
            values[derived.name] = external(derived, slots[derived.slot]);
}

std::vector<std::pair<std::string, std::string>> SpaceRules::derived_texts(
    const Point& point) const {
    std::vector<std::pair<std::string, std::string>> texts;
    const std::vector<double> slots = slots_of(point);
    for (const Derived& derived : derived_) {
        if (!is_active(slots[derived.slot])) continue;
        const Json value = external(derived, slots[derived.slot]);
        texts.emplace_back(derived.name, value.is_string() ? value.get<std::string>()
                                         : value.is_number_float()
                                             ? number_text(value.get<double>())
                                             : to_text(value));
    }
    std::sort(texts.begin(), texts.end());
    return texts;
}

Result<void> SpaceRules::check_derived(const Point& point, const Json& params) const {
    const std::vector<double> slots = slots_of(point);
    for (const Derived& derived : derived_) {
        const auto given = params.find(derived.name);
        if (given == params.end()) continue;
        const double value = slots[derived.slot];
        if (is_active(value)) {
            const Json is = external(derived, value);
            const bool is_close = is.is_number() && given->is_number() &&
                                  std::abs(given->get<double>() - value) <= 1e-9 * std::abs(value);
            if (is_close || is == *given) continue;
        }
        return error_at({}, "params." + derived.name,
                        "it is derived from other values, which do not make it " +
                            shortened(to_text(*given)) + "; leave it out");
    }
    return {};
}

}  // namespace tune::tuner
