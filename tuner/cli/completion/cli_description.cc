#include "tuner/cli/completion/cli_description.h"

#include <CLI/CLI.hpp>

namespace tune::cli {
namespace {

/// CLI11 writes the type and the checks as one: "TEXT:{light,dark}", "FLOAT:INT in [1 - 64]".
void read_type(const std::string& type, OptionText& option) {
    option.value = type.substr(0, type.find(':'));
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return;
    std::size_t from = open + 1;
    while (from < close) {
        const std::size_t comma = std::min(type.find(',', from), close);
        option.choices.push_back(type.substr(from, comma - from));
        from = comma + 1;
    }
}

OptionText describe(const CLI::Option& option) {
    OptionText text{.summary = option.get_description(),
                    .fallback = option.get_default_str(),
                    .is_positional = option.get_positional(),
                    .is_required = option.get_required(),
                    .is_repeated = option.get_expected_max() > 1};
    if (text.is_positional) {
        text.names.push_back(option.get_name(true));
    } else {
        for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
        for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
    }
    if (option.get_items_expected_max() > 0) read_type(option.get_type_name(), text);
    return text;
}

}  // namespace

VerbText describe(const CLI::App& app) {
    VerbText verb{
        .name = app.get_name(), .summary = app.get_description(), .footer = app.get_footer()};
    for (const CLI::Option* option : app.get_options()) verb.options.push_back(describe(*option));
    for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; }))
        verb.verbs.push_back(describe(*inner));
    return verb;
}

}  // namespace tune::cli
