#pragma once
// Whether the bytes of a batch are within reach, for data that lies on another machine. Internal to
// the loader.

#include <cstdint>
#include <functional>
#include <memory>

#include "loader/dataset.h"
#include "loader/epoch_plan.h"

namespace tune::loader {

/// Batches are numbered through all plans that are followed: a plan's first one has the number that
/// follow() returns. Thread-safe. Nothing but wait() waits.
class BatchSupply {
public:
    virtual ~BatchSupply() = default;

    /// Called, on any thread and without a lock of the supply's, when a batch may have become
    /// ready.
    virtual void set_listener(std::function<void()> listener) = 0;

    /// `plan` comes after those that were followed before.
    [[nodiscard]] virtual std::uint64_t follow(std::shared_ptr<const EpochPlan> plan) = 0;
    /// Something else will be read: forgets the plans, and what failed.
    virtual void forget() = 0;

    /// The batch will be read next, or soon. In ascending order.
    virtual void expect(std::uint64_t batch) = 0;
    /// Whether it can be read without waiting, or cannot be had (reading it then says why). Once
    /// true it stays so until end().
    [[nodiscard]] virtual bool is_ready(std::uint64_t batch) = 0;
    virtual void wait(std::uint64_t batch) = 0;
    /// Nothing of the batch is read any more. REQUIRES: expect() before.
    virtual void end(std::uint64_t batch) = 0;

    [[nodiscard]] virtual FetchStats stats() const = 0;
};

}  // namespace tune::loader
