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
    if (column.codes) row = static_cast<std::size_t>(column.codes[row]);
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
                 const RowCopies& rows, std::byte* to) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::memcpy(to + rows[i].to * kBytes, from + stored[i] * stride, kBytes);
}

/// Whether the payloads of rows that follow each other do so too.
bool lies_in_order(const ColumnBlock& column) {
    return (column.offsets32 || column.offsets64) && !column.codes;
}

/// Of payloads that lie one after the other.
template <class Offset>
void run_sizes(const Offset* offsets, std::size_t unit, std::span<std::uint64_t> sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
        sizes[i] = static_cast<std::uint64_t>(offsets[i + 1] - offsets[i]) * unit;
}

}  // namespace

ColumnarShard::ColumnarShard(std::vector<ColumnBlock> columns,
                             std::shared_ptr<const std::vector<std::uint32_t>> selection)
    : columns_(std::move(columns)), selection_(std::move(selection)) {
    for (const ColumnBlock& column : columns_) bytes_ += column.bytes;
}

bool ColumnarShard::is_stored_run(const RowCopies& rows) const {
    // A selection ascends, so its ends tell whether something was left out between them.
    return rows.is_run() && !rows.empty() &&
           stored_row(rows[rows.size() - 1].row) - stored_row(rows[0].row) == rows.size() - 1;
}

void ColumnarShard::payload_sizes(std::size_t column, const RowCopies& rows,
                                  std::span<std::uint64_t> sizes) const {
    const ColumnBlock& block = columns_[column];
    if (lies_in_order(block) && is_stored_run(rows)) {
        const std::size_t first = stored_row(rows[0].row);
        const std::span<std::uint64_t> of_run = sizes.subspan(rows[0].to, rows.size());
        if (block.offsets32)
            run_sizes(block.offsets32 + first, block.unit, of_run);
        else
            run_sizes(block.offsets64 + first, block.unit, of_run);
        return;
    }
    for (const RowCopy& row : rows) sizes[row.to] = payload_of(block, stored_row(row.row)).size;
}

void ColumnarShard::copy_validity(const ColumnBlock& column, const RowCopies& rows,
                                  std::span<std::uint8_t> valid) const {
    for (const RowCopy& row : rows)
        valid[row.to] = column.is_all_null ? 0
                        : column.valid     ? column.valid[stored_row(row.row)]
                                           : 1;
}

void ColumnarShard::copy_fixed(const ColumnBlock& column, const RowCopies& rows,
                               std::byte* target) const {
    const std::size_t bytes = column.value_bytes;
    if (column.stride == bytes && is_stored_run(rows)) {
        std::memcpy(target + rows[0].to * bytes, column.data + stored_row(rows[0].row) * bytes,
                    rows.size() * bytes);
        return;
    }
    thread_local std::vector<std::size_t> stored;
    stored.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) stored[i] = stored_row(rows[i].row);
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

void ColumnarShard::copy_payloads(const ColumnBlock& column, const RowCopies& rows,
                                  BatchSlot::ColumnBuffer& target) const {
    if (lies_in_order(column) && is_stored_run(rows)) {
        const std::uint64_t begin = target.offsets[rows[0].to];
        const std::uint64_t bytes = target.offsets[rows[0].to + rows.size()] - begin;
        if (bytes > 0)
            std::memcpy(target.data.data() + begin,
                        payload_of(column, stored_row(rows[0].row)).data, bytes);
        return;
    }
    for (const RowCopy& row : rows) {
        const Payload payload = payload_of(column, stored_row(row.row));
        if (payload.size > 0)
            std::memcpy(target.data.data() + target.offsets[row.to], payload.data, payload.size);
    }
}

Result<void> ColumnarShard::copy(std::size_t column, const RowCopies& rows,
                                 BatchSlot::ColumnBuffer& target) const {
    const ColumnBlock& block = columns_[column];
    if (rows.empty()) return {};
    if (block.has_mask) copy_validity(block, rows, target.valid);
    if (block.is_fixed)
        copy_fixed(block, rows, target.data.data());
    else
        copy_payloads(block, rows, target);
    return {};
}

}  // namespace tune::loader
