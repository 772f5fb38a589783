// The extension module tuneloader._core; its Python face is in tuneloader/.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "loader/format/mds/encoding.h"
#include "loader/format/mds/index.h"
#include "loader/python/caches.h"
#include "loader/python/errors.h"
#include "loader/python/packed_reader.h"
#include "loader/python/reader.h"
#include "loader/python/stores.h"
#include "loader/python/writer.h"
#include "loader/rows/table_library.h"

NB_MODULE(_core, module) {
    using namespace tune::loader;
    use_table_library();
    python::define_errors(module);
    python::define_reader(module);
    python::define_packed_reader(module);
    python::define_writer(module);
    python::define_stores(module);
    python::define_caches(module);
    module.def(
        "parse_bytes",
        [](const std::string& text) { return python::value_or_raise(parse_bytes(text)); },
        nanobind::arg("text"));
    module.def(
        "check_encoding",
        [](const std::string& name) { python::value_or_raise(parse_encoding(name)); },
        nanobind::arg("name"));
}
