// One capsule holds a batch; every array made of it refers to the capsule, so the slot goes back to
// its pool when Python drops the last array, on whichever thread that is. In a child of fork() the
// pool's lock may have been copied while another thread held it, so there the slot is left alone:
// its memory is the child's own copy and goes with it.

#include "loader/python/arrays.h"

#include <nanobind/ndarray.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "loader/python/errors.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

struct HeldBatch {
    Batch batch;
    pid_t process = getpid();
};

nb::capsule hold(Batch batch) {
    return {new HeldBatch{std::move(batch)}, [](void* held) noexcept {
                auto* batch_held = static_cast<HeldBatch*>(held);
                if (batch_held->process == getpid()) delete batch_held;
            }};
}

nb::dlpack::dtype dlpack_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::kUint8: return nb::dtype<std::uint8_t>();
        case Dtype::kInt8: return nb::dtype<std::int8_t>();
        case Dtype::kUint16: return nb::dtype<std::uint16_t>();
        case Dtype::kInt16: return nb::dtype<std::int16_t>();
        case Dtype::kUint32: return nb::dtype<std::uint32_t>();
        case Dtype::kInt32: return nb::dtype<std::int32_t>();
        case Dtype::kUint64: return nb::dtype<std::uint64_t>();
        case Dtype::kInt64: return nb::dtype<std::int64_t>();
        case Dtype::kFloat32: return nb::dtype<float>();
        case Dtype::kFloat64: return nb::dtype<double>();
        case Dtype::kFloat16: break;
    }
    return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
}

template <class Framework>
nb::object made_by(void* data, const std::vector<std::size_t>& shape, nb::dlpack::dtype dtype,
                   nb::handle owner) {
    return nb::cast(nb::ndarray<Framework, nb::device::cpu>(data, shape.size(), shape.data(), owner,
                                                            nullptr, dtype));
}

template <class Wide, class Narrow>
bool fit_into(const void* data, std::size_t count) {
    const std::span<const Wide> values(static_cast<const Wide*>(data), count);
    return std::all_of(values.begin(), values.end(), [](Wide value) {
        return value >= static_cast<Wide>(std::numeric_limits<Narrow>::lowest()) &&
               value <= static_cast<Wide>(std::numeric_limits<Narrow>::max());
    });
}

/// jax makes 32 bits of 64 where it was not told to keep them, and of whole numbers that need more
/// it keeps the lower half without a word: those are refused. Errors: OverflowError.
void check_for_jax(const void* data, const std::vector<std::size_t>& shape,
                   nb::dlpack::dtype dtype) {
    const bool is_signed = dtype.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int);
    const bool is_unsigned = dtype.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt);
    if (dtype.bits != 64 || !(is_signed || is_unsigned)) return;
    std::size_t count = 1;
    for (const std::size_t extent : shape) count *= extent;
    const bool fits = is_signed ? fit_into<std::int64_t, std::int32_t>(data, count)
                                : fit_into<std::uint64_t, std::uint32_t>(data, count);
    if (fits) return;
    const nb::object config = nb::module_::import_("jax").attr("config");
    if (nb::cast<bool>(config.attr("jax_enable_x64"))) return;
    PyErr_SetString(PyExc_OverflowError,
                    "a column holds whole numbers of more than 32 bits, of which jax keeps 32; "
                    "jax.config.update(\"jax_enable_x64\", True) lets it keep them, or read the "
                    "column with arrays=\"numpy\"");
    throw nb::python_error();
}

nb::object array(ArrayKind kind, void* data, const std::vector<std::size_t>& shape,
                 nb::dlpack::dtype dtype, nb::handle owner) {
    if (kind == ArrayKind::kJax) check_for_jax(data, shape, dtype);
    switch (kind) {
        case ArrayKind::kNumpy: return made_by<nb::numpy>(data, shape, dtype, owner);
        case ArrayKind::kTorch: return made_by<nb::pytorch>(data, shape, dtype, owner);
        case ArrayKind::kJax: return made_by<nb::jax>(data, shape, dtype, owner);
        case ArrayKind::kDlpack: return made_by<nb::array_api>(data, shape, dtype, owner);
    }
    return nb::none();
}

nb::object array(ArrayKind kind, const void* bytes, const std::vector<std::size_t>& shape,
                 Dtype dtype, nb::handle owner) {
    void* data = const_cast<void*>(bytes);  // the slot is the batch's own: Python may write to it
    return array(kind, data, shape, dlpack_of(dtype), owner);
}

/// A copy of `bytes` as an array that owns it.
nb::object copied_array(std::span<const std::byte> bytes, const std::vector<std::int64_t>& shape,
                        Dtype dtype) {
    auto copy = std::make_unique<std::byte[]>(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    std::byte* data = copy.release();
    const nb::capsule owner(data,
                            [](void* held) noexcept { delete[] static_cast<std::byte*>(held); });
    return array(ArrayKind::kNumpy, data, {shape.begin(), shape.end()}, dtype, owner);
}

bool is_list(const ColumnInfo& info) {
    return !info.fixed && info.encoding.starts_with("list:");
}

/// Of the array that `bytes` of a "list:" column are.
std::vector<std::int64_t> list_shape(const ColumnInfo& info, std::size_t bytes) {
    std::size_t element_bytes = dtype_bytes(info.dtype);
    for (const std::int64_t size : info.shape) element_bytes *= static_cast<std::size_t>(size);
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(bytes / element_bytes)};
    shape.insert(shape.end(), info.shape.begin(), info.shape.end());
    return shape;
}

