// The `space` map of a study to a Space. Two passes: first every parameter's own domain, then the
// conditions, which may name parameters that stand further down.
//
// The reader adds places: each check is the one that Space::make applies to parameters built in
// code (space_check.cc), and the key that it finds wrong is looked up in the tree for its line and
// column. A parameter given as a text goes through the inline grammar (inline.cc) and becomes the
// same tree. Keys of other tools (`uniform`, `randint`, `values`, ...) are answered with the
// spelling that is meant here.

#include "tuner/space/space_reader.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tuner/space/error_text.h"
#include "tuner/space/inline.h"
#include "tuner/space/prior.h"
#include "tuner/space/reachable.h"
#include "tuner/space/space_check.h"
#include "tuner/space/spec_keys.h"

namespace tune::tuner {

Result<void> expect_keys(const Node& map, std::string_view path,
                         const std::vector<std::string>& known) {
    for (const Entry& entry : map.entries)
        if (std::find(known.begin(), known.end(), entry.key) == known.end())
            return error_at(entry.place, path,
                            "unknown key " + in_quotes(entry.key) + known_words(entry.key, known));
    return {};
}

namespace {

constexpr const char* kShapes =
    "{float: [0, 1]}, {int: [1, 8]}, {choice: [a, b]}, {ordinal: [1, 2, 4]}, {const: 3} or "
    "{normal: [0, 1], low: -5, high: 5}";

const std::unordered_map<std::string, Kind> kKinds = {{"float", Kind::kFloat},
                                                      {"int", Kind::kInt},
                                                      {"choice", Kind::kChoice},
                                                      {"ordinal", Kind::kOrdinal},
                                                      {"const", Kind::kConst}};

/// Spellings of other tools, each with ours.
const std::unordered_map<std::string, std::string> kForeign = {
    {"uniform", "{float: [low, high]}"},
    {"loguniform", "{float: [low, high], log: true} (bounds are the values themselves)"},
    {"log_uniform", "{float: [low, high], log: true} (bounds are the values themselves)"},
    {"quniform", "{float: [low, high], step: s}"},
    {"randint", "{int: [low, high]} (both ends are included)"},
    {"integer", "{int: [low, high]}"},
    {"double", "{float: [low, high]}"},
    {"categorical", "{choice: [a, b]}"},
    {"values", "{choice: [a, b]}"},
    {"grid", "{ordinal: [a, b]}"},
    {"value", "{const: v}"},
    {"min", "{float: [low, high]}"},
    {"low", "{float: [low, high]}"},
    {"distribution", "{float: [low, high]}"},
    {"type", "{float: [low, high]}"},
    {"_type", "{float: [low, high]}"}};

struct Draft {
    Parameter parameter;
    const Node* spec = nullptr;
    std::string path;
    Place place;                  // of the name
    bool is_short_prior = false;  // {normal: [0, 1], low: -5, high: 5}: no kind, a float
};

class SpaceReader {
public:
    SpaceReader(const Node& space, std::string_view path) : space_(space), path_(path) {}

