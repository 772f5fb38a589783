// study.yaml from the located tree. What is allowed is what study_sections() lists.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/number_text.h"
#include "tuner/config/command_template.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_sections.h"
#include "tuner/space/error_text.h"
#include "tuner/space/expression/rule_reader.h"
#include "tuner/space/inline.h"
#include "tuner/space/node.h"
#include "tuner/space/space_reader.h"

namespace tune::tuner {
namespace {

/// Of JSON only, and not offered to people.
constexpr std::string_view kSpaceOrder = "space_order";

std::vector<std::string> section_keys() {
    std::vector<std::string> keys;
    for (const Section& section : study_sections())
        if (section.key != kSpaceOrder) keys.emplace_back(section.key);
    return keys;
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
        return error_at(
            root.place, "study",
            "expected a map with the keys " + listed(section_keys()) + ", found " + describe(root));
    StudyConfig config;
    Node space;
    const Node* order = nullptr;
    const Node* command = nullptr;
    for (Entry& entry : root.entries) {
        const auto sections = study_sections();
        const auto section = std::find_if(sections.begin(), sections.end(),
                                          [&](const Section& s) { return entry.key == s.key; });
        if (section == sections.end()) {
            return error_at(
                entry.place, {},
                "unknown key " + in_quotes(entry.key) + known_words(entry.key, section_keys()));
        }
        if (entry.value.place.line == 0) entry.value.place = entry.place;
        // Those without a reader make up the space, below.
        if (section->read != nullptr) TUNE_TRY_VOID(section->read(entry.value, config));
        if (entry.key == "command") command = &entry.value;
        if (entry.key == kSpaceOrder) order = &entry.value;
    }
    Node forbid;
    Node derive;
    Node initial;
    for (Entry& entry : root.entries) {
        if (entry.key == "space") space = std::move(entry.value);
        if (entry.key == "forbid") forbid = std::move(entry.value);
        if (entry.key == "derive") derive = std::move(entry.value);
        if (entry.key == "initial") initial = std::move(entry.value);
    }
    if (order != nullptr) TUNE_TRY_VOID(reorder(space, *order));
    TUNE_TRY_VOID(merge_inline(space, derive, inline_parameters));
    TUNE_TRY(read, read_space(space, "space"));
    TUNE_TRY(whole, with_rules(read, {.forbid = &forbid, .derive = &derive, .initial = &initial}));
    config.space = std::move(whole);
    if (command != nullptr) {
        Result<void> checked = check_command(config.command, config.space);
        if (!checked)
            return Error{checked.error().code,
                         place_prefix(command->place) + checked.error().message};
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
