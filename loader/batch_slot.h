#pragma once
// The memory of batches. Internal to the loader; consumers see it through Batch.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "loader/dataset.h"

namespace tune::loader {

/// 64-byte aligned memory that grows; what it held is kept.
class AlignedBuffer {
public:
    static constexpr std::size_t kAlignment = BatchMemory::kAlignment;

    /// `memory`: nullptr for the process's own.
    explicit AlignedBuffer(std::shared_ptr<BatchMemory> memory = nullptr)
        : data_(nullptr, Free{std::move(memory)}) {}

    [[nodiscard]] std::byte* data() { return data_.get(); }
    [[nodiscard]] const std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }

    /// Makes room for `size` bytes and makes that the size. May throw std::bad_alloc.
    void resize(std::size_t size);

private:
    struct Free {
        std::shared_ptr<BatchMemory> memory;
        void operator()(std::byte* bytes) const {
            if (memory)
                memory->release(bytes);
            else
                ::operator delete[](bytes, std::align_val_t{kAlignment});
        }
    };
    std::unique_ptr<std::byte[], Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

/// One batch, column by column.
class BatchSlot {
public:
    struct ColumnBuffer {
        AlignedBuffer data = AlignedBuffer();
        std::vector<std::uint64_t> offsets = {};  // of variable columns
        std::vector<std::uint8_t> valid = {};     // of columns with a mask
    };

    explicit BatchSlot(std::size_t column_count, const std::shared_ptr<BatchMemory>& memory = {}) {
        for (std::size_t c = 0; c < column_count; ++c) columns.push_back({AlignedBuffer(memory)});
    }

    std::vector<ColumnBuffer> columns;
    std::vector<std::int64_t> ids;
    std::int64_t epoch = 0;
};

/// A number of slots. Batches refer to it by shared_ptr, so it lives as long as the last of
/// them. `mutex` also guards the state of the ThreadedReader that fills the slots, which waits on
/// `work` for a free slot.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
public:
    /// `grows`: a slot is added whenever the consumer holds all of them. `memory`: of the slots'
    /// columns; nullptr for the process's own.
    SlotPool(std::vector<ColumnInfo> columns, std::size_t slot_count, bool grows = false,
             std::shared_ptr<BatchMemory> memory = nullptr);

    [[nodiscard]] const std::vector<ColumnInfo>& columns() const { return columns_; }
    [[nodiscard]] std::size_t slot_count() const { return slots_.size(); }

    /// REQUIRES: `mutex` held. A free slot, or nullptr.
    [[nodiscard]] BatchSlot* take();
    /// REQUIRES: `mutex` held.
    void put_back(BatchSlot* slot) { free_.push_back(slot); }
    [[nodiscard]] bool has_free() const { return !free_.empty(); }
    /// REQUIRES: `mutex` held. Adds a slot if the pool grows; whether it did. May throw
    /// std::bad_alloc.
    [[nodiscard]] bool add_slot();

    /// The slot for the consumer; put back when the last reference goes.
    [[nodiscard]] std::shared_ptr<BatchSlot> lend(BatchSlot* slot);

    std::mutex mutex;
    std::condition_variable work;

private:
    const std::vector<ColumnInfo> columns_;
    const bool grows_;
    const std::shared_ptr<BatchMemory> memory_;
    std::vector<std::unique_ptr<BatchSlot>> slots_;
    std::vector<BatchSlot*> free_;  // guarded by mutex
};

}  // namespace tune::loader
