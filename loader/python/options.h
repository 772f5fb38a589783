#pragma once
// What tuneloader passes as a dict, as the options of the loader.

#include <nanobind/nanobind.h>

#include "loader/dataset.h"
#include "loader/python/arrays.h"

namespace tune::loader::python {

/// `options`: a dict made by tuneloader; a key that is missing has its default. Raises ValueError
/// for a name that is not known. REQUIRES: the GIL.
[[nodiscard]] DatasetOptions options_of(const nanobind::dict& options);
[[nodiscard]] BatchFormat format_of(const nanobind::dict& options);

}  // namespace tune::loader::python
