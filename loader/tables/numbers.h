#pragma once
// The numbers in an Arrow array as one run of elements of a column's type.

#include <arrow/array.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "loader/tables/output_column.h"

namespace tune::loader {

/// Elements of info.dtype, one after the other.
struct Numbers {
    const std::byte* data = nullptr;
    std::shared_ptr<const void> owner = {};
    std::size_t bytes = 0;
};

[[nodiscard]] std::shared_ptr<std::vector<std::byte>> make_bytes(std::size_t size);
[[nodiscard]] Numbers owned(std::shared_ptr<std::vector<std::byte>> bytes);

/// The values of a flat array as info.dtype, in place where they already are. Values under nulls
/// are whatever they are. Errors: type_error().
[[nodiscard]] Result<Numbers> numbers_of(const OutputColumn& column,
                                         const std::shared_ptr<arrow::Array>& array);

/// A file that stores a column as `type`, which the table's type does not hold: kDataLoss.
[[nodiscard]] Error type_error(const OutputColumn& column, const arrow::DataType& type);

}  // namespace tune::loader
