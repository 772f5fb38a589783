#pragma once
// Errors of the loader as Python exceptions.

#include <nanobind/nanobind.h>

#include <utility>

#include "base/result.h"

namespace tune::loader::python {

/// Makes the exception type tuneloader.DataLossError. Once, when the module is loaded.
void define_errors(nanobind::module_& module);

/// Sets the Python exception for `error`, with its sentence: ValueError, FileNotFoundError,
/// FileExistsError, PermissionError, NotImplementedError, MemoryError, TimeoutError, DataLossError
/// or RuntimeError. REQUIRES: the GIL.
[[noreturn]] void raise(const Error& error);

/// The value, or its error raised. REQUIRES: the GIL.
template <class T>
T value_or_raise(Result<T> result) {
    if (!result) raise(result.error());
    return std::move(result).value();
}
inline void check(const Result<void>& result) {
    if (!result) raise(result.error());
}

}  // namespace tune::loader::python