    Result<Space> read() {
        if (space_.type == Node::Type::kNull) return Space();
        if (space_.type != Node::Type::kMap)
            return error_at(space_.place, path_,
                            "expected a map of parameters, each such as lr: {float: [0, 1]}, "
                            "found " +
                                describe(space_));
        if (space_.entries.size() > kParametersMax)
            return error_at(space_.place, path_,
                            "it has " + std::to_string(space_.entries.size()) +
                                " parameters; at most " + std::to_string(kParametersMax) +
                                " are supported");
        drafts_.reserve(space_.entries.size());
        for (const Entry& entry : space_.entries) TUNE_TRY_VOID(read_parameter(entry));
        for (Draft& draft : drafts_) TUNE_TRY_VOID(read_when(draft));
        return assemble();
    }

private:
    Result<void> read_parameter(const Entry& entry) {
        Draft draft;
        draft.path = path_ + "." + shortened(entry.key);
        draft.place = entry.place;
        draft.spec = &entry.value;
        draft.parameter.name = entry.key;
        if (const auto error = name_error(entry.key)) return error_at(entry.place, path_, *error);
        if (entry.value.type == Node::Type::kString) TUNE_TRY_VOID(expand_inline(entry, draft));
        const Node& spec = *draft.spec;
        if (spec.type != Node::Type::kMap || spec.entries.empty())
            return error_at(spec.place, draft.path,
                            "expected " + std::string(kShapes) + ", found " + describe(spec));
        TUNE_TRY_VOID(read_kind(spec, draft));
        TUNE_TRY_VOID(read_options(spec, draft));
        if (const auto error = settle_domain(draft.parameter))
            return error_at(place_of(draft, error->key), draft.path, error->message);
        index_.emplace(entry.key, drafts_.size());
        drafts_.push_back(std::move(draft));
        return {};
    }

    /// `lr: 1e-5..1e-1:log` in a file: the inline grammar, with the place of the text.
    Result<void> expand_inline(const Entry& entry, Draft& draft) {
        Result<InlineParameter> expanded =
            parse_inline_parameter(entry.key + "=" + entry.value.text);
        if (!expanded) return error_at(entry.value.place, draft.path, expanded.error().message);
        if (expanded->is_derived)
            return error_at(entry.value.place, draft.path, "derived values stand under 'derive'");
        expanded_.push_back(std::move(expanded->spec));
        expanded_.back().place = entry.value.place;
        draft.spec = &expanded_.back();
        return {};
    }

    static Place place_of(const Draft& draft, const std::string& key) {
        const Node* value = key.empty() ? nullptr : draft.spec->find(key);
        if (value != nullptr && value->place.line != 0) return value->place;
        return draft.spec->place.line != 0 ? draft.spec->place : draft.place;
    }

    Result<void> read_kind(const Node& spec, Draft& draft) {
        const Entry* found = nullptr;
        for (const Entry& entry : spec.entries) {
            if (!kKinds.contains(entry.key)) continue;
            if (found != nullptr)
                return error_at(entry.place, draft.path,
                                in_quotes(found->key) + " and " + in_quotes(entry.key) +
                                    " exclude each other; a parameter is of one kind");
            found = &entry;
        }
        if (found == nullptr) {
            draft.is_short_prior = prior_entry(spec) != nullptr;
            return draft.is_short_prior ? Result<void>() : unknown_kind(spec, draft);
        }
        Parameter& parameter = draft.parameter;
        parameter.kind = kKinds.at(found->key);
        const std::string path = draft.path + "." + found->key;
        if (parameter.kind == Kind::kConst) {
            parameter.choices = {to_json(found->value)};
            return {};
        }
        if (parameter.kind == Kind::kFloat || parameter.kind == Kind::kInt)
            return read_bounds(found->value, path, parameter);
        if (found->value.type != Node::Type::kList)
            return error_at(found->value.place, path,
                            "expected a list of values, found " + describe(found->value));
        for (const Node& item : found->value.items) parameter.choices.push_back(to_json(item));
        return {};
    }

    static Result<void> unknown_kind(const Node& spec, const Draft& draft) {
        for (const Entry& entry : spec.entries)
            if (const auto foreign = kForeign.find(entry.key); foreign != kForeign.end())
                return error_at(
                    entry.place, draft.path,
                    "unknown key " + in_quotes(entry.key) + "; write " + foreign->second);
        const std::vector<std::string> known = {"float", "int", "choice", "ordinal", "const"};
        for (const Entry& entry : spec.entries)
            if (!did_you_mean(entry.key, known).empty())
                return error_at(
                    entry.place, draft.path,
                    "unknown key " + in_quotes(entry.key) + known_words(entry.key, known));
        return error_at(spec.place, draft.path,
                        "its kind is missing; expected " + std::string(kShapes));
    }