nb::object text_object(std::string_view text) {
    PyObject* object =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
    if (!object) throw nb::python_error();
    return nb::steal(object);
}

nb::object bytes_object(std::string_view bytes) {
    return nb::bytes(bytes.data(), bytes.size());
}

/// What a payload of varying size is in Python, apart from what needs Python to be decoded.
nb::object payload_object(std::string_view payload, const Encoding& encoding) {
    switch (encoding.kind) {
        case EncodingKind::kStr: return text_object(payload);
        case EncodingKind::kStrInt:
            return nb::steal(PyLong_FromUnicodeObject(text_object(payload).ptr(), 10));
        case EncodingKind::kStrFloat:
            return nb::steal(PyFloat_FromString(text_object(payload).ptr()));
        case EncodingKind::kNdarray: {
            const ArrayView view = value_or_raise(
                decode_array(encoding, std::as_bytes(std::span(payload.data(), payload.size()))));
            return copied_array(view.bytes, view.shape, view.dtype);
        }
        default: return bytes_object(payload);
    }
}

/// Row `row` of a "list:" column: a part of the batch's memory.
nb::object list_view(const Column& column, std::size_t row, ArrayKind kind, nb::handle owner) {
    const std::span<const std::byte> bytes = column.sample(row);
    const std::vector<std::int64_t> shape = list_shape(*column.info, bytes.size());
    return array(kind, bytes.data(), {shape.begin(), shape.end()}, column.info->dtype, owner);
}

nb::object payload_list(const Column& column, const Encoding& encoding, std::size_t count,
                        ArrayKind kind, nb::handle owner) {
    nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(count)));
    const bool is_text =
        encoding.kind == EncodingKind::kStrDecimal || encoding.kind == EncodingKind::kJson;
    const bool holds_lists = is_list(*column.info);
    for (std::size_t i = 0; i < count; ++i) {
        nb::object item;
        if (column.valid && column.valid[i] == 0)
            item = nb::none();
        else if (holds_lists)
            item = list_view(column, i, kind, owner);
        else
            item = is_text ? text_object(column.text(i)) : payload_object(column.text(i), encoding);
        if (!item.is_valid()) throw nb::python_error();
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item.release().ptr());
    }
    return list;
}

nb::object offsets_pair(const Column& column, std::size_t count, ArrayKind kind, nb::handle owner) {
    const auto bytes = static_cast<std::size_t>(column.offsets[count]);
    if (is_list(*column.info)) {
        const std::vector<std::int64_t> shape = list_shape(*column.info, bytes);
        std::size_t row_bytes = dtype_bytes(column.info->dtype);
        for (const std::int64_t size : column.info->shape)
            row_bytes *= static_cast<std::size_t>(size);
        auto* starts = new std::vector<std::int64_t>(count + 1);
        const nb::capsule kept(starts, [](void* held) noexcept {
            delete static_cast<std::vector<std::int64_t>*>(held);
        });
        for (std::size_t i = 0; i <= count; ++i)
            (*starts)[i] = static_cast<std::int64_t>(column.offsets[i] / row_bytes);
        return nb::make_tuple(
            array(kind, column.data, {shape.begin(), shape.end()}, column.info->dtype, owner),
            array(kind, starts->data(), {count + 1}, Dtype::kInt64, kept));
    }
    return nb::make_tuple(array(kind, column.data, {bytes}, Dtype::kUint8, owner),
                          array(kind, column.offsets, {count + 1}, Dtype::kInt64, owner));
}

/// numpy.uint8 and its like, by dtype. The process keeps them.
nb::handle scalar_type(Dtype dtype) {
    static std::array<PyObject*, 256> types = {};
    PyObject*& type = types[static_cast<std::size_t>(dtype)];
    if (!type) {
        const std::string name(dtype_name(dtype));
        nb::object found = nb::module_::import_("numpy").attr(name.c_str());
        type = found.release().ptr();
    }
    return type;
}

