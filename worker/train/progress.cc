// Where a run stands, as JSON within its checkpoints.
//
// What a run does not use is not written, so that its checkpoints stay the bytes they were before
// the feature existed. Numbers that JSON cannot hold travel as json_number writes them. A state
// that does not fit is damage (kDataLoss), upon which the checkpoint before it is used.

#include "worker/train/progress.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace tune::train {
namespace {

/// The inverse of json_number (base/json.h).
Result<double> number(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (value == "Infinity") return std::numeric_limits<double>::infinity();
    if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
    return Error{Code::kDataLoss, "the checkpoint has " + to_text(value) + " for a number"};
}

Result<StopReason> reason_from(const std::string& name) {
    for (const StopReason reason :
         {StopReason::kNotStopped, StopReason::kStoppingThreshold, StopReason::kDivergenceThreshold,
          StopReason::kPatienceExhausted, StopReason::kNonFinite})
        if (name == stop_reason_name(reason)) return reason;
    return Error{Code::kDataLoss, "the checkpoint has an unknown stop_reason '" + name + "'"};
}

}  // namespace

void rank_epoch(std::vector<RankedEpoch>& epochs, RankedEpoch added, Mode mode, std::size_t count,
                std::int64_t best_epoch) {
    const auto is_better = [mode](const RankedEpoch& a, const RankedEpoch& b) {
        return mode == Mode::kMin ? a.value < b.value : a.value > b.value;
    };
    epochs.insert(std::upper_bound(epochs.begin(), epochs.end(), added, is_better), added);
    while (epochs.size() > std::max<std::size_t>(count, 1)) {
        const bool is_chosen = epochs.back().epoch == best_epoch;
        epochs.erase(epochs.end() - (is_chosen ? 2 : 1));
    }
}

Json Progress::to_json() const {
    Json metrics = Json::array();
    for (const NamedValue& metric : last_metrics)
        metrics.push_back({metric.name, json_number(metric.value)});
    Json stopping;
    if (early_stopping)
        stopping = {{"best_score", json_number(early_stopping->best_score)},
                    {"wait_count", early_stopping->wait_count}};
    if (early_stopping && !early_stopping->has_best) stopping["has_best"] = false;
    Json json = {
        {"epoch", epoch},
        {"epoch_trained", epoch_trained},
        {"step", step},
        {"loss_sum", json_number(loss_sum)},
        {"loss_samples", loss_samples},
        {"finite", finite},
        {"epoch_reported", epoch_reported},
        {"step_reported", step_reported},
        {"last_metrics", std::move(metrics)},
        {"best", best ? json_number(*best) : Json()},
        {"best_epoch", best_epoch},
        {"stop_reason", std::string(stop_reason_name(stop_reason))},
        {"early_stopping", std::move(stopping)},
        {"loader", loader.to_json()},
    };
    // What a run does not use is not written.
    if (parts > 0) json["parts"] = parts;
    if (batch_size > 0) json["batch_size"] = batch_size;
    for (const RankedEpoch& each : best_epochs)
        json["best_epochs"].push_back({each.epoch, json_number(each.value)});
    if (noise.count > 0)
        json["noise"] = {json_number(noise.gradient_square), json_number(noise.variance),
                         noise.count};
    return json;
}

Result<Progress> Progress::from_json(const Json& json) try {
    Progress progress;
    json.at("epoch").get_to(progress.epoch);
    json.at("epoch_trained").get_to(progress.epoch_trained);
    json.at("step").get_to(progress.step);
    TUNE_TRY(loss_sum, number(json.at("loss_sum")));
    progress.loss_sum = loss_sum;
    json.at("loss_samples").get_to(progress.loss_samples);
    json.at("finite").get_to(progress.finite);
    json.at("epoch_reported").get_to(progress.epoch_reported);
    json.at("step_reported").get_to(progress.step_reported);
    for (const Json& metric : json.at("last_metrics")) {
        TUNE_TRY(value, number(metric.at(1)));
        progress.last_metrics.push_back({metric.at(0).get<std::string>(), value});
    }
    if (!json.at("best").is_null()) {
        TUNE_TRY(best, number(json.at("best")));
        progress.best = best;
    }
    json.at("best_epoch").get_to(progress.best_epoch);
    TUNE_TRY(reason, reason_from(json.at("stop_reason").get<std::string>()));
    progress.stop_reason = reason;
    if (const Json& stopping = json.at("early_stopping"); !stopping.is_null()) {
        TUNE_TRY(best_score, number(stopping.at("best_score")));
        progress.early_stopping = {best_score, stopping.at("wait_count").get<std::int64_t>(),
                                   stopping.value("has_best", true)};
    }
    progress.parts = json.value("parts", std::int64_t{0});
    progress.batch_size = json.value("batch_size", std::int64_t{0});
    for (const Json& each : json.value("best_epochs", Json::array())) {
        TUNE_TRY(value, number(each.at(1)));
        progress.best_epochs.push_back({each.at(0).get<std::int64_t>(), value});
    }
    if (json.contains("noise")) {
        const Json& noise = json.at("noise");
        TUNE_TRY(square, number(noise.at(0)));
        TUNE_TRY(variance, number(noise.at(1)));
        progress.noise = {square, variance, noise.at(2).get<std::int64_t>()};
    }
    TUNE_TRY(state, loader::DatasetState::from_json(json.at("loader")));
    progress.loader = std::move(state);
    if (progress.epoch < 0 || progress.step < 0)
        return Error{Code::kDataLoss, "the checkpoint's epoch or step is below 0"};
    return progress;
} catch (const Json::exception& error) {
    return Error{Code::kDataLoss,
                 std::string("the checkpoint's state is damaged: ") + error.what()};
}

}  // namespace tune::train
