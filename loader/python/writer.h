#pragma once
// tuneloader._core.Writer: an MdsWriter seen from Python.

#include <nanobind/nanobind.h>

namespace tune::loader::python {

void define_writer(nanobind::module_& module);

}  // namespace tune::loader::python
