// What `tune plot`, `importance`, `pruners` and `top` take on the command line.

#include "tuner/cli/commands/view_verbs.h"

#include <CLI/CLI.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tuner/cli/source_flags.h"
#include "tuner/plots/plots.h"
#include "tuner/pruner/pruner_config.h"

namespace tune::cli {
namespace {

std::vector<std::string> plot_names() {
    std::vector<std::string> names;
    for (const tuner::PlotWord& word : tuner::plot_words()) names.emplace_back(word.name);
    return names;
}

std::string plot_summaries() {
    std::string text = "Plots:\n";
    for (const tuner::PlotWord& word : tuner::plot_words())
        text += "  " + std::string(word.name) + std::string(14 - std::strlen(word.name), ' ') +
                word.summary + "\n";
    return text;
}

constexpr const char* kStudySummary = "name of the study (default: the only one there is)";

void add_plot(CLI::App& app, PlotCommand& plot, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand("plot", "plot a study");
    verb.footer(plot_summaries());
    verb.add_option("study", plot.study, kStudySummary);
    verb.add_option("kind", plot.kind, "the kind of plot (default: history)")
        ->check(CLI::IsMember(plot_names()));
    verb.add_option("-o,--output", plot.output,
                    "FILE.svg or FILE.png (default: the terminal, or SVG to a pipe)");
    verb.add_flag("--terminal", plot.terminal, "print text, also to a pipe");
    verb.add_option("--params", plot.params, "only these parameters")->delimiter(',');
    verb.add_option("-m,--metric", plot.metric, "the objective (default: the first)");
    verb.add_option("--theme", plot.theme,
                    "colours (default: SVG follows the viewer, PNG is light)")
        ->check(CLI::IsMember({"light", "dark"}));
    verb.add_option("--width", plot.width, "width in pixels")
        ->check(within(200, 8000))
        ->capture_default_str();
    verb.add_option("--height", plot.height, "height in pixels (default: as needed)")
        ->check(within(150, 20000));
    add_source(verb, plot);
    verb.callback([&] { chosen = [&plot] { return run_plot(plot); }; });
}

void add_importance(CLI::App& app, ImportanceCommand& importance, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand("importance", "show which parameters matter");
    verb.add_option("study", importance.study, kStudySummary);
    verb.add_option("--method", importance.method,
                    "ped-anova: what distinguishes the best trials; fanova: share of the variance")
        ->check(CLI::IsMember({"ped-anova", "fanova"}))
        ->capture_default_str();
    verb.add_option("-m,--metric", importance.metric, "the objective (default: the first)");
    verb.add_option("--seed", importance.seed, "seed of the forest of fanova")
        ->capture_default_str();
    add_source(verb, importance);
    verb.callback([&] { chosen = [&importance] { return run_importance(importance); }; });
}

void add_pruners(CLI::App& app, PrunersCommand& pruners, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand(
        "pruners", "show what each pruner would have saved and lost on a finished study");
    verb.add_option("study", pruners.study, kStudySummary);
    verb.add_option("--pruner", pruners.pruners,
                    "a pruner to replay, as for `run`: asha,min=1,eta=3; repeatable (default: the "
                    "common ones)")
        ->allow_extra_args(false)
        ->type_name(offering(tuner::pruner_kinds()));
    add_source(verb, pruners);
    verb.callback([&] { chosen = [&pruners] { return run_pruners(pruners); }; });
}

void add_top(CLI::App& app, TopCommand& top, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand("top", "show the running trials of all studies, live");
    verb.add_flag("--once", top.once, "print them once and exit");
    add_source(verb, top);
    verb.callback([&] { chosen = [&top] { return run_top(top); }; });
}

}  // namespace

void add_view_verbs(CLI::App& app, ViewArguments& arguments, std::function<int()>& verb) {
    add_plot(app, arguments.plot, verb);
    add_importance(app, arguments.importance, verb);
    add_pruners(app, arguments.pruners, verb);
    add_top(app, arguments.top, verb);
}

}  // namespace tune::cli
