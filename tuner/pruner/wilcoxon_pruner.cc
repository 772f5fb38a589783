// The Wilcoxon signed-rank test (Wilcoxon 1945) against the best trial, for objectives that are a
// mean over steps (folds, instances), with the semantics of Optuna 5.0.0
// (optuna/pruners/_wilcoxon.py) and the p-values of scipy.stats.wilcoxon(alternative="greater",
// zero_method="zsplit").
//
// The idea. Step i of this trial and step i of the best one measured the same fold, so what makes a
// fold easy or hard cancels in the difference. If the differences are positive beyond what chance
// explains, the trial is worse, however few folds it has seen. The test looks at the ranks of the
// differences, not at their sizes: it asks for no normal distribution, and one outlier decides
// nothing.
//
// The guards. Steps that only one of the two has do not count; fewer shared steps than
// `startup_steps` (two at least) decide nothing, nor does a report that is not finite. A trial
// whose mean is no worse than the best one's is never pruned. `p` is the level of one test; a trial
// is tested at each report, so the chance that an equally good one is pruned at some time is
// larger.
//
// Exact where scipy is: without ties up to 50 differences, with ties (or zeros) up to 13; beyond
// that the normal approximation (signed_rank.cc). A decision costs O(n^3) of at most 50 exact
// differences, else O(n log n).

#include "tuner/pruner/wilcoxon_pruner.h"

#include "tuner/pruner/wilcoxon/signed_rank.h"

namespace tune::tuner {
namespace {

double mean_of(std::span<const Reports::Report> reports) {
    double sum = 0;
    for (const Reports::Report& report : reports) sum += report.value;
    return sum / static_cast<double>(reports.size());
}

bool are_finite(std::span<const Reports::Report> reports) {
    return std::all_of(reports.begin(), reports.end(),
                       [](const Reports::Report& report) { return std::isfinite(report.value); });
}

/// Differences at the steps that both have.
std::vector<double> differences(std::span<const Reports::Report> of,
                                std::span<const Reports::Report> from) {
    std::vector<double> found;
    auto other = from.begin();
    for (const Reports::Report& report : of) {
        while (other != from.end() && other->step < report.step) ++other;
        if (other == from.end()) break;
        if (other->step == report.step) found.push_back(report.value - other->value);
    }
    return found;
}

OptionTable wilcoxon_options() {
    TableOf<WilcoxonOptions> table;
    table.number("p", &WilcoxonOptions::p, 0, 1,
                 "pruned when it is less probable than this that it is no worse");
    table.integer("startup_steps", &WilcoxonOptions::startup_steps, 0, kCountMax,
                  "steps shared with the best trial before anything is pruned");
    return table;
}

std::unique_ptr<Pruner> make_wilcoxon(const PrunerConfig& config, const PrunerContext& context) {
    return std::make_unique<WilcoxonPruner>(config.get<WilcoxonOptions>(), context.goal);
}

}  // namespace

const PrunerKind& wilcoxon_pruner() {
    static const OptionTable kOptions = wilcoxon_options();
    static const PrunerKind kKind{
        {"wilcoxon", "its steps (folds) are worse than the best trial's beyond chance", kOptions},
        make_wilcoxon,
        nullptr,
        {"wilcoxon"}};
    return kKind;
}

void WilcoxonPruner::note(std::uint64_t number, std::int64_t step, double value) {
    reports_[number].add(step, sign_ * value);
}

bool WilcoxonPruner::should_prune(std::uint64_t number) {
    const auto at = reports_.find(number);
    if (at == reports_.end() || !has_best_ || best_reports_.empty()) return false;
    const std::span<const Reports::Report> own = at->second.all();
    const std::span<const Reports::Report> best = best_reports_.all();
    if (!are_finite(own) || !are_finite(best)) return false;
    const std::vector<double> worse_by = differences(own, best);
    if (worse_by.size() < static_cast<std::size_t>(std::max(2, options_.startup_steps)))
        return false;
    if (mean_of(best) >= mean_of(own)) return false;
    return signed_rank_p(worse_by) < options_.p;
}

void WilcoxonPruner::finish(std::uint64_t number, End end, double value) {
    const auto at = reports_.find(number);
    const double signed_value = sign_ * value;
    const bool is_best = end == End::kComplete && !std::isnan(value) &&
                         (!has_best_ || signed_value < best_value_ ||
                          (signed_value == best_value_ && number < best_number_));
    if (is_best) {
        has_best_ = true;
        best_number_ = number;
        best_value_ = signed_value;
        best_reports_ = at == reports_.end() ? Reports{} : at->second;
    }
    if (at != reports_.end()) reports_.erase(at);
}

}  // namespace tune::tuner
