#include "loader/python/caches.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "loader/cache/disk_cache.h"
#include "loader/cache/remote_set.h"
#include "loader/python/errors.h"
#include "loader/python/held.h"

namespace tune::loader::python {
namespace {

using CacheRow = std::tuple<std::string, std::uint64_t, std::size_t, bool>;

std::vector<CacheRow> caches_in(const std::string& directory) {
    const std::vector<CacheUsage> caches =
        value_or_raise(without_gil([&] { return find_caches(directory); }));
    std::vector<CacheRow> rows;
    for (const CacheUsage& cache : caches)
        rows.emplace_back(cache.directory.string(), cache.bytes, cache.files, cache.is_in_use);
    return rows;
}

}  // namespace

void define_caches(nanobind::module_& module) {
    module.def("find_caches", &caches_in, nanobind::arg("directory"));
    module.def(
        "cache_delete",
        [](const std::string& directory) {
            check(without_gil([&] { return cache_delete(directory); }));
        },
        nanobind::arg("directory"));
    module.def(
        "default_cache", [](const std::string& url) { return default_cache(url).string(); },
        nanobind::arg("url"));
    module.def("default_caches", [] { return default_caches().string(); });
}

}  // namespace tune::loader::python
