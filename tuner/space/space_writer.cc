// The canonical JSON of a space; read_space is its inverse.

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/space/space.h"

namespace tune::tuner {
namespace {

Json bound_of(const Parameter& parent, double bound) {
    if (parent.kind == Kind::kOrdinal) return parent.external(bound);
    const bool whole = parent.kind == Kind::kInt && bound == std::floor(bound);
    return whole ? Json(static_cast<std::int64_t>(bound)) : Json(bound);
}

Json condition_json(const Condition& condition, const Parameter& parent) {
    if (condition.any_of.empty()) {
        Json comparison = Json::object();
        if (std::isfinite(condition.low))
            comparison[condition.low_open ? ">" : ">="] = bound_of(parent, condition.low);
        if (std::isfinite(condition.high))
            comparison[condition.high_open ? "<" : "<="] = bound_of(parent, condition.high);
        return comparison;
    }
    Json values = Json::array();
    for (const double value : condition.any_of) values.push_back(parent.external(value));
    // A lone list or map stays wrapped, so that it means itself and not its members.
    if (values.size() == 1 && !values[0].is_structured()) return values[0];
    return values;
}

Json domain_json(const Parameter& p) {
    switch (p.kind) {
        case Kind::kFloat: return Json::array({p.low, p.high});
        case Kind::kInt: return Json::array({p.external(p.low), p.external(p.high)});
        case Kind::kChoice:
        case Kind::kOrdinal: return p.choices;
        case Kind::kConst: return p.choices.front();
    }
    return nullptr;
}

Json parameter_json(const Parameter& p, const std::vector<Parameter>& all) {
    Json spec = Json::object();
    spec[std::string(kind_name(p.kind))] = domain_json(p);
    if (p.log && p.spread == 0) spec["log"] = true;
    if (p.kind == Kind::kFloat && p.step > 0) spec["step"] = p.step;
    if (p.kind == Kind::kInt && p.step != 1) spec["step"] = static_cast<std::int64_t>(p.step);
    if (p.spread > 0) spec[p.log ? "lognormal" : "normal"] = Json::array({p.center, p.spread});
    if (!p.weights.empty()) spec["weights"] = p.weights;
    if (p.init && p.kind != Kind::kConst) spec["init"] = p.external(*p.init);
    for (const Condition& condition : p.when) {
        const Parameter& parent = all[condition.parent];
        spec["when"][parent.name] = condition_json(condition, parent);
    }
    return spec;
}

}  // namespace

Json Space::to_json() const {
    Json space = Json::object();
    for (const Parameter& parameter : parameters_)
        space[parameter.name] = parameter_json(parameter, parameters_);
    return space;
}

}  // namespace tune::tuner
