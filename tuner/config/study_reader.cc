// study.yaml from the located tree. Each key is read by its row in study_options(); the keys that
// make up the space are read here, together, because conditions, rules and initial points refer to
// all parameters, and parameters may also come from the command line.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/number_text.h"
#include "tuner/config/command_template.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_sections.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"
#include "tuner/space/expression/rule_reader.h"
#include "tuner/space/inline.h"
#include "tuner/space/node.h"
#include "tuner/space/space_reader.h"

namespace tune::tuner {
namespace {

/// Of JSON only, and not offered to people.
constexpr std::string_view kSpaceOrder = "space_order";

std::vector<std::string> keys_for_people() {
    std::vector<std::string> keys = study_options().names();
    std::erase(keys, kSpaceOrder);
    return keys;
}

/// Takes the value out of the map; null where it has no such key.
Node take_out(Node& map, std::string_view key) {
    const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                    [&](const Entry& entry) { return entry.key == key; });
    if (found == map.entries.end()) return {};
    Node value = std::move(found->value);
    map.entries.erase(found);
    return value;
}

/// `space_order` restores the order of declaration that JSON objects lose.
Result<void> reorder(Node& space, const Node& order) {
    if (order.type != Node::Type::kList || order.items.size() != space.entries.size())
        return error_at(order.place, "space_order",
                        "expected a list of all names of the space, each once");
    std::vector<Entry> entries;
    for (const Node& item : order.items) {
        const auto found =
            std::find_if(space.entries.begin(), space.entries.end(), [&](const Entry& entry) {
                return item.type == Node::Type::kString && entry.key == item.text;
            });
        if (found == space.entries.end())
            return error_at(item.place, "space_order",
                            "expected all names of the space, each once; found " + describe(item));
        entries.push_back(std::move(*found));
        found->key.clear();
    }
    space.entries = std::move(entries);
    return {};
}

/// Parameters go to `space`, derived values to `derive`.
Result<void> merge_inline(Node& space, Node& derive, const std::vector<std::string>& words) {
    std::vector<std::string> seen;
    for (const std::string& word : words) {
        TUNE_TRY(parameter, parse_inline_parameter(word));
        if (std::find(seen.begin(), seen.end(), parameter.name) != seen.end())
            return error_at({}, "space",
                            "the parameter " + in_quotes(parameter.name) +
                                " is given twice on the command line");
        seen.push_back(parameter.name);
        Node& into = parameter.is_derived ? derive : space;
        if (into.type == Node::Type::kNull) into.type = Node::Type::kMap;
        const auto found =
            std::find_if(into.entries.begin(), into.entries.end(),
                         [&](const Entry& entry) { return entry.key == parameter.name; });
        if (found != into.entries.end()) {
            found->value = std::move(parameter.spec);
        } else {
            into.entries.push_back(Entry{std::move(parameter.name), {}, std::move(parameter.spec)});
        }
    }
    return {};
}

Result<StudyConfig> read_root(Node root, const std::vector<std::string>& inline_parameters) {
    if (root.type == Node::Type::kNull) root.type = Node::Type::kMap;
    if (root.type != Node::Type::kMap)
        return error_at(root.place, "study",
                        "expected a map with the keys " + listed(keys_for_people()) + ", found " +
                            describe(root));
    for (Entry& entry : root.entries)
        if (entry.value.place.line == 0) entry.value.place = entry.place;
    const bool is_ordered = root.find(kSpaceOrder) != nullptr;
    const Node order = take_out(root, kSpaceOrder);
    StudyConfig config;
    TUNE_TRY(fields, Fields::open(root, "", keys_for_people()));
    TUNE_TRY_VOID(study_options().read(fields, &config));
    const Node* command = root.find("command");
    const Place command_place = command != nullptr ? command->place : Place();
    Node space = take_out(root, "space");
    const Node forbid = take_out(root, "forbid");
    Node derive = take_out(root, "derive");
    const Node initial = take_out(root, "initial");
    if (is_ordered) TUNE_TRY_VOID(reorder(space, order));
    TUNE_TRY_VOID(merge_inline(space, derive, inline_parameters));
    TUNE_TRY(read, read_space(space, "space"));
    TUNE_TRY(whole, with_rules(read, {.forbid = &forbid, .derive = &derive, .initial = &initial}));
    config.space = std::move(whole);
    if (!config.command.empty()) {
        Result<void> checked = check_command(config.command, config.space);
        if (!checked)
            return Error{checked.error().code,
                         place_prefix(command_place) + checked.error().message};
    }
    return config;
}

}  // namespace

Result<StudyConfig> read_study(const StudySource& source) {
    const auto in_file = [&](Error error) {
        error.context = source.file;
        return error;
    };
    Node root;
    if (!source.text.empty()) {
        Result<Node> read =
            source.file.ends_with(".json") ? read_json(source.text) : read_yaml(source.text);
        if (!read) return in_file(std::move(read).error());
        root = std::move(*read);
    }
    Result<StudyConfig> config = read_root(std::move(root), source.inline_parameters);
    // Only what has a line stands in the file; the rest came from the command line.
    if (!config && config.error().message.starts_with("line "))
        return in_file(std::move(config).error());
    return config;
}

Result<StudyConfig> study_config_from_json(const Json& study) {
    TUNE_TRY(root, node_from_json(study));
    return read_root(std::move(root), {});
}

}  // namespace tune::tuner
