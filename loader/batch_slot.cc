#include "loader/batch_slot.h"

#include <algorithm>
#include <cstring>

namespace tune::loader {

void AlignedBuffer::resize(std::size_t size) {
    if (size > capacity_ || !data_) {
        const std::size_t capacity =
            std::max({size, size_ == 0 ? 0 : capacity_ + capacity_ / 2, kAlignment});
        const std::shared_ptr<BatchMemory>& memory = data_.get_deleter().memory;
        void* bytes = memory ? memory->allocate(capacity)
                             : ::operator new[](capacity, std::align_val_t{kAlignment});
        if (!bytes) throw std::bad_alloc();
        std::unique_ptr<std::byte[], Free> grown(static_cast<std::byte*>(bytes), Free{memory});
        if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
        data_ = std::move(grown);
        capacity_ = capacity;
    }
    size_ = size;
}

SlotPool::SlotPool(std::vector<ColumnInfo> columns, std::size_t slot_count, bool grows,
                   std::shared_ptr<BatchMemory> memory)
    : columns_(std::move(columns)), grows_(grows), memory_(std::move(memory)) {
    for (std::size_t i = 0; i < slot_count; ++i) {
        slots_.push_back(std::make_unique<BatchSlot>(columns_.size(), memory_));
        free_.push_back(slots_.back().get());
    }
}

BatchSlot* SlotPool::take() {
    if (free_.empty()) return nullptr;
    BatchSlot* slot = free_.back();  // the one used last: still in the processor's cache
    free_.pop_back();
    return slot;
}

bool SlotPool::add_slot() {
    if (!grows_) return false;
    slots_.push_back(std::make_unique<BatchSlot>(columns_.size(), memory_));
    free_.push_back(slots_.back().get());
    return true;
}

std::shared_ptr<BatchSlot> SlotPool::lend(BatchSlot* slot) {
    return {slot, [pool = shared_from_this()](BatchSlot* returned) {
                {
                    const std::lock_guard lock(pool->mutex);
                    pool->put_back(returned);
                }
                pool->work.notify_one();
            }};
}

}  // namespace tune::loader
