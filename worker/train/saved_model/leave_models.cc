// What a run leaves when it is over: the weights that --restore asks for, and the model that is
// logged. Neither makes a trained network a failure: what goes wrong is said.

#include <cstdio>

#include "worker/train/saved_model/export_model.h"
#include "worker/train/trainer_impl.h"

namespace tune::train {
namespace {

/// Weights of a model that is logged without being asked for: hundreds of trials of a study should
/// not fill a disk before anybody has thought of it.
constexpr std::int64_t kLoggedModelBytesMax = 10'000'000;

}  // namespace

/// What is left of a run that is over. Returns the file of the best epoch.
std::filesystem::path Trainer::leave_models() {
    if (!collective_.is_first()) return {};
    std::vector<std::string> notes;
    std::optional<KeptWeights> best;
    if (directory_) best = best_weights(*directory_, progress_, notes);
    if (directory_)
        if (const Result<void> left = leave_model(config_, *directory_, record_, *learner_, best);
            !left)
            notes.push_back(left.error().text());
    if (const Result<std::string> said = leave_mlflow_model(best); !said)
        notes.push_back("no model is logged: " + said.error().text());
    else if (!said->empty() && talks_)
        std::fprintf(stderr, "%s\n", said->c_str());
    if (talks_)
        for (const std::string& note : notes) std::fprintf(stderr, "warning: %s\n", note.c_str());
    return best && best->epoch == progress_.best_epoch ? best->path : std::filesystem::path();
}

/// Returns what is to be said about it.
Result<std::string> Trainer::leave_mlflow_model(const std::optional<KeptWeights>& best) {
    LogModel what = config_.log_model;
    if (config_.model_dir.empty() || what == LogModel::kNone) return std::string();
    if (what == LogModel::kAuto) {
        std::int64_t bytes = 0;
        for (const TensorBytes& each : learner_->weights())
            bytes += static_cast<std::int64_t>(each.data.size());
        if (bytes > kLoggedModelBytesMax)
            return "the model has " + std::to_string(bytes / 1'000'000) +
                   " MB and is not logged; --log-model=best or last would";
        what = LogModel::kBest;
    }
    ModelOrigin origin{.directory = config_.model_dir, .epoch = progress_.epoch};
    origin.columns = val_data_.dataset().columns();
    if (what == LogModel::kBest && best) {
        origin.epoch = best->epoch;
        TUNE_TRY_VOID(export_model(config_, record_.inputs, best->file, origin));
        return std::string();
    }
    TUNE_TRY(last, Safetensors::parse(best_checkpoint(record_, *learner_).bytes()));
    TUNE_TRY_VOID(export_model(config_, record_.inputs, last, origin));
    if (what == LogModel::kLast) return std::string();
    return std::string("the best epoch's weights are not there; the model is the last epoch's");
}

}  // namespace tune::train
