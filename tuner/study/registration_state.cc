#include "tuner/study/registration_state.h"

namespace tune::tuner {

bool RegistrationState::is_wanted() const {
    const Trial* best = front_.best();
    if (config_.register_as.empty() || status_.state != StudyState::kCompleted || best == nullptr)
        return false;
    return !last_ || last_->trial != best->number || last_->name != config_.register_as;
}

}  // namespace tune::tuner
