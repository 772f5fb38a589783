#include "base/system/late_wakes.h"

#include <algorithm>
#include <utility>

namespace tune {
namespace {

thread_local LateWakes* innermost = nullptr;

}  // namespace

LateWakes::LateWakes() : outer_(std::exchange(innermost, this)) {}

LateWakes::~LateWakes() {
    innermost = outer_;
    for (std::shared_ptr<Sleeper>& sleeper : sleepers_) wake(std::move(sleeper));
}

void LateWakes::wake(std::shared_ptr<Sleeper> sleeper) {
    if (innermost == nullptr) return sleeper->wake();
    auto& waiting = innermost->sleepers_;
    if (std::find(waiting.begin(), waiting.end(), sleeper) == waiting.end())
        waiting.push_back(std::move(sleeper));
}

}  // namespace tune
