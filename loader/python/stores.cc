#include "loader/python/stores.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loader/python/errors.h"
#include "loader/python/held.h"
#include "loader/source/object_sink.h"
#include "loader/source/open_source.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

SourceOptions store_options(double timeout_s, int retry) {
    SourceOptions options;
    options.download_timeout_s = timeout_s;
    options.download_retry = retry;
    return options;
}

class Sink {
public:
    Sink(const std::string& url, double timeout_s, int retry)
        : sink_(value_or_raise(
              without_gil([&] { return open_sink(url, store_options(timeout_s, retry)); }))) {}

    void put(const std::string& file, const std::string& name) const {
        check(without_gil([&] { return sink_->put(file, name); }));
    }

private:
    std::shared_ptr<const ObjectSink> sink_;
};

std::vector<std::pair<std::string, std::uint64_t>> list_objects(const std::string& url,
                                                                double timeout_s, int retry) {
    const std::vector<ObjectInfo> objects =
        value_or_raise(without_gil([&]() -> Result<std::vector<ObjectInfo>> {
            TUNE_TRY(source, open_source(url, store_options(timeout_s, retry)));
            return source->list("");
        }));
    std::vector<std::pair<std::string, std::uint64_t>> found;
    for (const ObjectInfo& object : objects) found.emplace_back(object.path, object.bytes);
    return found;
}

nb::bytes read_whole(const std::string& url, const std::string& path, double timeout_s, int retry) {
    const std::string text = value_or_raise(without_gil([&]() -> Result<std::string> {
        TUNE_TRY(source, open_source(url, store_options(timeout_s, retry)));
        return read_object(*source, path);
    }));
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void define_stores(nb::module_& module) {
    nb::class_<Sink>(module, "Sink")
        .def(nb::init<const std::string&, double, int>(), nb::arg("url"), nb::arg("timeout"),
             nb::arg("retry"))
        .def("put", &Sink::put, nb::arg("file"), nb::arg("name"));
    module.def("list_objects", &list_objects, nb::arg("url"), nb::arg("timeout"), nb::arg("retry"));
    module.def("read_object", &read_whole, nb::arg("url"), nb::arg("path"), nb::arg("timeout"),
               nb::arg("retry"));
}

}  // namespace tune::loader::python