    static Result<void> read_bounds(const Node& value, const std::string& path, Parameter& p) {
        if (value.type != Node::Type::kList || value.items.size() != 2)
            return error_at(value.place, path,
                            "expected [low, high], both included, found " + describe(value));
        double* const bounds[] = {&p.low, &p.high};
        for (std::size_t i = 0; i < 2; ++i) {
            const Node& bound = value.items[i];
            if (!bound.is_number())
                return error_at(bound.place, path, "expected a number, found " + describe(bound));
            *bounds[i] = bound.number;
        }
        return {};
    }

    static Result<void> read_options(const Node& spec, Draft& draft) {
        Parameter& p = draft.parameter;
        std::vector<std::string> known;
        for (const SpecKey& key : spec_keys(p.kind, draft.is_short_prior))
            known.emplace_back(key.name);
        TUNE_TRY_VOID(expect_keys(spec, draft.path, known));
        if (const Node* log = spec.find("log")) {
            if (log->type != Node::Type::kBool)
                return error_at(log->place, draft.path + ".log",
                                "expected true or false, found " + describe(*log));
            p.log = log->boolean;
        }
        if (const Node* step = spec.find("step")) {
            if (!step->is_number())
                return error_at(step->place, draft.path + ".step",
                                "expected a number, found " + describe(*step));
            p.step = step->number;
            if (p.step == 0)
                return error_at(step->place, draft.path + ".step", "a step must be above 0");
        }
        TUNE_TRY_VOID(read_prior(spec, draft.path, draft.is_short_prior, p));
        return read_init(spec, draft);
    }

    static Result<void> read_init(const Node& spec, Draft& draft) {
        const Node* init = spec.find("init");
        if (init == nullptr) return {};
        // The domain must be settled before a value can be looked up in it.
        Parameter settled = draft.parameter;
        if (const auto error = settle_domain(settled))
            return error_at(place_of(draft, error->key), draft.path, error->message);
        Result<double> value = settled.internal(to_json(*init));
        if (!value) return error_at(init->place, draft.path + ".init", value.error().message);
        draft.parameter.init = *value;
        return {};
    }

    Result<void> read_when(Draft& draft) {
        const Node* when = draft.spec->find("when");
        if (when == nullptr || when->type == Node::Type::kNull) return {};
        const std::string path = draft.path + ".when";
        if (when->type != Node::Type::kMap)
            return error_at(when->place, path,
                            "expected a map such as {opt: sgd}, found " + describe(*when));
        for (const Entry& entry : when->entries) {
            const auto parent = index_.find(entry.key);
            if (parent == index_.end())
                return error_at(entry.place, path,
                                "the space has no parameter " + in_quotes(entry.key) +
                                    known_words(entry.key, names()));
            if (entry.key == draft.parameter.name)
                return error_at(entry.place, path, "a parameter cannot depend on itself");
            const Parameter& of = drafts_[parent->second].parameter;
            Condition condition;
            condition.parent = parent->second;
            TUNE_TRY_VOID(
                read_condition(entry.value, path + "." + shortened(entry.key), of, condition));
            if (const auto error = condition_error(condition, of))
                return error_at(entry.value.place.line != 0 ? entry.value.place : entry.place, path,
                                *error);
            draft.parameter.when.push_back(std::move(condition));
        }
        std::sort(draft.parameter.when.begin(), draft.parameter.when.end(),
                  [&](const Condition& a, const Condition& b) {
                      return drafts_[a.parent].parameter.name < drafts_[b.parent].parameter.name;
                  });
        return {};
    }

