#pragma once
// What became of StudyConfig::register_as: the best trial's model, registered once the study is
// completed. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tuner/config/study_config.h"
#include "tuner/study/study_state.h"
#include "tuner/study/trial/front.h"

namespace tune::tuner {

struct Registration {
    std::string name = {};     ///< of the registered model
    std::uint64_t trial = 0;   ///< whose model it is
    std::int64_t version = 0;  ///< 0: there is none
    std::string model_id = {};
    std::string error = {};  ///< why there is none
};

/// Not thread-safe: part of a Study. What it refers to outlives it.
class RegistrationState {
public:
    RegistrationState(const StudyConfig& config, const StudyStatus& status, const Front& front)
        : config_(config), status_(status), front_(front) {}

    /// The last one, whether or not it is of today's best trial; nothing: there was none.
    [[nodiscard]] const std::optional<Registration>& last() const { return last_; }
    /// True from the study's completion on until the model of its best trial is registered, or was
    /// found to be impossible to register.
    [[nodiscard]] bool is_wanted() const;

    void set(Registration registration) { last_ = std::move(registration); }
    /// What was impossible is tried again.
    void forget_failed() {
        if (last_ && !last_->error.empty()) last_.reset();
    }

private:
    const StudyConfig& config_;
    const StudyStatus& status_;
    const Front& front_;
    std::optional<Registration> last_;
};

}  // namespace tune::tuner
