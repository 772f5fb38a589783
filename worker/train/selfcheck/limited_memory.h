#pragma once
// Memory that runs out when a check wants it to. LibTorch inside.

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tune::train {

/// LibTorch's own allocator of the CPU, which refuses what is larger than `limit` in the words of a
/// machine that has no more.
class LimitedMemory final : public c10::Allocator {
public:
    std::atomic<std::size_t> limit = SIZE_MAX;
    std::atomic<int> refused = 0;

    /// Makes LibTorch use it from here on; one for a process, which it outlives.
    static LimitedMemory& install();

    c10::DataPtr allocate(std::size_t bytes) override;
    [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return own_->raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        own_->copy_data(to, from, bytes);
    }

private:
    LimitedMemory();

    c10::Allocator* const own_;
};

}  // namespace tune::train
