#pragma once
// Numbers of one element type as another.

#include <cstddef>

#include "loader/format/dtype.h"

namespace tune::loader {

/// Whether every value of `from` is exactly a value of `to`.
[[nodiscard]] bool holds_every_value(Dtype to, Dtype from);

/// Converts `count` elements; neither pointer need be aligned, and they must not overlap. Integers
/// out of range are clamped, fractions are cut off, NaN becomes 0 in an integer.
using ConvertElements = void (*)(const std::byte* from, std::byte* to, std::size_t count);

/// Never nullptr; a plain copy when both are the same.
[[nodiscard]] ConvertElements converter(Dtype from, Dtype to);

}  // namespace tune::loader
