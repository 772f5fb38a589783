// study.yaml from the located tree: one function a key, found in one table, so that the table is
// also the list of what is allowed.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/number_text.h"
#include "tuner/config/command_template.h"
#include "tuner/config/fields.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_sections.h"
#include "tuner/space/expression/rule_reader.h"
#include "tuner/space/inline.h"
#include "tuner/space/node.h"
#include "tuner/space/space_reader.h"
#include "tuner/space/wording.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kCommandWordsMax = 10'000;
constexpr std::size_t kWordBytesMax = 128u << 10;  // Linux: MAX_ARG_STRLEN
constexpr std::size_t kPathBytesMax = 4096;

Result<void> read_version(const Node& node, StudyConfig&) {
    if (node.type == Node::Type::kInt && node.integer == 1) return {};
    return fault_at(node.place, "version",
                    "expected 1, found " + describe(node) + "; a later version needs a later tune");
}

Result<void> read_study_name(const Node& node, StudyConfig& config) {
    TUNE_TRY_VOID(check_text(node, "study", 200));
    const std::string& name = node.text;
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.front() == ' ' || name.back() == ' ')
        return fault_at(
            node.place, "study",
            "expected a name without '/', and not blank at its ends, found " + describe(node));
    config.study = name;
    return {};
}

Result<void> read_command(const Node& node, StudyConfig& config) {
    if (node.type == Node::Type::kString) {
        Result<std::vector<std::string>> words = split_command(node.text);
        if (!words)
            return Error{words.error().code, place_prefix(node.place) + words.error().message};
        config.command = std::move(*words);
    } else if (node.type == Node::Type::kList) {
        for (const Node& item : node.items) {
            if (item.type == Node::Type::kString) {
                config.command.push_back(item.text);
            } else if (item.is_scalar() && item.type != Node::Type::kNull) {
                config.command.push_back(item.type == Node::Type::kFloat ? number_text(item.number)
                                                                         : to_text(to_json(item)));
            } else {
                return fault_at(item.place, "command",
                                "expected a word of the command, found " + describe(item) +
                                    "; quote a word that holds braces: \"{args}\"");
            }
        }
    } else {
        return fault_at(
            node.place, "command",
            "expected a list such as [python, train.py, \"{args}\"], found " + describe(node));
    }
    if (config.command.empty() || config.command.front().empty())
        return fault_at(node.place, "command", "the command is empty");
    if (config.command.size() > kCommandWordsMax)
        return fault_at(node.place, "command", "the command has more than 10000 words");
    for (const std::string& word : config.command)
        if (word.size() > kWordBytesMax)
            return fault_at(node.place, "command", "a word of the command is longer than 128 kB");
    return {};
}

Result<void> read_env(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kMap)
        return fault_at(node.place, "env",
                        "expected a map such as {NAME: value}, found " + describe(node));
    for (const Entry& entry : node.entries) {
        const std::string& name = entry.key;
        if (name.empty() || name.find('=') != std::string::npos ||
            name.find('\0') != std::string::npos || name.size() > 250)
            return fault_at(entry.place, "env",
                            in_quotes(name) + " is not a name for an environment variable");
        const Node& value = entry.value;
        if (!value.is_scalar() || value.type == Node::Type::kNull)
            return fault_at(value.place.line != 0 ? value.place : entry.place,
                            "env." + shortened(name),
                            "expected a text or number, found " + describe(value));
        std::string text = value.type == Node::Type::kString  ? value.text
                           : value.type == Node::Type::kFloat ? number_text(value.number)
                                                              : to_text(to_json(value));
        if (text.size() > kWordBytesMax || text.find('\0') != std::string::npos)
            return fault_at(value.place, "env." + shortened(name),
                            "the value is longer than 128 kB or holds a NUL byte");
        config.env.emplace(name, std::move(text));
    }
    return {};
}

Result<void> read_grace(const Node& node, StudyConfig& config) {
    TUNE_TRY(grace_ms, duration_of(node, "grace"));
    config.grace_ms = grace_ms;
    return {};
}

Result<void> read_timeout(const Node& node, StudyConfig& config) {
    TUNE_TRY(timeout_ms, duration_of(node, "timeout"));
    if (timeout_ms <= 0) return fault_at(node.place, "timeout", "expected a duration above 0");
    config.timeout_ms = timeout_ms;
    return {};
}

Result<void> read_working_dir(const Node& node, StudyConfig& config) {
    TUNE_TRY_VOID(check_text(node, "working_dir", kPathBytesMax));
    config.working_dir = node.text;
    return {};
}

/// Read before or after all others; see read_root.
Result<void> skip(const Node&, StudyConfig&) {
    return {};
}

struct Section {
    const char* key;
    Result<void> (*read)(const Node&, StudyConfig&);
};

constexpr Section kSections[] = {
    {"version", read_version},
    {"study", read_study_name},
    {"command", read_command},
    {"metric", read_metric},
    {"constraints", read_constraints},
    {"space", skip},
    {"space_order", skip},
    {"forbid", skip},
    {"derive", skip},
    {"initial", skip},
    {"sampler", read_sampler},
    {"pruner", read_pruner},
    {"budget", read_budget},
    {"retry", read_retry},
    {"scrape", read_scrape},
    {"grace", read_grace},
    {"timeout", read_timeout},
    {"env", read_env},
    {"working_dir", read_working_dir},
    {"warm_start", read_warm_start},
};

std::vector<std::string> section_keys() {
    std::vector<std::string> keys;
    for (const Section& section : kSections)
        if (std::string_view(section.key) != "space_order") keys.emplace_back(section.key);
    return keys;
}

/// `space_order` restores the order of declaration that JSON objects lose.
Result<void> reorder(Node& space, const Node& order) {
    if (order.type != Node::Type::kList || order.items.size() != space.entries.size())
        return fault_at(order.place, "space_order",
                        "expected a list of all names of the space, each once");
    std::vector<Entry> entries;
    for (const Node& item : order.items) {
        const auto found =
            std::find_if(space.entries.begin(), space.entries.end(), [&](const Entry& entry) {
                return item.type == Node::Type::kString && entry.key == item.text;
            });
        if (found == space.entries.end())
            return fault_at(item.place, "space_order",
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
            return fault_at({}, "space",
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
        return fault_at(
            root.place, "study",
            "expected a map with the keys " + listed(section_keys()) + ", found " + describe(root));
    StudyConfig config;
    Node space;
    const Node* order = nullptr;
    const Node* command = nullptr;
    for (Entry& entry : root.entries) {
        const auto section = std::find_if(std::begin(kSections), std::end(kSections),
                                          [&](const Section& s) { return entry.key == s.key; });
        if (section == std::end(kSections)) {
            return fault_at(
                entry.place, {},
                "unknown key " + in_quotes(entry.key) + known_words(entry.key, section_keys()));
        }
        if (entry.value.place.line == 0) entry.value.place = entry.place;
        TUNE_TRY_VOID(section->read(entry.value, config));
        if (entry.key == "command") command = &entry.value;
        if (entry.key == "space_order") order = &entry.value;
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
