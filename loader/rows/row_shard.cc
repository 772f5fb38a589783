// Rows of a batch that follow each other in the shard too are copied in one go, which makes an
// unshuffled read a few large copies.

#include "loader/rows/row_shard.h"

#include <cstring>

namespace tune::loader {
namespace {

struct Payload {
    const std::byte* data;
    std::size_t size;
};

Payload payload_of(const ColumnBlock& column, std::size_t row) {
    if (column.offsets32) {
        const auto begin = static_cast<std::size_t>(column.offsets32[row]);
        const auto end = static_cast<std::size_t>(column.offsets32[row + 1]);
        return {column.data + begin * column.unit, (end - begin) * column.unit};
    }
    if (column.offsets64) {
        const auto begin = static_cast<std::size_t>(column.offsets64[row]);
        const auto end = static_cast<std::size_t>(column.offsets64[row + 1]);
        return {column.data + begin * column.unit, (end - begin) * column.unit};
    }
    return {column.data, column.value_bytes};
}

/// The usual widths as constants, so that the copy of one value is one instruction.
template <std::size_t kBytes>
void copy_values(const std::byte* from, std::size_t stride, std::span<const std::size_t> stored,
                 std::span<const RowCopy> rows, std::byte* to) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::memcpy(to + rows[i].to * kBytes, from + stored[i] * stride, kBytes);
}

}  // namespace

ColumnarShard::ColumnarShard(std::vector<ColumnBlock> columns,
                             std::shared_ptr<const std::vector<std::uint32_t>> selection)
    : columns_(std::move(columns)), selection_(std::move(selection)) {
    for (const ColumnBlock& column : columns_) bytes_ += column.bytes;
}

void ColumnarShard::payload_sizes(std::size_t column, std::span<const RowCopy> rows,
                                  std::span<std::uint64_t> sizes) const {
    const ColumnBlock& block = columns_[column];
    for (const RowCopy& row : rows) sizes[row.to] = payload_of(block, stored_row(row.row)).size;
}

void ColumnarShard::copy_fixed(const ColumnBlock& column, std::span<const RowCopy> rows,
                               std::byte* target) const {
    const std::size_t bytes = column.value_bytes;
    thread_local std::vector<std::size_t> stored;
    stored.resize(rows.size());
    bool is_run = column.stride == bytes;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        stored[i] = stored_row(rows[i].row);
        is_run = is_run && stored[i] == stored[0] + i && rows[i].to == rows[0].to + i;
    }
    if (is_run) {
        std::memcpy(target + rows[0].to * bytes, column.data + stored[0] * bytes,
                    rows.size() * bytes);
        return;
    }
    switch (bytes) {
        case 1: return copy_values<1>(column.data, column.stride, stored, rows, target);
        case 2: return copy_values<2>(column.data, column.stride, stored, rows, target);
        case 4: return copy_values<4>(column.data, column.stride, stored, rows, target);
        case 8: return copy_values<8>(column.data, column.stride, stored, rows, target);
        default: break;
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::memcpy(target + rows[i].to * bytes, column.data + stored[i] * column.stride, bytes);
}

Result<void> ColumnarShard::copy(std::size_t column, std::span<const RowCopy> rows,
                                 BatchSlot::ColumnBuffer& target) const {
    const ColumnBlock& block = columns_[column];
    if (rows.empty()) return {};
    if (block.has_mask)
        for (const RowCopy& row : rows)
            target.valid[row.to] = block.is_all_null ? 0
                                   : block.valid     ? block.valid[stored_row(row.row)]
                                                     : 1;
    if (block.is_fixed) {
        copy_fixed(block, rows, target.data.data());
        return {};
    }
    for (const RowCopy& row : rows) {
        const Payload payload = payload_of(block, stored_row(row.row));
        if (payload.size > 0)
            std::memcpy(target.data.data() + target.offsets[row.to], payload.data, payload.size);
    }
    return {};
}

}  // namespace tune::loader
