#pragma once
// Values of varying length as rows of one length. Internal to the loader.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "loader/dataset.h"
#include "loader/decode/column_transforms.h"
#include "loader/format/mds/encoding.h"

namespace tune::loader {

/// Immutable, thread-safe.
class Padding {
public:
    /// Errors: kInvalidParameterValue for options out of range and columns that are no lists.
    [[nodiscard]] static Result<Padding> make(const PadOptions& options, const ColumnInfo& stored);

    [[nodiscard]] const ColumnInfo& column() const { return column_; }
    /// "NAME_mask".
    [[nodiscard]] const ColumnInfo& mask_column() const { return mask_; }

    /// Writes column().sample_bytes at `to` and mask_column().sample_bytes at `mask`. Errors:
    /// kDataLoss for a damaged value, kInvalidParameterValue for one that is too long.
    [[nodiscard]] Result<void> apply(std::span<const std::byte> stored, std::byte* to,
                                     std::byte* mask) const;

private:
    PadOptions options_;
    /// Of arrays, whose values have a header.
    std::optional<Encoding> array_ = {};
    ColumnInfo column_;
    ColumnInfo mask_;
    std::string fill_ = {};  // the bytes of one element
};

}  // namespace tune::loader
