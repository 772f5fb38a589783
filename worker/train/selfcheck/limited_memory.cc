#include "worker/train/selfcheck/limited_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace tune::train {

LimitedMemory::LimitedMemory() : own_(c10::GetDefaultCPUAllocator()) {}

LimitedMemory& LimitedMemory::install() {
    static auto* const memory = new LimitedMemory;  // tensors outlive every other owner
    c10::SetCPUAllocator(memory, /*priority=*/100);
    return *memory;
}

c10::DataPtr LimitedMemory::allocate(std::size_t bytes) {
    if (bytes > limit.load()) {
        refused.fetch_add(1);
        TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ",
                    bytes, " bytes.");
    }
    return own_->allocate(bytes);
}

}  // namespace tune::train
