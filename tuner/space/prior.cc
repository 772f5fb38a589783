// `normal`, `lognormal` and `weights`: reading them and checking them against settled bounds.
//
// A prior is a belief about where the good values lie, not a limit: bounds stay inclusive and the
// normal is truncated to them. Without bounds of its own a prior ends five deviations from its
// centre, beyond which fewer than one draw in a million would lie. A deviation under a millionth of
// the range would be a constant in doubles, one above ten times the range a uniform distribution:
// both are refused with what to write instead. The median of a lognormal is the value itself, never
// its logarithm, as all bounds of a study are.

#include "tuner/space/prior.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

Result<void> read_pair(const Entry& entry, const std::string& path, Parameter& parameter) {
    const Node& value = entry.value;
    const bool is_log = entry.key == "lognormal";
    const std::string where = path + "." + entry.key;
    if (value.type != Node::Type::kList || value.items.size() != 2)
        return error_at(value.place, where,
                        std::string("expected [") + (is_log ? "median" : "mean") +
                            ", standard deviation" + (is_log ? " of the logarithm" : "") +
                            "], found " + describe(value));
    for (const Node& item : value.items)
        if (!item.is_number() || !std::isfinite(item.number))
            return error_at(item.place, where, "expected a number, found " + describe(item));
    parameter.center = value.items[0].number;
    parameter.spread = value.items[1].number;
    if (parameter.spread <= 0)
        return error_at(
            value.items[1].place, where,
            "a standard deviation must be above 0, found " + number_text(parameter.spread));
    if (is_log && parameter.center <= 0)
        return error_at(value.items[0].place, where,
                        "the median of a lognormal is above 0 (the value itself, not its "
                        "logarithm), found " +
                            number_text(parameter.center));
    return {};
}

Result<void> read_bound(const Node& spec, const std::string& path, const char* key, double& bound) {
    const Node* value = spec.find(key);
    if (value == nullptr) return {};
    if (!value->is_number())
        return error_at(value->place, path + "." + key,
                        "expected a number, found " + describe(*value));
    bound = value->number;
    return {};
}

Result<void> read_weights(const Node& weights, const std::string& path, Parameter& parameter) {
    if (weights.type != Node::Type::kList || weights.items.size() != parameter.choices.size())
        return error_at(weights.place, path,
                        "expected a list of " + std::to_string(parameter.choices.size()) +
                            " numbers, one a value, found " + describe(weights));
    for (const Node& item : weights.items) {
        if (!item.is_number() || !(item.number > 0) || item.number > 1e9)
            return error_at(item.place, path,
                            "a weight is a number above 0 (leave a value out that should never be "
                            "tried), found " +
                                describe(item));
        parameter.weights.push_back(item.number);
    }
    return {};
}

}  // namespace

const Entry* prior_entry(const Node& spec) {
    for (const Entry& entry : spec.entries)
        if (entry.key == "normal" || entry.key == "lognormal") return &entry;
    return nullptr;
}

Result<void> read_prior(const Node& spec, const std::string& path, bool is_short,
                        Parameter& parameter) {
    if (const Node* weights = spec.find("weights"))
        TUNE_TRY_VOID(read_weights(*weights, path + ".weights", parameter));
    const Entry* entry = prior_entry(spec);
    if (entry == nullptr) return {};
    if (spec.find("normal") != nullptr && spec.find("lognormal") != nullptr)
        return error_at(entry->place, path, "'normal' and 'lognormal' exclude each other");
    TUNE_TRY_VOID(read_pair(*entry, path, parameter));
    const bool is_log = entry->key == "lognormal";
    if (parameter.log && !is_log)
        return error_at(entry->place, path,
                        "on a log scale the prior is 'lognormal: [median, deviation of the "
                        "logarithm]'");
    if (const Node* log = spec.find("log"); is_log && log != nullptr && !log->boolean)
        return error_at(log->place, path + ".log", "a lognormal is on a log scale");
    parameter.log = is_log;
    if (!is_short) return {};
    const double reach = kPriorBounds * parameter.spread;
    parameter.low = is_log ? parameter.center * std::exp(-reach) : parameter.center - reach;
    parameter.high = is_log ? parameter.center * std::exp(reach) : parameter.center + reach;
    TUNE_TRY_VOID(read_bound(spec, path, "low", parameter.low));
    return read_bound(spec, path, "high", parameter.high);
}

std::optional<ParameterError> prior_error(const Parameter& p) {
    if (!p.weights.empty()) {
        if (p.kind != Kind::kChoice || p.weights.size() != p.choices.size())
            return ParameterError{"weights", "weights belong to a choice, one a value"};
        for (const double weight : p.weights)
            if (!(weight > 0) || weight > 1e9)
                return ParameterError{"weights", "a weight is a number above 0"};
    }
    if (p.spread == 0) return std::nullopt;
    const std::string key = p.log ? "lognormal" : "normal";
    if (p.kind != Kind::kFloat && p.kind != Kind::kInt)
        return ParameterError{key, "a normal prior belongs to a float or an int"};
    if (!(p.spread > 0) || !(p.center >= p.low && p.center <= p.high))
        return ParameterError{key, std::string("its ") + (p.log ? "median " : "mean ") +
                                       number_text(p.center) + " lies outside the bounds " +
                                       number_text(p.low) + ".." + number_text(p.high)};
    const double range = p.log ? std::log(p.high) - std::log(p.low) : p.high - p.low;
    if (range == 0) return std::nullopt;
    if (p.spread < kSpreadMin * range)
        return ParameterError{key,
                              "its standard deviation is less than a millionth of the range; "
                              "give a const, or closer bounds"};
    if (p.spread > kSpreadMax * range)
        return ParameterError{key,
                              "its standard deviation is more than ten times the range, where "
                              "it is flat; leave the prior out, or give wider bounds"};
    return std::nullopt;
}

}  // namespace tune::tuner
