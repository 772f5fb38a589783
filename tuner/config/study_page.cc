// docs/study_file_options.md, from the tables of keys and options. A test compares the committed
// page with what this prints, so a changed row cannot leave the page behind.

#include "tuner/config/study_schema.h"
#include "tuner/config/study_sections.h"
#include "tuner/pruner/pruner_kind.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

constexpr const char* kHead =
    "# Options of a study file\n"
    "\n"
    "Every key of study.yaml, study.json and of the body that creates a study over REST. This page "
    "is printed by\n"
    "`tune schema --markdown`; `tune schema` prints the same as a JSON Schema for editors. "
    "Durations are seconds, or a text\n"
    "such as 90s, 1h30m, 250ms, 2d.\n";

constexpr const char* kSamplers =
    "\n## sampler\n"
    "\n"
    "`sampler: tpe` is short for `sampler: {type: tpe}`. In a finite space `duplicates: resample` "
    "runs no point twice and\n"
    "ends the study when every point was tried; `reuse` gives a trial of a point that is complete "
    "its value without running\n"
    "it (at most ten such trials in a row, then a point that none has had); `allow` is for noisy "
    "objectives.\n"
    "\n";

constexpr const char* kPruners =
    "\n## pruner\n"
    "\n"
    "`pruner: median` is short for `pruner: {type: median}`; on the command line "
    "`--pruner asha,min=1,max=90`. A pruner\n"
    "compares trials by one value, so a study with several objectives has none. Pruners combine:\n"
    "\n"
    "```yaml\n"
    "pruner: {type: any, of: [{type: threshold, upper: 10}, {type: patience, wait: 3, of: "
    "{type: asha, min: 1}}]}\n"
    "```\n"
    "\n";

std::string row(std::initializer_list<std::string> cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + (cell.empty() ? "|" : " |");
    return text + "\n";
}

std::string code(std::string_view text) {
    return text.empty() ? std::string() : "`" + std::string(text) + "`";
}

std::string option_row(const OptionTable& table, const Option& option) {
    const bool is_required = !option.required.empty() || option.is_needed;
    return row({code(option.name), OptionTable::type_text(option),
                is_required ? "required" : table.default_text(option), option.help});
}

std::string head_of_options() {
    return row({"key", "value", "default", "meaning"}) + "|---|---|---|---|\n";
}

std::string table_text(const OptionTable& table) {
    std::string text = head_of_options();
    for (const Option& option : table.rows()) text += option_row(table, option);
    return text;
}

std::string section_text(const std::string& title, const OptionTable& table) {
    return "\n## " + title + "\n\n" + table_text(table);
}

std::string kinds_text(const char* what, Kinds kinds) {
    std::string text = row({"type", what}) + "|---|---|\n";
    for (const KindBase* kind : kinds) text += row({code(kind->name), std::string(kind->help)});
    return text;
}

std::string title_of(const KindBase& kind) {
    return "\n### " + std::string(kind.name) + "\n\n";
}

std::string samplers_text() {
    std::string text = kSamplers + kinds_text("proposes", sampler_kinds());
    const OptionTable& common = common_sampler_options();
    for (const KindBase* kind : sampler_kinds()) {
        text += title_of(*kind) + head_of_options();
        for (const Option& option : kind->options.rows()) text += option_row(kind->options, option);
        const bool ends_itself = static_cast<const SamplerKind*>(kind)->ends_itself;
        for (const Option& option : common.rows())
            if (option.name == "seed" || !ends_itself) text += option_row(common, option);
    }
    return text;
}

std::string pruners_text() {
    std::string text = kPruners + kinds_text("prunes a trial when", pruner_kinds());
    for (const KindBase* kind : pruner_kinds())
        if (!kind->options.rows().empty()) text += title_of(*kind) + table_text(kind->options);
    return text;
}

}  // namespace

std::string study_options_page() {
    return kHead + section_text("Keys", study_options()) +
           section_text("metric", metric_options()) +
           section_text("constraints", constraint_options()) + samplers_text() + pruners_text() +
           section_text("budget", budget_options()) + section_text("budget.cost", cost_options()) +
           section_text("budget.no_progress", no_progress_options()) +
           section_text("resources", resources_options()) + section_text("retry", retry_options()) +
           section_text("scrape", scrape_options()) +
           section_text("log_rules", log_rule_options()) +
           section_text("checkpoints", checkpoint_options()) +
           section_text("warm_start", warm_start_options()) +
           section_text("warm_start.trials", earlier_trial_options());
}

}  // namespace tune::tuner
