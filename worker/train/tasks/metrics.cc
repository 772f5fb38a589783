#include "worker/train/tasks/metrics.h"

#include <array>
#include <cmath>

namespace tune::train {
namespace {

double of_count(double sum, const Evaluation& sums) {
    return sum / static_cast<double>(sums.count);
}

constexpr std::array<Metric, 5> kMetrics = {{
    {"accuracy", true, false, true,
     [](const Evaluation& s) { return of_count(static_cast<double>(s.correct), s); }},
    {"top5", true, false, true,
     [](const Evaluation& s) { return of_count(static_cast<double>(s.correct5), s); }},
    {"perplexity", true, false, true,
     [](const Evaluation& s) { return std::exp(of_count(s.loss, s)); }},
    {"mae", false, true, false, [](const Evaluation& s) { return of_count(s.absolute_error, s); }},
    {"rmse", false, true, false,
     [](const Evaluation& s) { return std::sqrt(of_count(s.squared_error, s)); }},
}};

bool is_of(const Metric& metric, const TrainConfig& config, const Inputs& inputs) {
    if (inputs.is_language()) return metric.language;
    if (config.loss == LossKind::kBce) return std::string_view(metric.name) == "accuracy";
    return inputs.is_classification() ? metric.classes : metric.values;
}

const char* usual(const TrainConfig& config, const Inputs& inputs) {
    if (inputs.is_language()) return "perplexity";
    return inputs.is_classification() || config.loss == LossKind::kBce ? "accuracy" : "mae";
}

}  // namespace

std::array<double, Evaluation::kSums> Evaluation::numbers() const {
    return {
        loss,          static_cast<double>(correct), static_cast<double>(correct5), absolute_error,
        squared_error, static_cast<double>(count)};
}

Evaluation Evaluation::from_numbers(const std::array<double, kSums>& numbers) {
    return {.loss = numbers[0],
            .correct = static_cast<std::int64_t>(numbers[1]),
            .correct5 = static_cast<std::int64_t>(numbers[2]),
            .absolute_error = numbers[3],
            .squared_error = numbers[4],
            .count = static_cast<std::int64_t>(numbers[5])};
}

std::span<const Metric> metrics() {
    return kMetrics;
}

Result<std::vector<const Metric*>> chosen_metrics(const TrainConfig& config, const Inputs& inputs) {
    std::vector<std::string> names = split_list(config.metrics);
    if (names.empty()) names.emplace_back(usual(config, inputs));
    std::vector<const Metric*> chosen;
    for (const std::string& name : names) {
        std::string known;
        const Metric* found = nullptr;
        for (const Metric& metric : kMetrics) {
            if (!is_of(metric, config, inputs)) continue;
            known += (known.empty() ? "" : ", ") + std::string(metric.name);
            if (metric.name == name) found = &metric;
        }
        if (found == nullptr)
            return Error{Code::kInvalidParameterValue,
                         "metrics: there is no '" + name + "' for this task; it has " + known};
        chosen.push_back(found);
    }
    return chosen;
}

}  // namespace tune::train
