// A Hyperopt space as clients/python/hyperopt_space.py prints it. Nodes:
//
//   {"hp": "uniform", "label": "lr", "args": [0, 1]}     a distribution; the arguments are
//   Hyperopt's
//   {"hp": "choice", "label": "opt", "options": [NODE, ...], "weights": [...]}
//   {"map": {"key": NODE}}, {"list": [NODE, ...]}, {"value": JSON}
//
// A choice whose options hold distributions becomes conditions: its values are the options' only
// texts, if each has one and they differ, else 0, 1, 2, ...

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tuner/interop/foreign/builder.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

bool holds_distribution(const Node& node) {
    if (node.find("hp") != nullptr) return true;
    if (const Node* map = node.find("map"))
        return std::any_of(map->entries.begin(), map->entries.end(),
                           [](const Entry& entry) { return holds_distribution(entry.value); });
    const Node* list = node.find("list");
    return list != nullptr &&
           std::any_of(list->items.begin(), list->items.end(), holds_distribution);
}

/// The value of a node without distributions.
Json plain_value(const Node& node) {
    if (const Node* value = node.find("value")) return to_json(*value);
    if (const Node* map = node.find("map")) {
        Json value = Json::object();
        for (const Entry& entry : map->entries) value[entry.key] = plain_value(entry.value);
        return value;
    }
    Json value = Json::array();
    if (const Node* list = node.find("list"))
        for (const Node& item : list->items) value.push_back(plain_value(item));
    return value;
}

/// The only text among the entries of an option: {"type": "svm", "C": ...}.
Json only_text(const Node& option) {
    Json found;
    if (const Node* value = option.find("value")) return to_json(*value);
    const Node* map = option.find("map");
    if (map == nullptr) return nullptr;
    for (const Entry& entry : map->entries) {
        const Node* value = entry.value.find("value");
        if (value == nullptr || value->type != Node::Type::kString) continue;
        if (!found.is_null()) return nullptr;
        found = value->text;
    }
    return found;
}

class TreeReader {
public:
    explicit TreeReader(StudyBuilder& builder) : builder_(builder) {}

    Result<void> read(const Node& node, const Json& when) {
        if (node.find("hp") != nullptr) return read_distribution(node, when);
        if (const Node* map = node.find("map")) {
            for (const Entry& entry : map->entries) {
                if (!holds_distribution(entry.value) && when.is_null())
                    builder_.note({}, "a fixed value, left to the script: " + entry.key + " = " +
                                          shortened(to_text(plain_value(entry.value))));
                TUNE_TRY_VOID(read(entry.value, when));
            }
            return {};
        }
        if (const Node* list = node.find("list"))
            for (const Node& item : list->items) TUNE_TRY_VOID(read(item, when));
        return {};
    }

    /// One label may stand in several branches; it is then there in each of them.
    Result<void> finish() {
        for (const auto& label : order_) {
            const Found& found = found_.at(label);
            Json when = found.whens.front();
            for (std::size_t i = 1; i < found.whens.size(); ++i)
                TUNE_TRY_VOID(widen(label, when, found.whens[i]));
            TUNE_TRY_VOID(builder_.add({}, label, found.spec, when));
        }
        return {};
    }

private:
    struct Found {
        Json spec;
        std::vector<Json> whens;
    };

    /// Any of two conditions, where they differ in one parent at most.
    static Result<void> widen(const std::string& label, Json& when, const Json& other) {
        if (when.is_null() || other.is_null()) {
            when = nullptr;
            return {};
        }
        std::string differs;
        bool is_same_shape = when.size() == other.size();
        for (const auto& [parent, value] : other.items()) {
            if (!when.contains(parent)) is_same_shape = false;
            if (!is_same_shape || when[parent] == value) continue;
            if (!differs.empty()) is_same_shape = false;
            differs = parent;
        }
        if (!is_same_shape)
            return error_at({}, label,
                            "it stands in branches of different choices; our conditions are joined "
                            "by 'and' only. Give it two labels");
        if (differs.empty()) return {};
        Json any = when[differs].is_array() ? when[differs] : Json::array({when[differs]});
        any.push_back(other[differs]);
        when[differs] = any;
        return {};
    }

    void keep(const std::string& label, Json spec, const Json& when) {
        const auto [at, is_new] = found_.try_emplace(label);
        if (is_new) order_.push_back(label);
        at->second.spec = std::move(spec);
        at->second.whens.push_back(when);
    }

