#include "tuner/study/retired.h"

#include <algorithm>
#include <utility>

namespace tune::tuner {

void Retired::add(std::unique_ptr<Study> study) {
    all_.push_back({std::move(study), generation_});
}

bool Retired::contains(const Study& study) const {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const One& one) { return one.study.get() == &study; });
}

void Retired::touch(const Study& study) {
    for (One& one : all_)
        if (one.study.get() == &study) one.last = generation_;
}

void Retired::each(const std::function<void(const Study&)>& look) const {
    for (const One& one : all_) look(*one.study);
}

std::vector<std::unique_ptr<Study>> Retired::take_free(
    const std::function<bool(const Study&)>& is_named) {
    std::vector<std::unique_ptr<Study>> free;
    std::erase_if(all_, [&](One& one) {
        if (!one.last.expired() || is_named(*one.study)) return false;
        free.push_back(std::move(one.study));
        return true;
    });
    if (all_.empty()) return free;
    // What comes from now on is of another generation, so that this one can end.
    auto next = std::make_shared<Generation>();
    generation_->next = next;
    generation_ = std::move(next);
    return free;
}

}  // namespace tune::tuner
