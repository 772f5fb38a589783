#include "tracker/store/reads/runs/run_fields.h"

#include <algorithm>

namespace tune::tracker {
namespace {

Error unknown(std::string_view name) {
    return {Code::kInvalidParameterValue,
            "Unknown name '" + std::string(name.substr(0, 500)) +
                "' in 'fields'. Known are info, data, metrics, params, tags, inputs, outputs, and "
                "metrics.KEY, params.KEY and tags.KEY, where KEY may end with *."};
}

KeySelection* selection_of(RunFields& fields, std::string_view kind) {
    if (kind == "metrics") return &fields.metrics;
    if (kind == "params") return &fields.params;
    if (kind == "tags") return &fields.tags;
    return nullptr;
}

void add_key(KeySelection& selection, std::string_view key) {
    if (key == "*") {
        selection.is_all = true;
    } else if (key.ends_with('*')) {
        selection.prefixes.emplace_back(key.substr(0, key.size() - 1));
    } else if (std::find(selection.names.begin(), selection.names.end(), key) ==
               selection.names.end()) {
        selection.names.emplace_back(key);
    }
}

bool add_whole(RunFields& fields, std::string_view name) {
    if (name == "info") return true;  // always there
    if (name == "inputs") return fields.inputs = true;
    if (name == "outputs") return fields.outputs = true;
    if (name == "data")
        return fields.metrics.is_all = fields.params.is_all = fields.tags.is_all = true;
    KeySelection* selection = selection_of(fields, name);
    if (selection != nullptr) selection->is_all = true;
    return selection != nullptr;
}

}  // namespace

bool KeySelection::holds(std::string_view key) const {
    if (is_all || std::find(names.begin(), names.end(), key) != names.end()) return true;
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [key](const std::string& prefix) { return key.starts_with(prefix); });
}

Result<RunFields> parse_run_fields(std::span<const std::string> names) {
    if (names.empty()) return RunFields{};
    if (names.size() > kRunFieldsMax)
        return Error{Code::kInvalidParameterValue,
                     "'fields' has " + std::to_string(names.size()) + " names; at most " +
                         std::to_string(kRunFieldsMax) + " are supported."};
    constexpr KeySelection kNone{.is_all = false};
    RunFields fields{false, false, kNone, kNone, kNone};
    for (const std::string_view name : names) {
        if (add_whole(fields, name)) continue;
        const std::size_t dot = name.find('.');
        if (dot == std::string_view::npos) return unknown(name);
        KeySelection* selection = selection_of(fields, name.substr(0, dot));
        const std::string_view key = name.substr(dot + 1);
        const std::size_t star = key.find('*');
        const bool is_key =
            !key.empty() && (star == std::string_view::npos || star + 1 == key.size());
        if (selection == nullptr || !is_key) return unknown(name);
        add_key(*selection, key);
    }
    return fields;
}

}  // namespace tune::tracker
