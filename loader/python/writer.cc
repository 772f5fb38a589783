// Python values become Values without a copy: text and bytes are read where Python holds them, and
// arrays through the buffer protocol or DLPack. What needs Python to be encoded (images, JSON,
// decimals, pickles) comes as bytes, which are stored as they are.

#include "loader/python/writer.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loader/format/mds/writer.h"
#include "loader/python/errors.h"
#include "loader/python/held.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;
using ReadableArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

std::optional<Dtype> dtype_of(nb::dlpack::dtype dtype) {
    const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
    const std::string bits = std::to_string(dtype.bits);
    if (dtype.lanes != 1) return std::nullopt;
    if (code == nb::dlpack::dtype_code::UInt) return dtype_from_name("uint" + bits);
    if (code == nb::dlpack::dtype_code::Int) return dtype_from_name("int" + bits);
    if (code == nb::dlpack::dtype_code::Float) return dtype_from_name("float" + bits);
    return std::nullopt;
}

/// The element type of a buffer whose format is one native number; nothing for another format.
std::optional<Dtype> dtype_of(const Py_buffer& buffer) {
    std::string_view format = buffer.format ? buffer.format : "B";
    if (!format.empty() && std::string_view("@=<").find(format[0]) != std::string_view::npos)
        format.remove_prefix(1);
    if (format.size() != 1) return std::nullopt;
    const std::string bits = std::to_string(8 * buffer.itemsize);
    if (std::string_view("bhilq").find(format[0]) != std::string_view::npos)
        return dtype_from_name("int" + bits);
    if (std::string_view("BHILQ").find(format[0]) != std::string_view::npos)
        return dtype_from_name("uint" + bits);
    if (std::string_view("efd").find(format[0]) != std::string_view::npos)
        return dtype_from_name("float" + bits);
    return std::nullopt;
}

/// A view of an object's memory through the buffer protocol; given back in the end.
class HeldBuffer {
public:
    /// Nothing when the object has no contiguous buffer.
    static std::optional<HeldBuffer> of(nb::handle object) {
        HeldBuffer held;
        if (!PyObject_CheckBuffer(object.ptr()) ||
            PyObject_GetBuffer(object.ptr(), held.buffer_.get(),
                               PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) {
            PyErr_Clear();
            return std::nullopt;
        }
        return held;
    }
    [[nodiscard]] const Py_buffer& operator*() const { return *buffer_; }

private:
    struct Release {
        void operator()(Py_buffer* buffer) const {
            PyBuffer_Release(buffer);  // does nothing with one that was never filled
            delete buffer;
        }
    };
    std::unique_ptr<Py_buffer, Release> buffer_{new Py_buffer()};
};

/// Values of one sample, and what must live until they are written.
class SampleValues {
public:
    void add(const std::string& column, const Encoding& encoding, nb::handle value) {
        try {
            values_.push_back(value_of(encoding, value));
        } catch (const Error& error) {
            raise({error.code, error.message, "column '" + column + "'"});
        }
    }
    [[nodiscard]] std::span<const Value> values() const { return values_; }
    void clear() {
        values_.clear();
        buffers_.clear();
        arrays_.clear();
        objects_.clear();
    }

private:
    Value value_of(const Encoding& encoding, nb::handle value) {
        if (PyBytes_Check(value.ptr())) {
            const auto* data = reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(value.ptr()));
            return std::span(data, static_cast<std::size_t>(PyBytes_GET_SIZE(value.ptr())));
        }
        if (PyUnicode_Check(value.ptr())) return text_of(value);
        if (encoding.kind == EncodingKind::kNdarray) return array_of(value);
        if (PyFloat_Check(value.ptr())) return PyFloat_AS_DOUBLE(value.ptr());
        if (PyIndex_Check(value.ptr())) return whole_of(encoding, value);
        if (PyNumber_Check(value.ptr())) {
            const double number = PyFloat_AsDouble(value.ptr());
            if (number == -1.0 && PyErr_Occurred()) throw nb::python_error();
            return number;
        }
        throw no_value(value, encoding);
    }

