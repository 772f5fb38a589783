// Names that Optuna allows and we refuse get a usable one: refused characters become '_', and a
// number makes the result unique. Names that need no change are taken first, so that adding a bad
// name never renames a good one. Every place where a name stands (trials, attributes, JSON texts)
// goes through the same map.

#include "tuner/interop/optuna/optuna_names.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/json.h"
#include "base/limits.h"
#include "base/text/utf8.h"
#include "tuner/config/study_words.h"
#include "tuner/space/space_check.h"

namespace tune::tuner {
namespace {

constexpr std::string_view kConstraints = "constraints";
constexpr std::string_view kConstraintPrefix = "constraints:";
constexpr const char* kFixedParams = "fixed_params";
constexpr const char* kMetricNames = "study:metric_names";

/// Usable names by Optuna's, each with one of its own.
class Names {
public:
    using NameCheck = std::optional<std::string> (*)(std::string_view);
    Names(const char* what, NameCheck error_of, std::vector<std::string>& notes)
        : what_(what), error_of_(error_of), notes_(notes) {}

    /// Those that need no other keep theirs, whatever the others become.
    void keep(const std::string& name) {
        if (!error_of_(name)) taken_.insert(name);
    }

    const std::string& of(const std::string& name) {
        const auto [place, is_new] = usable_.try_emplace(name, name);
        if (!is_new || !error_of_(name)) return place->second;
        const std::string plain = spelled(name);
        std::string free = plain;
        for (int i = 2; !taken_.insert(free).second; ++i) free = plain + "_" + std::to_string(i);
        notes_.push_back("the " + std::string(what_) + " '" + name + "' is called '" + free + "'");
        return place->second = free;
    }

private:
    /// With '_' in place of each character that is refused.
    [[nodiscard]] std::string spelled(const std::string& name) const {
        std::string out;
        for (const char c : name) {
            if (is_utf8_continuation(c)) continue;
            // Digits are refused as a parameter's first character only.
            out += error_of_("a" + std::string(1, c)) ? '_' : c;
        }
        if (out.size() > kKeyCharsMax - kNumberRoom) out.resize(kKeyCharsMax - kNumberRoom);
        return error_of_(out) ? "_" + out : out;
    }

    static constexpr std::size_t kNumberRoom = 8;  // for what makes it unlike others

    const char* what_;
    NameCheck error_of_;
    std::vector<std::string>& notes_;
    std::map<std::string, std::string> usable_;
    std::set<std::string> taken_;
};

/// What `rename` makes of a JSON text, or the text where it is none.
template <class Rename>
void change_json(std::string& text, const Rename& rename) {
    const Result<Json> json = parse_json(text);
    if (json) text = to_text(rename(*json));
}

void rename_parameters(OptunaStudy& study, std::vector<std::string>& notes) {
    Names names("parameter", name_error, notes);
    for (const OptunaTrial& trial : study.trials)
        for (const OptunaParam& param : trial.params) names.keep(param.name);
    for (OptunaTrial& trial : study.trials) {
        for (OptunaParam& param : trial.params) param.name = names.of(param.name);
        for (auto& [key, json] : trial.system_attributes) {
            if (key != kFixedParams) continue;
            change_json(json, [&names](const Json& given) {
                Json fixed = Json::object();
                for (const auto& [name, value] : given.items()) fixed[names.of(name)] = value;
                return fixed;
            });
        }
    }
}

void rename_metrics(OptunaStudy& study, std::vector<std::string>& notes) {
    Names names("metric", metric_name_error, notes);
    for (auto& [key, json] : study.system_attributes) {
        if (key != kMetricNames) continue;
        change_json(json, [&names](const Json& given) {
            Json usable = Json::array();
            for (const Json& name : given)
                usable.push_back(name.is_string() ? Json(names.of(name.get<std::string>())) : name);
            return usable;
        });
    }
}

/// [0.1, -2] as the attributes "constraints:0" and "constraints:1", but for names that are there.
void split_constraints(OptunaAttributes& attributes) {
    Json list;
    std::set<std::string, std::less<>> there;
    for (const auto& [key, json] : attributes) {
        there.insert(key);
        if (key != kConstraints) continue;
        if (const Result<Json> read = parse_json(json)) list = *read;
    }
    if (!list.is_array()) return;
    for (std::size_t i = 0; i < list.size(); ++i) {
        std::string key = std::string(kConstraintPrefix) + std::to_string(i);
        if (!there.contains(key)) attributes.emplace_back(std::move(key), to_text(list[i]));
    }
}

void rename_constraints(OptunaStudy& study, std::vector<std::string>& notes) {
    Names names("constraint", metric_name_error, notes);
    for (OptunaTrial& trial : study.trials) {
        split_constraints(trial.system_attributes);
        for (auto& [key, json] : trial.system_attributes)
            if (key.starts_with(kConstraintPrefix))
                key =
                    std::string(kConstraintPrefix) + names.of(key.substr(kConstraintPrefix.size()));
    }
}

}  // namespace

void make_names_usable(OptunaStudy& study, std::vector<std::string>& notes) {
    rename_parameters(study, notes);
    rename_metrics(study, notes);
    rename_constraints(study, notes);
}

}  // namespace tune::tuner
