#pragma once
// Caches on this machine: what lies in them, and how they are deleted.

#include <nanobind/nanobind.h>

namespace tune::loader::python {

/// Adds find_caches, cache_delete and default_cache.
void define_caches(nanobind::module_& module);

}  // namespace tune::loader::python
