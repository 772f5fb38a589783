#pragma once
// An open shard of a table: a number of rows that can be copied into a batch, column by column.
// Internal to the loader.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "loader/batch_slot.h"

namespace tune::loader {

/// Row `row` of a shard goes to row `to` of the batch.
struct RowCopy {
    std::uint32_t row = 0;
    std::uint32_t to = 0;
};

/// The rows of one shard that a batch takes, in the order of the batch.
class RowCopies {
public:
    /// `first`, and `count` - 1 rows that follow it in the shard and in the batch.
    void add_run(RowCopy first, std::size_t count) {
        is_run_ = is_run_ && (rows_.empty() || (first.row == rows_.back().row + 1 &&
                                                first.to == rows_.back().to + 1));
        const std::size_t before = rows_.size();
        rows_.resize(before + count);
        for (std::uint32_t i = 0; i < count; ++i) rows_[before + i] = {first.row + i, first.to + i};
    }
    /// Whether they follow each other, in the shard and in the batch.
    [[nodiscard]] bool is_run() const { return is_run_; }
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    [[nodiscard]] const RowCopy& operator[](std::size_t i) const { return rows_[i]; }
    [[nodiscard]] auto begin() const { return rows_.begin(); }
    [[nodiscard]] auto end() const { return rows_.end(); }

private:
    std::vector<RowCopy> rows_;
    bool is_run_ = true;
};

/// Immutable, thread-safe. `column` counts the columns of the catalogue.
class RowShard {
public:
    virtual ~RowShard() = default;

    /// Memory it holds.
    [[nodiscard]] virtual std::size_t bytes() const = 0;

    /// For a variable column: sizes[to] = bytes of the payload of each row.
    virtual void payload_sizes(std::size_t column, const RowCopies& rows,
                               std::span<std::uint64_t> sizes) const = 0;

    /// Copies the values of `rows` to their places in `target`, which has room for them, and sets
    /// target.valid where the column has a mask. Errors: those of the source, for a shard that is
    /// read only now.
    [[nodiscard]] virtual Result<void> copy(std::size_t column, const RowCopies& rows,
                                            BatchSlot::ColumnBuffer& target) const = 0;
};

/// One column of a shard in memory.
struct ColumnBlock {
    /// Fixed: value i lies at data + i * stride (0: the same one for every row).
    const std::byte* data = nullptr;
    std::size_t value_bytes = 0;
    std::size_t stride = 0;
    /// Variable: payload i is data[offsets[i] * unit .. offsets[i + 1] * unit); one of the two.
    /// Neither: one payload of value_bytes for every row.
    const std::int32_t* offsets32 = nullptr;
    const std::int64_t* offsets64 = nullptr;
    std::size_t unit = 1;
    /// Variable: payload i is that of offset codes[i] instead; nullptr: i itself.
    const std::int32_t* codes = nullptr;
    bool is_fixed = true;
    /// 1 for a value, 0 for a null; nullptr: no nulls.
    const std::uint8_t* valid = nullptr;
    bool has_mask = false;
    bool is_all_null = false;
    /// Keeps what the pointers point to.
    std::vector<std::shared_ptr<const void>> owners = {};
    std::size_t bytes = 0;
};

/// A shard that was decoded into memory.
class ColumnarShard final : public RowShard {
public:
    /// `selection`: the stored rows that count, ascending; nullptr: all.
    ColumnarShard(std::vector<ColumnBlock> columns,
                  std::shared_ptr<const std::vector<std::uint32_t>> selection);

    [[nodiscard]] std::size_t bytes() const override { return bytes_; }
    void payload_sizes(std::size_t column, const RowCopies& rows,
                       std::span<std::uint64_t> sizes) const override;
    [[nodiscard]] Result<void> copy(std::size_t column, const RowCopies& rows,
                                    BatchSlot::ColumnBuffer& target) const override;

private:
    [[nodiscard]] std::size_t stored_row(std::uint32_t row) const {
        return selection_ ? (*selection_)[row] : row;
    }
    /// Whether `rows` are `rows.size()` stored rows one after the other.
    [[nodiscard]] bool is_stored_run(const RowCopies& rows) const;
    void copy_validity(const ColumnBlock& column, const RowCopies& rows,
                       std::span<std::uint8_t> valid) const;
    void copy_fixed(const ColumnBlock& column, const RowCopies& rows, std::byte* target) const;
    void copy_payloads(const ColumnBlock& column, const RowCopies& rows,
                       BatchSlot::ColumnBuffer& target) const;

    std::vector<ColumnBlock> columns_;
    std::shared_ptr<const std::vector<std::uint32_t>> selection_;
    std::size_t bytes_ = 0;
};

}  // namespace tune::loader
