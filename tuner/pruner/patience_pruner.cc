// Keeps a trial as long as it improves: only when the best of its last `wait` + 1 reports is not
// within `min_delta` of the best before them does the inner pruner decide. Semantics of
// Optuna 5.0.0 (optuna/pruners/_patient.py), NaN left out on both sides.
//
// A verdict reads the trial's own reports: O(reports).

#include "tuner/pruner/patience_pruner.h"

#include "tuner/options/fields.h"
#include "tuner/pruner/combined_pruner.h"

namespace tune::tuner {
namespace {

/// The least number, or NaN.
double best_of(std::span<const Reports::Report> reports) {
    double best = std::numeric_limits<double>::quiet_NaN();
    for (const Reports::Report& report : reports) best = std::fmin(best, report.value);
    return best;
}

/// One pruner, or a list of one.
Result<void> read_inner(const Fields& fields, PatienceOptions& options) {
    const Node* of = fields.find("of");
    if (of == nullptr) return {};
    if (of->type == Node::Type::kList) {
        TUNE_TRY(parts, read_parts(fields, 1, "expected one pruner"));
        options.of = std::move(parts);
        return {};
    }
    TUNE_TRY_VOID(check_depth(fields));
    TUNE_TRY(inner, read_pruner(*of, fields.path_of("of"), fields.depth() + 1));
    options.of = {std::move(inner)};
    return {};
}

OptionTable patience_options() {
    using Options = PatienceOptions;
    TableOf<Options> table;
    table.integer("wait", &Options::wait, 0, kCountMax, "reports without improvement")
        .must_be_given("the number of reports without improvement to put up with");
    table.number("min_delta", &Options::min_delta, 0, 1e300, "an improvement is more than this");
    table.custom(
        "of",
        {.type = "pruner",
         .schema = R"({"anyOf": [{"$ref": "#/definitions/pruner"},
                      {"type": "array", "items": {"$ref": "#/definitions/pruner"},
                       "minItems": 1, "maxItems": 1}]})",
         .api = "list of StudyPruner",
         .read = read_inner,
         .write = [](const Options& options, Json& json) { write_parts(options.of, json); }},
        "decides once patience has run out; without one the trial is pruned");
    return table;
}

std::unique_ptr<Pruner> make_patience(const PrunerConfig& config, const PrunerContext& context) {
    const auto& options = config.get<PatienceOptions>();
    auto parts = make_parts(options.of, context);
    return std::make_unique<PatiencePruner>(options, context.goal,
                                            parts.empty() ? nullptr : std::move(parts.front()));
}

}  // namespace

const PrunerKind& patience_pruner() {
    static const OptionTable kOptions = patience_options();
    static const PrunerKind kKind{
        {"patience",
         "it has not improved for `wait` reports, and the pruner in `of`, if any, says so",
         kOptions},
        make_patience};
    return kKind;
}

void PatiencePruner::note(std::uint64_t number, std::int64_t step, double value) {
    reports_[number].add(step, sign_ * value);
    if (inner_) inner_->note(number, step, value);
}

bool PatiencePruner::should_prune(std::uint64_t number) {
    const auto at = reports_.find(number);
    const std::size_t recent = static_cast<std::size_t>(wait_) + 1;
    if (at == reports_.end() || at->second.all().size() <= recent) return false;
    const std::span<const Reports::Report> all = at->second.all();
    const double before = best_of(all.first(all.size() - recent));
    // False where either is NaN.
    if (!(before + min_delta_ < best_of(all.last(recent)))) return false;
    return inner_ ? inner_->should_prune(number) : true;
}

void PatiencePruner::finish(std::uint64_t number, End end, double value) {
    reports_.erase(number);
    if (inner_) inner_->finish(number, end, value);
}

}  // namespace tune::tuner
