#include <utility>

#include "loader/batch_slot.h"
#include "loader/dataset.h"

namespace tune::loader {

std::span<const std::byte> Column::sample(std::size_t i) const {
    if (info->fixed) return {data + i * info->sample_bytes, info->sample_bytes};
    return {data + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
}

std::string_view Column::text(std::size_t i) const {
    const std::span<const std::byte> bytes = sample(i);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Batch::Batch(Batch&& other) noexcept {
    *this = std::move(other);
}

Batch& Batch::operator=(Batch&& other) noexcept {
    if (this == &other) return *this;
    slot_ = std::move(other.slot_);
    columns = std::move(other.columns);
    count = other.count;
    sample_ids = other.sample_ids;
    epoch = other.epoch;
    other.reset();
    return *this;
}

const Column* Batch::column(std::string_view name) const {
    for (const Column& column : columns)
        if (column.info->name == name) return &column;
    return nullptr;
}

void Batch::reset() {
    columns.clear();
    sample_ids = {};
    count = 0;
    slot_.reset();
}

}  // namespace tune::loader
