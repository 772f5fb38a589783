#pragma once
// How many bytes all connections together may hold of one kind: bodies that were received, answers
// that were not read. What is over the budget is refused, so that no number of clients makes the
// server grow without end.

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace tune::tracker {

/// Thread-safe.
class MemoryBudget {
public:
    explicit MemoryBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

    /// A lone holder may have more than there is: one large answer must be possible.
    [[nodiscard]] bool take(std::size_t bytes) {
        const std::size_t before = used_.fetch_add(bytes);
        if (before == 0 || before + bytes <= bytes_max_) return true;
        used_.fetch_sub(bytes);
        return false;
    }
    void give_back(std::size_t bytes) { used_.fetch_sub(bytes); }

private:
    const std::size_t bytes_max_;
    std::atomic<std::size_t> used_{0};
};

/// What one request or answer holds of a budget; given back when it goes. Not thread-safe.
class MemoryShare {
public:
    explicit MemoryShare(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
    MemoryShare(const MemoryShare&) = delete;
    MemoryShare& operator=(const MemoryShare&) = delete;
    ~MemoryShare() { release(); }

    /// Holds `bytes` in all; false, with what it held before: the budget has no more.
    [[nodiscard]] bool grow_to(std::size_t bytes) {
        if (bytes <= bytes_) return true;
        if (!budget_->take(bytes - bytes_)) return false;
        bytes_ = bytes;
        return true;
    }
    void release() {
        if (bytes_ > 0) budget_->give_back(std::exchange(bytes_, 0));
    }

private:
    const std::shared_ptr<MemoryBudget> budget_;
    std::size_t bytes_ = 0;
};

}  // namespace tune::tracker
