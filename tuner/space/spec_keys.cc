#include "tuner/space/spec_keys.h"

namespace tune::tuner {
namespace {

constexpr std::string_view kTwoNumbers =
    R"("type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2)";
constexpr std::string_view kValues = R"("type": "array", "minItems": 1, "maxItems": 10000)";

SpecKey key_of(Kind kind) {
    switch (kind) {
        case Kind::kFloat:
            return {"float", kTwoNumbers,
                    "lowest and highest value, both included; never exponents"};
        case Kind::kInt:
            return {
                "int",
                R"("type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2)",
                "lowest and highest value, both included"};
        case Kind::kChoice: return {"choice", kValues, "the values, without order"};
        case Kind::kOrdinal: return {"ordinal", kValues, "the values, in order"};
        case Kind::kConst: break;
    }
    return {"const", "", "the value"};
}

void add_number_keys(Kind kind, std::vector<SpecKey>& keys) {
    keys.push_back({"log", R"("type": "boolean")", "the logarithm is what is uniform"});
    keys.push_back({"step",
                    kind == Kind::kInt ? R"("type": "integer", "minimum": 1)"
                                       : R"("type": "number", "exclusiveMinimum": 0)",
                    "distance of the values"});
    keys.push_back({"normal", kTwoNumbers, "prior: mean and standard deviation"});
    keys.push_back(
        {"lognormal", kTwoNumbers, "prior: median, and standard deviation of the logarithm"});
}

}  // namespace

std::vector<SpecKey> spec_keys(Kind kind, bool is_short_prior) {
    std::vector<SpecKey> keys;
    if (is_short_prior) {
        keys.push_back({"low", R"("type": "number")", "lowest value"});
        keys.push_back({"high", R"("type": "number")", "highest value"});
    } else {
        keys.push_back(key_of(kind));
    }
    if (kind == Kind::kFloat || kind == Kind::kInt) add_number_keys(kind, keys);
    if (kind == Kind::kChoice)
        keys.push_back({"weights",
                        R"("type": "array", "minItems": 1,
                           "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9})",
                        "how often each value is tried before anything is known, relative"});
    if (kind != Kind::kConst) keys.push_back({"init", "", "the value that the first trial tries"});
    keys.push_back({"when",
                    R"("type": ["object", "null"],
                       "additionalProperties": {"$ref": "#/definitions/condition"})",
                    "the parameter exists only where all of these hold"});
    return keys;
}

}  // namespace tune::tuner
