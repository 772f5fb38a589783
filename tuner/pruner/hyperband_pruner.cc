// Hyperband (Li et al., JMLR 18, 2018) in the asynchronous form and with the semantics of Optuna
// 5.0.0 (optuna/pruners/_hyperband.py).
//
// The idea. How early may one stop? Successive halving needs an answer: stop early and a slow
// starter is lost, stop late and most of the time goes to poor trials. Hyperband runs one bracket
// for each answer. Of B = floor(log_eta(max / min)) + 1 brackets, number b has its first rung at
// min * eta^b; the last one hardly stops anything. Trials are compared within their bracket only
// (asha_pruner.cc).
//
// The shares. Bracket b gets trials in proportion to ceil(B eta^s / (s + 1)) with s = B - 1 - b,
// the number that algorithm 1 of the paper starts there: a bracket that stops early has short
// trials and gets more of them, so that each may spend about the same.
//
// A trial's bracket is drawn from a checksum of the study's name and the trial's number, so that it
// needs no memory and survives a restart. With `max` "auto" the brackets are made at the first
// decision after a trial has completed; until then nothing is pruned, and reports wait to be
// entered in the rungs of their bracket.

#include "tuner/pruner/hyperband_pruner.h"

#include <cmath>

#include "tuner/options/fields.h"

namespace tune::tuner {
namespace {

/// CRC-32 of ISO 3309, as zlib and Python's binascii compute it.
std::uint32_t crc32(std::string_view text) {
    std::uint32_t crc = 0xffffffffu;
    for (const char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/// Rounded as Optuna rounds it: log(243, 3) is just below 5 there.
int bracket_count(const HyperbandOptions& options, std::int64_t max) {
    const double ratio = static_cast<double>(max) / static_cast<double>(options.min);
    const double depth = std::log(ratio) / std::log(static_cast<double>(options.eta));
    return std::max(0, static_cast<int>(std::floor(depth))) + 1;
}

/// Of the trials, in parts of the sum over all brackets.
double share_of_bracket(const HyperbandOptions& options, int bracket, int count) {
    const int s = count - 1 - bracket;
    return std::ceil(count * std::pow(static_cast<double>(options.eta), s) / (s + 1));
}

OptionTable hyperband_options() {
    TableOf<HyperbandOptions> table;
    table.integer("min", &HyperbandOptions::min, 1, kStepMax,
                  "step of the first rung in the first bracket");
    table
        .integer("max", &HyperbandOptions::max, 1, kStepMax,
                 "last step of a trial; auto: from the first complete trial")
        .or_word("auto");
    table.integer("eta", &HyperbandOptions::eta, 2, 1000,
                  "each rung keeps the best 1/eta of its trials");
    table.integer("bootstrap", &HyperbandOptions::bootstrap, 0, kCountMax,
                  "values a rung needs before it promotes");
    table.check([](const Fields& fields, HyperbandOptions& options) -> Result<void> {
        if (options.bootstrap > 0 && options.max == 0)
            return error_at(fields.node().place, fields.path(),
                            "'bootstrap' needs a fixed 'max', not auto");
        return check_rungs(fields, options.min, options.max);
    });
    return table;
}

std::unique_ptr<Pruner> make_hyperband(const PrunerConfig& config, const PrunerContext& context) {
    return std::make_unique<HyperbandPruner>(config.get<HyperbandOptions>(), context.goal,
                                             context.study);
}

AshaOptions halving_of(const HyperbandOptions& options, int bracket) {
    return {.min = options.min,
            .max = 0,
            .eta = options.eta,
            .rate = bracket,
            .bootstrap = options.bootstrap};
}

/// Of all brackets, which share the trials as make_brackets() does.
std::vector<Rung> hyperband_rungs(const PrunerConfig& config, double trials) {
    std::vector<Rung> rungs;
    const auto& options = config.get<HyperbandOptions>();
    if (options.max == 0) return rungs;
    const int count = bracket_count(options, options.max);
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += share_of_bracket(options, i, count);
    for (int i = 0; i < count; ++i) {
        AshaOptions halving = halving_of(options, i);
        halving.max = options.max;
        add_rungs(rungs, halving, static_cast<double>(options.min) * std::pow(options.eta, i),
                  trials * share_of_bracket(options, i, count) / sum, i);
    }
    return rungs;
}

}  // namespace

const PrunerKind& hyperband_pruner() {
    static const OptionTable kOptions = hyperband_options();
    static const PrunerKind kKind{
        {"hyperband", "as asha, in brackets that start at different rungs", kOptions},
        make_hyperband,
        hyperband_rungs,
        {"hyperband,eta=3"}};
    return kKind;
}

HyperbandPruner::HyperbandPruner(const HyperbandOptions& options, Goal goal, std::string_view study)
    : options_(options), goal_(goal), study_(study) {}

void HyperbandPruner::make_brackets() {
    const std::int64_t max = options_.max != 0 ? options_.max : longest_complete_ + 1;
    const int count = bracket_count(options_, max);
    for (int i = 0; i < count; ++i) {
        const auto share = static_cast<std::uint64_t>(share_of_bracket(options_, i, count));
        brackets_.push_back({AshaPruner(halving_of(options_, i), goal_), share});
        share_sum_ += share;
    }
    for (const auto& [number, reports] : waiting_)
        for (const Reports::Report& report : reports.all())
            bracket_of(number).note(number, report.step, report.value);
    waiting_.clear();
}

/// REQUIRES: the brackets are made.
AshaPruner& HyperbandPruner::bracket_of(std::uint64_t number) {
    std::uint64_t at = crc32(study_ + "_" + std::to_string(number)) % share_sum_;
    for (Bracket& bracket : brackets_) {
        if (at < bracket.share) return bracket.pruner;
        at -= bracket.share;
    }
    return brackets_.back().pruner;
}

void HyperbandPruner::note(std::uint64_t number, std::int64_t step, double value) {
    if (brackets_.empty()) {
        waiting_[number].add(step, value);
    } else {
        bracket_of(number).note(number, step, value);
    }
}

bool HyperbandPruner::should_prune(std::uint64_t number) {
    if (brackets_.empty()) {
        if (options_.max == 0 && longest_complete_ < 0) return false;
        make_brackets();
    }
    return bracket_of(number).should_prune(number);
}

void HyperbandPruner::finish(std::uint64_t number, End end, double value) {
    if (!brackets_.empty()) return bracket_of(number).finish(number, end, value);
    const auto at = waiting_.find(number);
    if (at == waiting_.end()) return;
    if (end == End::kComplete)
        longest_complete_ = std::max(longest_complete_, at->second.last().step);
    waiting_.erase(at);
}

}  // namespace tune::tuner