    /// A value that is itself a list or a map (a choice of lists) wins over the list's and the
    /// map's meaning as a condition.
    static Result<void> read_condition(const Node& value, const std::string& path,
                                       const Parameter& parent, Condition& condition) {
        const Json whole = to_json(value);
        for (const Json& choice : parent.choices)
            if (choice == whole) return add_value(value, path, parent, condition);
        if (value.type == Node::Type::kMap) return read_comparison(value, path, parent, condition);
        if (value.type != Node::Type::kList) return add_value(value, path, parent, condition);
        if (value.items.empty())
            return error_at(value.place, path, "the list is empty, so the condition never holds");
        for (const Node& item : value.items)
            TUNE_TRY_VOID(add_value(item, path, parent, condition));
        std::sort(condition.any_of.begin(), condition.any_of.end());
        condition.any_of.erase(std::unique(condition.any_of.begin(), condition.any_of.end()),
                               condition.any_of.end());
        return {};
    }

    static Result<void> add_value(const Node& value, const std::string& path,
                                  const Parameter& parent, Condition& condition) {
        if (parent.kind == Kind::kFloat && parent.step == 0)
            return error_at(value.place, path,
                            in_quotes(parent.name) +
                                " is a float without step and never exactly one value; expected a "
                                "comparison such as {\">=\": 0.5}");
        Result<double> internal = parent.internal(to_json(value));
        if (!internal) return error_at(value.place, path, internal.error().message);
        condition.any_of.push_back(*internal);
        return {};
    }

    static Result<void> read_comparison(const Node& value, const std::string& path,
                                        const Parameter& parent, Condition& condition) {
        if (parent.kind == Kind::kChoice || parent.kind == Kind::kConst)
            return error_at(value.place, path,
                            "the values of a " + std::string(kind_name(parent.kind)) +
                                " have no order; expected a value or a list of values");
        if (value.entries.empty())
            return error_at(value.place, path, "expected a comparison such as {\">=\": 3}");
        TUNE_TRY_VOID(expect_keys(value, path, {">=", ">", "<=", "<"}));
        for (const Entry& entry : value.entries) {
            double bound = entry.value.number;
            if (parent.kind == Kind::kOrdinal) {
                Result<double> index = parent.internal(to_json(entry.value));
                if (!index) return error_at(entry.value.place, path, index.error().message);
                bound = *index;
            } else if (!entry.value.is_number() || bound != bound) {
                return error_at(
                    entry.value.place, path,
                    "expected a number after '" + entry.key + "', found " + describe(entry.value));
            }
            const bool is_lower = entry.key[0] == '>';
            const bool is_open = entry.key.size() == 1;
            double& end = is_lower ? condition.low : condition.high;
            if (std::abs(end) != std::numeric_limits<double>::infinity())
                return error_at(entry.place, path,
                                "'" + entry.key + "' gives the same end a second time");
            end = bound;
            (is_lower ? condition.low_open : condition.high_open) = is_open;
        }
        return {};
    }

    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const Draft& draft : drafts_) names.push_back(draft.parameter.name);
        return names;
    }

    Result<Space> assemble() {
        std::vector<Parameter> parameters;
        parameters.reserve(drafts_.size());
        for (Draft& draft : drafts_) parameters.push_back(std::move(draft.parameter));
        const ConditionOrder order = order_parents_first(parameters);
        if (!order.cycle.empty()) {
            const Draft& first = drafts_[order.cycle.front()];
            return error_at(place_of(first, "when"), first.path + ".when",
                            "the conditions form a cycle: " + cycle_text(parameters, order.cycle));
        }
        // What has no line may be a study that is recorded, which must load.
        if (const auto error = never_active(parameters, order.parents_first)) {
            const Draft& of = drafts_[error->parameter];
            if (const Place place = place_of(of, "when"); place.line != 0)
                return error_at(place, of.path + ".when", error->message);
        }
        return Space::make(std::move(parameters));
    }

    const Node& space_;
    std::string path_;
    std::vector<Draft> drafts_;
    std::deque<Node> expanded_;
    std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace

Result<Space> read_space(const Node& space, std::string_view path) {
    return SpaceReader(space, path).read();
}

}  // namespace tune::tuner
