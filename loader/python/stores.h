#pragma once
// Files of folders and object stores as Python writes, lists and reads them.

#include <nanobind/nanobind.h>

namespace tune::loader::python {

/// Adds Sink, list_objects and read_object.
void define_stores(nanobind::module_& module);

}  // namespace tune::loader::python