template <class T>
T loaded(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

nb::object scalar_object(Dtype dtype, const std::byte* bytes) {
    const nb::handle type = scalar_type(dtype);
    switch (dtype) {
        case Dtype::kUint8: return type(loaded<std::uint8_t>(bytes));
        case Dtype::kInt8: return type(static_cast<int>(loaded<std::int8_t>(bytes)));
        case Dtype::kUint16: return type(loaded<std::uint16_t>(bytes));
        case Dtype::kInt16: return type(loaded<std::int16_t>(bytes));
        case Dtype::kUint32: return type(loaded<std::uint32_t>(bytes));
        case Dtype::kInt32: return type(loaded<std::int32_t>(bytes));
        case Dtype::kUint64: return type(loaded<std::uint64_t>(bytes));
        case Dtype::kInt64: return type(loaded<std::int64_t>(bytes));
        case Dtype::kFloat16: return type(double_from_half(loaded<std::uint16_t>(bytes)));
        case Dtype::kFloat32: return type(static_cast<double>(loaded<float>(bytes)));
        case Dtype::kFloat64: return type(loaded<double>(bytes));
    }
    return nb::none();
}

nb::object sample_value(const Column& column, std::size_t row, const Encoding& encoding) {
    const ColumnInfo& info = *column.info;
    if (column.valid && column.valid[row] == 0) return nb::none();
    if (is_list(info)) {
        const std::span<const std::byte> bytes = column.sample(row);
        return copied_array(bytes, list_shape(info, bytes.size()), info.dtype);
    }
    if (!info.fixed) return payload_object(column.text(row), encoding);
    const std::span<const std::byte> bytes = column.sample(row);
    if (encoding.kind == EncodingKind::kNdarray) return copied_array(bytes, info.shape, info.dtype);
    if (encoding.name == "int") return nb::int_(loaded<std::int64_t>(bytes.data()));
    return scalar_object(info.dtype, bytes.data());
}

/// Which rows hold a value: bool [count].
nb::object valid_array(const Column& column, std::size_t count, ArrayKind kind, nb::handle owner) {
    void* data = const_cast<std::uint8_t*>(column.valid);
    return array(kind, data, {count}, nb::dtype<bool>(), owner);
}

}  // namespace

Result<Encoding> encoding_of(const ColumnInfo& column) {
    if (!is_list(column)) return parse_encoding(column.encoding);
    return Encoding{EncodingKind::kBytes, column.encoding};
}

nb::dict batch_dict(Batch batch, const std::vector<Encoding>& encodings,
                    const BatchFormat& format) {
    const std::vector<Column> columns = batch.columns;
    const std::size_t count = batch.count;
    const std::span<const std::int64_t> ids = batch.sample_ids;
    const nb::capsule owner = hold(std::move(batch));
    nb::dict dict;
    std::vector<std::size_t> shape;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const ColumnInfo& info = *columns[c].info;
        nb::object value;
        if (info.fixed) {
            shape.assign(1, count);
            shape.insert(shape.end(), info.shape.begin(), info.shape.end());
            value = array(format.arrays, columns[c].data, shape, info.dtype, owner);
        } else if (format.has_offsets) {
            value = offsets_pair(columns[c], count, format.arrays, owner);
        } else {
            value = payload_list(columns[c], encodings[c], count, format.arrays, owner);
        }
        dict[info.name.c_str()] = value;
        if (columns[c].valid && (info.fixed || format.has_offsets))
            dict[(info.name + "__valid").c_str()] =
                valid_array(columns[c], count, format.arrays, owner);
    }
    if (!format.ids_key.empty())
        dict[format.ids_key.c_str()] =
            array(format.arrays, ids.data(), {ids.size()}, Dtype::kInt64, owner);
    return dict;
}

nb::dict sample_dict(const Batch& batch, std::size_t row, const std::vector<Encoding>& encodings) {
    nb::dict dict;
    for (std::size_t c = 0; c < batch.columns.size(); ++c) {
        nb::object value = sample_value(batch.columns[c], row, encodings[c]);
        if (!value.is_valid()) throw nb::python_error();
        dict[batch.columns[c].info->name.c_str()] = value;
    }
    return dict;
}

nb::dict packed_dict(PackedBatch batch, const BatchFormat& format) {
    static_assert(sizeof(PackedPiece) == 5 * sizeof(std::int64_t));
    auto* held = new PackedBatch(std::move(batch));
    const nb::capsule owner(held,
                            [](void* kept) noexcept { delete static_cast<PackedBatch*>(kept); });
    const std::vector<std::size_t> shape = {static_cast<std::size_t>(held->count),
                                            static_cast<std::size_t>(held->length)};
    nb::dict dict;
    dict["tokens"] = array(format.arrays, held->tokens.data(), shape, Dtype::kInt64, owner);
    dict["segment_ids"] = array(format.arrays, held->segments.data(), shape, Dtype::kInt32, owner);
    dict["positions"] = array(format.arrays, held->positions.data(), shape, Dtype::kInt32, owner);
    dict["pieces"] = array(ArrayKind::kNumpy, held->pieces.data(), {held->pieces.size(), 5},
                           Dtype::kInt64, owner);
    return dict;
}

nb::object ids_array(std::vector<std::int64_t> ids) {
    auto* held = new std::vector<std::int64_t>(std::move(ids));
    const nb::capsule owner(
        held, [](void* kept) noexcept { delete static_cast<std::vector<std::int64_t>*>(kept); });
    return array(ArrayKind::kNumpy, held->data(), {held->size()}, Dtype::kInt64, owner);
}

}  // namespace tune::loader::python
