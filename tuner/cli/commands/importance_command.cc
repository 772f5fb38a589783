// `tune importance`: which parameters matter, by PED-ANOVA (as the web page and the REST route) or
// fANOVA.
//
// Both are computed by this process from the trials that the server lists, so fANOVA, which takes
// seconds, holds up no server.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text/counted.h"
#include "tuner/cli/commands/study_view_commands.h"
#include "tuner/cli/options.h"
#include "tuner/cli/study_reading.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/wait_line.h"
#include "tuner/importance/fanova.h"
#include "tuner/importance/ped_anova.h"
#include "tuner/plots/plots.h"

namespace tune::cli {
namespace {

struct Row {
    std::string name;
    double value = 0;   // as the method gives it
    double share = 0;   // of the sum of all
    double spread = 0;  // fanova: over the trees
};

Result<std::size_t> metric_index(const tuner::StudyData& study, const std::string& name) {
    for (std::size_t i = 0; i < study.metrics.size(); ++i)
        if (name.empty() || study.metrics[i].name == name) return i;
    return Error{Code::kInvalidParameterValue,
                 "study '" + study.name + "' has no objective '" + name + "'"};
}

std::vector<Row> ped_anova_rows(const tuner::StudyData& study, std::size_t metric) {
    std::vector<Row> rows;
    const std::vector<double> values = tuner::ped_anova_of(study, metric);
    for (std::size_t i = 0; i < study.space.size(); ++i)
        rows.push_back({.name = study.space[i].name, .value = values[i]});
    return rows;
}

std::vector<Row> fanova_rows(const tuner::StudyData& study, std::size_t metric,
                             std::uint64_t seed) {
    std::vector<tuner::Point> points;
    std::vector<double> values;
    for (const tuner::PlotTrial* trial : study.complete(metric)) {
        points.push_back(trial->point);
        values.push_back(trial->values[metric]);
    }
    const auto found = tuner::fanova(study.space, points, values, {.seed = seed});
    std::vector<Row> rows;
    for (std::size_t i = 0; i < study.space.size(); ++i)
        rows.push_back(
            {.name = study.space[i].name, .value = found[i].share, .spread = found[i].spread});
    return rows;
}

std::string percent(double share) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

std::string rows_text(const std::vector<Row>& rows, bool is_fanova) {
    constexpr std::size_t kBarCells = 30;
    Table table;
    table.column("parameter");
    table.column("share", Table::Align::kRight);
    if (is_fanova) table.column("of the variance", Table::Align::kRight);
    table.column("");
    for (const Row& row : rows) {
        std::vector<std::string> cells = {printable(row.name), percent(row.share)};
        if (is_fanova) cells.push_back(percent(row.value) + " ± " + percent(row.spread));
        const auto filled =
            static_cast<std::size_t>(std::lround(row.share * static_cast<double>(kBarCells)));
        std::string bar;
        for (std::size_t i = 0; i < filled; ++i) bar += "█";
        cells.push_back(styled(bar, Tone::kGood));
        table.row(std::move(cells));
    }
    return table.text();
}

Result<int> importance(const ImportanceCommand& options) {
    const bool is_fanova = options.method == "fanova";
    std::optional<WaitLine> line(std::in_place, "measuring importance");
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(name, named_or_only_study(*backend, options.study));
    TUNE_TRY(study, read_study_data(*backend, name));
    TUNE_TRY(metric, metric_index(study, options.metric));
    std::vector<Row> rows =
        is_fanova ? fanova_rows(study, metric, options.seed) : ped_anova_rows(study, metric);
    line.reset();
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(row.value);
    const std::vector<double> shares = tuner::shares_of(std::move(values));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].share = shares[i];
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.value > b.value; });
    const std::size_t count = study.complete(metric).size();
    if (options.json) {
        Json list = Json::array();
        for (const Row& row : rows) {
            list.push_back({{"name", row.name}, {"share", row.share}, {"value", row.value}});
            if (is_fanova) list.back()["spread"] = row.spread;
        }
        print_json({{"study", study.name},
                    {"metric", study.metrics[metric].name},
                    {"method", options.method},
                    {"trials", count},
                    {"importances", std::move(list)}});
    } else if (count > 0) {
        print(rows_text(rows, is_fanova) + "from " +
              counted(static_cast<std::int64_t>(count), "complete trial") + "; " +
              (is_fanova ? "the rest of the variance is interaction\n"
                         : "what distinguishes the best tenth from the rest\n"));
    } else {
        print("no trial of " + printable(study.name) + " is complete\n");
    }
    return count > 0 ? kExitOk : kExitNoTrial;
}

}  // namespace

int run_importance(const ImportanceCommand& options) {
    const Result<int> code = importance(options);
    return code ? *code : fail(code.error(), options.json);
}

}  // namespace tune::cli
