#include "tuner/sampler/tpe/kernel_classes.h"

#include <algorithm>

namespace tune::tuner {
namespace {

/// Changes that are remembered; beyond that all classes count as changed.
constexpr std::size_t kChangesMax = 4096;

}  // namespace

void KernelClasses::insert_row(std::size_t row) {
    of_.insert(of_.begin() + static_cast<std::ptrdiff_t>(row), kNone);
}

void KernelClasses::erase_row(std::size_t row) {
    release(of_[row]);
    of_.erase(of_.begin() + static_cast<std::ptrdiff_t>(row));
}

void KernelClasses::erase_front(std::size_t gone) {
    for (std::size_t row = 0; row < gone; ++row) release(of_[row]);
    of_.erase(of_.begin(), of_.begin() + static_cast<std::ptrdiff_t>(gone));
}

bool KernelClasses::is_alike(std::uint32_t row, double mu, double inverse) const {
    if (row == kNone || of_[row] == kNone) return false;
    return mu_[of_[row]] == mu && inverse_[of_[row]] == inverse;
}

void KernelClasses::set(std::size_t row, std::uint32_t left, std::uint32_t right, double mu,
                        double inverse) {
    const auto own = static_cast<std::uint32_t>(row);
    if (is_alike(own, mu, inverse)) return;
    release(of_[row]);
    std::uint32_t shared = kNone;
    if (is_alike(left, mu, inverse)) shared = of_[left];
    if (shared == kNone && is_alike(right, mu, inverse)) shared = of_[right];
    if (shared == kNone) shared = add(mu, inverse);
    ++users_[shared];
    of_[row] = shared;
}

void KernelClasses::rebuild(std::span<const std::uint32_t> order, const double* mu,
                            const double* inverse) {
    users_.clear();
    free_.clear();
    begin_epoch();
    std::uint32_t last = kNone;
    for (const std::uint32_t row : order) {
        if (last == kNone || mu_[last] != mu[row] || inverse_[last] != inverse[row])
            last = add(mu[row], inverse[row]);
        ++users_[last];
        of_[row] = last;
    }
}

void KernelClasses::release(std::uint32_t kernel_class) {
    if (kernel_class != kNone && --users_[kernel_class] == 0) free_.push_back(kernel_class);
}

/// A class without users yet.
std::uint32_t KernelClasses::add(double mu, double inverse) {
    auto added = static_cast<std::uint32_t>(users_.size());
    if (!free_.empty()) {
        added = free_.back();
        free_.pop_back();
    } else {
        users_.push_back(0);
        if (users_.size() > mu_.size()) {
            mu_.resize(mu_.size() + 8 * kLaneCount, 0);
            inverse_.resize(mu_.size(), 1);
        }
    }
    mu_[added] = mu;
    inverse_[added] = inverse;
    if (changed_.size() == kChangesMax) begin_epoch();
    changed_.push_back(added);
    return added;
}

void KernelClasses::begin_epoch() {
    ++epoch_;
    changed_.clear();
}

}  // namespace tune::tuner
