// `tune plot`: a study as a picture, in a file (SVG, PNG, JSON by its name) or in the terminal.
//
// The kind may stand alone: `tune plot parallel` is the plot of the only study, unless a study has
// that name.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tuner/chart/png.h"
#include "tuner/chart/scene.h"
#include "tuner/chart/svg.h"
#include "tuner/chart/terminal.h"
#include "tuner/cli/commands/study_view_commands.h"
#include "tuner/cli/options.h"
#include "tuner/cli/study_reading.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/wait_line.h"
#include "tuner/plots/plots.h"

namespace tune::cli {
namespace {

enum class Form { kSvg, kPng, kTerminal, kJson };

Result<tuner::PlotKind> kind_of(const std::string& word) {
    std::string known;
    for (const tuner::PlotWord& one : tuner::plot_words()) {
        if (word == one.name) return one.kind;
        known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    return Error{Code::kInvalidParameterValue,
                 "there is no plot '" + printable(word) + "'; there are " + known};
}

Result<Form> form_of(const PlotCommand& options) {
    if (options.json) return Form::kJson;
    if (options.terminal) return Form::kTerminal;
    if (options.output.empty()) return is_terminal(STDOUT_FILENO) ? Form::kTerminal : Form::kSvg;
    if (options.output == "-" || options.output.ends_with(".svg")) return Form::kSvg;
    if (options.output.ends_with(".png")) return Form::kPng;
    return Error{Code::kInvalidParameterValue,
                 "'" + options.output + "' is neither FILE.svg nor FILE.png"};
}

std::string terminal_text(const chart::Figure& figure) {
    const bool is_live = is_terminal(STDOUT_FILENO);
    return chart::to_terminal(figure, {.columns = std::min<std::size_t>(terminal_columns(), 160),
                                       .rows = figure.panels.size() > 2 ? 10U : 18U,
                                       .colours = is_live && std::getenv("NO_COLOR") == nullptr});
}

/// The bytes of the file.
Result<std::string> picture(const chart::Figure& figure, Form form, const PlotCommand& options) {
    const chart::Scene scene =
        chart::layout(figure, {.width = options.width, .height = options.height});
    const chart::Theme theme = options.theme == "dark" ? chart::Theme::kDark : chart::Theme::kLight;
    if (form == Form::kPng) return chart::to_png(scene, theme);
    return options.theme.empty() ? chart::to_svg(scene) : chart::to_svg(scene, theme);
}

struct Wanted {
    std::string study;  ///< empty: the only one there is
    tuner::PlotKind kind;
};

/// `tune plot parallel` means the plot of the only study, unless a study has that name.
Result<Wanted> wanted(Backend& backend, const PlotCommand& options) {
    TUNE_TRY(kind, kind_of(options.kind.empty() ? "history" : options.kind));
    if (const auto word = kind_of(options.study); word && options.kind.empty()) {
        const auto study = backend.get(study_path(options.study));
        if (!study && study.error().code == Code::kResourceDoesNotExist) return Wanted{"", *word};
    }
    return Wanted{options.study, kind};
}

struct Drawn {
    tuner::PlotKind kind;
    tuner::StudyData study;
    chart::Figure figure;
};

Result<Drawn> drawn(const PlotCommand& options) {
    const WaitLine line("drawing");
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(want, wanted(*backend, options));
    TUNE_TRY(name, named_or_only_study(*backend, want.study));
    TUNE_TRY(study, read_study_data(*backend, name, want.kind == tuner::PlotKind::kIntermediate));
    TUNE_TRY(figure, tuner::make_plot(want.kind, study,
                                      {.params = options.params, .metric = options.metric}));
    return Drawn{want.kind, std::move(study), std::move(figure)};
}

Result<int> plot(const PlotCommand& options) {
    TUNE_TRY(form, form_of(options));
    TUNE_TRY(made, drawn(options));
    const auto& [kind, study, figure] = made;
    if (form == Form::kJson) {
        print_json(chart::to_json(figure));
    } else if (form == Form::kTerminal) {
        print(terminal_text(figure));
    } else {
        TUNE_TRY(bytes, picture(figure, form, options));
        if (options.output.empty() || options.output == "-")
            print(bytes);
        else
            TUNE_TRY_VOID(write_whole_file(options.output, bytes));
    }
    const bool is_empty = tuner::needs_complete(kind) &&
                          std::none_of(study.trials.begin(), study.trials.end(),
                                       [](const auto& trial) { return trial.is_complete(); });
    // Of a picture in a file nothing is seen yet.
    if (is_empty && (form == Form::kSvg || form == Form::kPng))
        std::fprintf(stderr, "tune: no trial of %s has completed; the plot is empty\n",
                     printable(study.name).c_str());
    return is_empty ? kExitNoTrial : kExitOk;
}

}  // namespace

int run_plot(const PlotCommand& options) {
    const Result<int> code = plot(options);
    return code ? *code : fail(code.error(), options.json);
}

}  // namespace tune::cli