    Result<void> read_distribution(const Node& node, const Json& when) {
        const Node* kind = node.find("hp");
        const Node* label = node.find("label");
        if (kind->type != Node::Type::kString || label == nullptr ||
            label->type != Node::Type::kString)
            return error_at(node.place, "hyperopt", "a distribution needs 'hp' and 'label'");
        if (kind->text == "choice") return read_choice(node, label->text, when);
        TUNE_TRY(spec, numeric(node, kind->text, label->text));
        keep(label->text, std::move(spec), when);
        return {};
    }

    Result<void> read_choice(const Node& node, const std::string& label, const Json& when) {
        const Node* options = node.find("options");
        if (options == nullptr || options->type != Node::Type::kList || options->items.empty())
            return error_at(node.place, label, "a choice needs 'options'");
        const bool is_nested =
            std::any_of(options->items.begin(), options->items.end(), holds_distribution);
        Json values = Json::array();
        for (const Node& option : options->items)
            values.push_back(is_nested ? only_text(option) : plain_value(option));
        bool are_names = is_nested;
        for (std::size_t i = 0; i < values.size(); ++i)
            are_names = are_names && !values[i].is_null() &&
                        std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i),
                                  values[i]) == values.begin() + static_cast<std::ptrdiff_t>(i);
        if (is_nested && !are_names) {
            builder_.note({}, label + ": its options are numbered in the order of the space");
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
        }
        Json spec = {{"choice", values}};
        if (const Node* weights = node.find("weights")) spec["weights"] = to_json(*weights);
        keep(label, std::move(spec), when);
        for (std::size_t i = 0; is_nested && i < options->items.size(); ++i) {
            Json inner = when.is_null() ? Json::object() : when;
            inner[label] = values[i];
            TUNE_TRY_VOID(read(options->items[i], inner));
        }
        return {};
    }

    Result<Json> numeric(const Node& node, const std::string& kind, const std::string& label) {
        const Node* given = node.find("args");
        const bool is_quantised = kind.starts_with('q');
        const std::size_t count = kind == "randint" && given != nullptr ? given->items.size()
                                  : is_quantised                        ? 3
                                                                        : 2;
        if (given == nullptr || count == 0 || count > 3)
            return error_at(node.place, label, "'args' are missing");
        TUNE_TRY(args, numbers_in(*given, label + ".args", count));
        const std::string plain = is_quantised ? kind.substr(1) : kind;
        ForeignDomain domain;
        domain.low = args[0];
        domain.high = count > 1 ? args[1] : 0;
        if (is_quantised) domain.step = args[2];
        if (kind == "randint") {
            domain.is_integer = true;
            domain.low = count == 1 ? 0 : args[0];
            domain.high = args[count == 1 ? 0 : 1] - 1;  // the upper end is not included there
        } else if (kind == "uniformint") {
            domain.is_integer = true;
        } else if (plain == "loguniform") {
            domain.log = true;  // bounds are logarithms there
            domain.low = std::exp(args[0]);
            domain.high = std::exp(args[1]);
        } else if (plain == "normal" || plain == "lognormal") {
            domain.kind = ForeignDomain::Kind::kNormal;
            domain.log = plain == "lognormal";
            domain.center = domain.log ? std::exp(args[0]) : args[0];
            domain.spread = args[1];
        } else if (plain != "uniform") {
            return error_at(node.place, label,
                            "distribution " + in_quotes(kind) + " has no counterpart");
        }
        return builder_.spec_of({}, label, domain);
    }

    StudyBuilder& builder_;
    std::map<std::string, Found> found_;
    std::vector<std::string> order_;
};

}  // namespace

Result<void> read_hyperopt(const Node& root, StudyBuilder& builder) {
    const Node* space = root.find("space");
    if (space == nullptr)
        return error_at(
            root.place, "hyperopt",
            "expected {\"hyperopt\": 1, \"space\": ...} as hyperopt_space.py prints it");
    TreeReader reader(builder);
    TUNE_TRY_VOID(reader.read(*space, nullptr));
    TUNE_TRY_VOID(reader.finish());
    builder.note({},
                 "values are ours: a log-uniform has its bounds, not their logarithms, and a "
                 "choice has its option, not the index");
    return {};
}

}  // namespace tune::tuner
