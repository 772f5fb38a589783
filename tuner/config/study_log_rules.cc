// `log_rules` of study.yaml: what lines of output say about a failure.

#include <re2/re2.h>

#include <nlohmann/json.hpp>

#include "tuner/config/study_sections.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kLogPatternBytesMax = 1000;
constexpr std::size_t kLogRulesMax = 100;

Result<void> read_log_pattern(const Fields& fields, LogRule& rule) {
    const Node* pattern = fields.find("pattern");
    if (pattern == nullptr)
        return error_at(fields.node().place, fields.path(), "'pattern' is missing");
    TUNE_TRY_VOID(check_text(*pattern, fields.path_of("pattern"), kLogPatternBytesMax));
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 compiled(pattern->text, options);
    if (pattern->text.empty() || !compiled.ok())
        return error_at(pattern->place, fields.path_of("pattern"),
                        "the pattern " + in_quotes(pattern->text) +
                            " is not a regular expression (RE2)" +
                            (compiled.ok() ? "" : ": " + compiled.error()));
    rule.pattern = pattern->text;
    return {};
}

OptionTable log_rule_rows() {
    TableOf<LogRule> table;
    table
        .custom("pattern",
                {.type = "text",
                 .schema = R"({"type": "string", "minLength": 1, "maxLength": 1000})",
                 .api = "text",
                 .read = read_log_pattern,
                 .write = [](const LogRule& rule, Json& json) { json["pattern"] = rule.pattern; },
                 .is_always_written = true},
                "a regular expression (RE2) that is found in a line of the output")
        .needed();
    std::vector<std::pair<std::string, LogAction>> names;
    for (const auto& [action, name] : kLogActions) names.emplace_back(name, action);
    table.choice("action", &LogRule::action, std::move(names),
                 "what is done when an attempt that printed it fails");
    return table;
}

}  // namespace

const OptionTable& log_rule_options() {
    static const OptionTable kOptions = log_rule_rows();
    return kOptions;
}

Result<void> read_log_rules(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kList)
        return error_at(node.place, "log_rules",
                        "expected a list such as [{pattern: \"NCCL.*timeout\", action: retry}], "
                        "found " +
                            describe(node));
    if (node.items.size() > kLogRulesMax)
        return error_at(node.place, "log_rules", "at most 100 rules are supported");
    for (const Node& item : node.items) {
        TUNE_TRY(fields, Fields::open(item, "log_rules", log_rule_options().names()));
        LogRule rule;
        TUNE_TRY_VOID(log_rule_options().read(fields, &rule));
        config.log_rules.push_back(std::move(rule));
    }
    return {};
}

}  // namespace tune::tuner