    static Value text_of(nb::handle value) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
        if (!text) throw nb::python_error();
        return std::string_view(text, static_cast<std::size_t>(size));
    }

    Value whole_of(const Encoding& encoding, nb::handle value) {
        objects_.push_back(nb::steal(PyNumber_Index(value.ptr())));
        if (!objects_.back().is_valid()) throw nb::python_error();
        int overflows = 0;
        const long long number = PyLong_AsLongLongAndOverflow(objects_.back().ptr(), &overflows);
        if (overflows == 0) return static_cast<std::int64_t>(number);
        if (encoding.kind != EncodingKind::kStrInt) {
            const unsigned long long large = PyLong_AsUnsignedLongLong(objects_.back().ptr());
            if (!PyErr_Occurred()) return static_cast<std::uint64_t>(large);
            PyErr_Clear();
        }
        objects_.push_back(nb::steal(PyObject_Str(objects_.back().ptr())));
        return text_of(objects_.back());
    }

    Value array_of(nb::handle value) {
        if (std::optional<HeldBuffer> held = HeldBuffer::of(value)) {
            const Py_buffer& buffer = **held;
            if (const std::optional<Dtype> dtype = dtype_of(buffer)) {
                const ArrayView view{*dtype,
                                     {buffer.shape, buffer.shape + buffer.ndim},
                                     {static_cast<const std::byte*>(buffer.buf),
                                      static_cast<std::size_t>(buffer.len)}};
                buffers_.push_back(*std::move(held));
                return view;
            }
        }
        // Arrays that are not contiguous are copied on the way, tensors come by DLPack.
        ReadableArray array;
        if (!nb::try_cast(value, array)) throw no_value(value, {.name = "ndarray"});
        const std::optional<Dtype> dtype = dtype_of(array.dtype());
        if (!dtype)
            throw invalid_parameter(
                "an array of this element type cannot be stored; use int8 to "
                "int64, uint8 to uint64 or float16 to float64");
        ArrayView view{*dtype, {}, {}};
        for (std::size_t d = 0; d < array.ndim(); ++d)
            view.shape.push_back(static_cast<std::int64_t>(array.shape(d)));
        view.bytes = {static_cast<const std::byte*>(array.data()), array.nbytes()};
        arrays_.push_back(std::move(array));
        return view;
    }

    static Error no_value(nb::handle value, const Encoding& encoding) {
        const nb::str type =
            nb::str(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()))).attr("__name__"));
        return invalid_parameter("a value of type " + std::string(type.c_str()) +
                                 " cannot be stored as " + encoding.name);
    }

    std::vector<Value> values_;
    std::vector<HeldBuffer> buffers_;
    std::vector<ReadableArray> arrays_;
    std::list<nb::object> objects_;
};

class Writer {
public:
    Writer(std::string directory, std::vector<std::pair<std::string, std::string>> columns,
           std::string compression, std::vector<std::string> hashes,
           std::optional<std::uint64_t> size_limit, bool keeps_empty_shards, bool files_may_leave)
        : writer_(value_or_raise(MdsWriter::open({.directory = std::move(directory),
                                                  .columns = std::move(columns),
                                                  .compression = std::move(compression),
                                                  .hashes = std::move(hashes),
                                                  .size_limit = size_limit,
                                                  .keeps_empty_shards = keeps_empty_shards,
                                                  .files_may_leave = files_may_leave}))) {
        for (const std::string& name : writer_.column_names())
            keys_.push_back(nb::str(name.c_str()));
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    void write(const nb::dict& sample) {
        values_.clear();
        for (std::size_t c = 0; c < keys_.size(); ++c) {
            PyObject* value = PyDict_GetItemWithError(sample.ptr(), keys_[c].ptr());
            if (!value) {
                if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, keys_[c].ptr());
                throw nb::python_error();
            }
            values_.add(writer_.column_names()[c], writer_.encodings()[c], value);
        }
        check(writer_.write(values_.values()));
    }

    void finish() {
        shards_ = value_or_raise(without_gil([this] { return writer_.finish(); })).shards;
        is_finished_ = true;
    }

    /// Of closed shards, the first one of which is number `from`.
    [[nodiscard]] std::vector<std::string> closed_files(std::size_t from) const {
        const std::vector<ShardInfo>& shards = is_finished_ ? shards_ : writer_.closed_shards();
        std::vector<std::string> names;
        for (std::size_t i = from; i < shards.size(); ++i)
            names.push_back(
                (shards[i].zip_data ? *shards[i].zip_data : shards[i].raw_data).basename);
        return names;
    }
    [[nodiscard]] std::size_t closed_count() const {
        return (is_finished_ ? shards_ : writer_.closed_shards()).size();
    }

    [[nodiscard]] std::vector<std::string> column_names() const { return writer_.column_names(); }
    [[nodiscard]] std::int64_t samples_written() const { return writer_.samples_written(); }

private:
    MdsWriter writer_;
    std::vector<nb::str> keys_;
    SampleValues values_;
    std::vector<ShardInfo> shards_;  // when is_finished_
    bool is_finished_ = false;
};

}  // namespace

void define_writer(nb::module_& module) {
    nb::class_<Writer>(module, "Writer")
        .def(nb::init<std::string, std::vector<std::pair<std::string, std::string>>, std::string,
                      std::vector<std::string>, std::optional<std::uint64_t>, bool, bool>(),
             nb::arg("directory"), nb::arg("columns"), nb::arg("compression"), nb::arg("hashes"),
             nb::arg("size_limit").none(), nb::arg("keeps_empty_shards"),
             nb::arg("files_may_leave") = false)
        .def("write", &Writer::write, nb::arg("sample"))
        .def("finish", &Writer::finish)
        .def("closed_files", &Writer::closed_files, nb::arg("from_shard"))
        .def_prop_ro("closed_count", &Writer::closed_count)
        .def_prop_ro("column_names", &Writer::column_names)
        .def_prop_ro("samples_written", &Writer::samples_written);
}

}  // namespace tune::loader::python
