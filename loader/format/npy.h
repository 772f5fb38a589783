#pragma once
// Arrays as numpy saves them: .npy bytes, and the one array of a .npz (numpy/lib/format.py).

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "loader/format/mds/encoding.h"

namespace tune::loader {

/// The array of a .npy file; the view points into `file`. Versions 1 to 3, little-endian numbers
/// and booleans (as uint8), C order; a single number has the shape (1). Errors: kDataLoss for
/// damage, kNotImplemented for other types and Fortran order (pickled objects are never opened).
[[nodiscard]] Result<ArrayView> parse_npy(std::span<const std::byte> file);

/// The bytes of "<name>.npy" in a .npz, stored or deflated. Errors: kDataLoss.
[[nodiscard]] Result<std::string> npz_member(std::span<const std::byte> file,
                                             std::string_view name);

}  // namespace tune::loader
