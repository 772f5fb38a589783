// One decision for each type of Arrow: numbers and arrays of them lie fixed in a batch, lists of
// them with offsets, text and bytes as they are, and what nests deeper as JSON.

#include "loader/tables/output_column.h"

#include <arrow/extension_type.h>

#include <limits>

#include "loader/format/convert_dtype.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kValueBytesMax = std::int64_t{1} << 32;

bool is_list(const arrow::DataType& type) {
    return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST;
}

std::shared_ptr<arrow::DataType> child_type(const arrow::DataType& type) {
    return type.field(0)->type();
}

Result<std::int64_t> element_count(const std::vector<std::int64_t>& shape,
                                   const std::string& name) {
    std::int64_t count = 1;
    for (const std::int64_t dimension : shape) {
        if (dimension < 1 || dimension > kValueBytesMax || count > kValueBytesMax / dimension)
            return invalid_parameter("column '" + name + "' cannot have this shape");
        count *= dimension;
    }
    return count;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t dimension : shape)
        text += (text.empty() ? "" : ",") + std::to_string(dimension);
    return text;
}

Result<void> make_fixed(OutputColumn& column, std::vector<std::int64_t> shape) {
    TUNE_TRY(count, element_count(shape, column.table.name));
    column.kind = ColumnKind::kFixedArray;
    column.info.fixed = true;
    column.info.dtype = column.stored;
    column.info.sample_bytes = static_cast<std::size_t>(count) * dtype_bytes(column.stored);
    column.info.encoding =
        "ndarray:" + std::string(dtype_name(column.stored)) + ":" + shape_text(shape);
    column.info.shape = std::move(shape);
    return {};
}

void make_variable(OutputColumn& column, ColumnKind kind, std::string encoding) {
    column.kind = kind;
    column.info.fixed = false;
    column.info.dtype = Dtype::kUint8;
    column.info.sample_bytes = 0;
    column.info.encoding = std::move(encoding);
}

/// Lists of numbers, also of arrays of numbers; anything deeper is given out as JSON.
Result<void> plan_list(OutputColumn& column, const std::shared_ptr<arrow::DataType>& type) {
    std::vector<std::int64_t> shape;
    const std::shared_ptr<arrow::DataType> inner =
        element_type(is_list(*type) ? child_type(*type) : type, shape);
    const std::optional<Dtype> dtype = number_dtype(*inner);
    if (!dtype || inner->id() == arrow::Type::BOOL) {
        make_variable(column, ColumnKind::kJsonText, "json");
        return {};
    }
    column.stored = *dtype;
    if (!is_list(*type)) return make_fixed(column, std::move(shape));
    if (!column.options.shape.empty()) return make_fixed(column, column.options.shape);
    TUNE_TRY_VOID(element_count(shape, column.table.name));
    std::string encoding = "list:" + std::string(dtype_name(*dtype));
    if (!shape.empty()) encoding += ":" + shape_text(shape);
    make_variable(column, ColumnKind::kNumberList, std::move(encoding));
    column.info.dtype = *dtype;
    column.info.shape = std::move(shape);
    return {};
}

Result<void> plan_npy(OutputColumn& column) {
    make_variable(column, ColumnKind::kNpy, "ndarray");
    if (column.options.shape.empty()) {
        if (column.options.dtype)
            return invalid_parameter("column '" + column.table.name +
                                     "' holds arrays of any shape; state a shape with the type");
        return {};
    }
    column.stored = column.options.dtype.value_or(Dtype::kUint8);
    TUNE_TRY_VOID(make_fixed(column, column.options.shape));
    column.kind = ColumnKind::kNpy;
    return {};
}

Result<void> plan_decimal(OutputColumn& column) {
    if (!column.options.dtype) {
        make_variable(column, ColumnKind::kDecimalText, "str_decimal");
        return {};
    }
    // A decimal becomes a number by way of float64.
    if (!column.options.allows_narrowing)
        return invalid_parameter("column '" + column.table.name + "' is stored as " +
                                 column.table.type->ToString() +
                                 ", which no number type holds exactly; allow narrowing if values "
                                 "may be rounded");
    column.stored = Dtype::kFloat64;
    column.info.dtype = Dtype::kFloat64;
    column.info.encoding = "float64";
    column.info.sample_bytes = sizeof(double);
    return {};
}

Result<void> plan(OutputColumn& column, const std::shared_ptr<arrow::DataType>& type) {
    if (const std::optional<Dtype> dtype = number_dtype(*type)) {
        column.kind = ColumnKind::kNumber;
        column.stored = *dtype;
        column.info.dtype = *dtype;
        column.info.sample_bytes = dtype_bytes(*dtype);
        column.info.encoding = dtype_name(*dtype);
        return {};
    }
    switch (type->id()) {
        case arrow::Type::STRING:
        case arrow::Type::LARGE_STRING:
        case arrow::Type::STRING_VIEW:
        case arrow::Type::NA: make_variable(column, ColumnKind::kBytes, "str"); return {};
        case arrow::Type::BINARY:
        case arrow::Type::LARGE_BINARY:
        case arrow::Type::BINARY_VIEW:
        case arrow::Type::FIXED_SIZE_BINARY:
            make_variable(column, ColumnKind::kBytes, "bytes");
            return {};
        case arrow::Type::DECIMAL32:
        case arrow::Type::DECIMAL64:
        case arrow::Type::DECIMAL128:
        case arrow::Type::DECIMAL256: return plan_decimal(column);
        case arrow::Type::LIST:
        case arrow::Type::LARGE_LIST:
        case arrow::Type::FIXED_SIZE_LIST: return plan_list(column, type);
        case arrow::Type::STRUCT:
        case arrow::Type::MAP: make_variable(column, ColumnKind::kJsonText, "json"); return {};
        case arrow::Type::DICTIONARY:
            return plan(column, static_cast<const arrow::DictionaryType&>(*type).value_type());
        case arrow::Type::EXTENSION:
            return plan(column, static_cast<const arrow::ExtensionType&>(*type).storage_type());
        default:
            return Error{Code::kNotImplemented, "column '" + column.table.name + "' has the type " +
                                                    type->ToString() +
                                                    ", which cannot be given out; leave it out by "
                                                    "naming the columns to read"};
    }
}

}  // namespace

std::optional<Dtype> number_dtype(const arrow::DataType& type) {
    switch (type.id()) {
        case arrow::Type::BOOL:
        case arrow::Type::UINT8: return Dtype::kUint8;
        case arrow::Type::INT8: return Dtype::kInt8;
        case arrow::Type::UINT16: return Dtype::kUint16;
        case arrow::Type::INT16: return Dtype::kInt16;
        case arrow::Type::HALF_FLOAT: return Dtype::kFloat16;
        case arrow::Type::UINT32: return Dtype::kUint32;
        case arrow::Type::INT32: return Dtype::kInt32;
        case arrow::Type::FLOAT: return Dtype::kFloat32;
        case arrow::Type::UINT64: return Dtype::kUint64;
        case arrow::Type::DATE32:
        case arrow::Type::DATE64:
        case arrow::Type::TIME32:
        case arrow::Type::TIME64:
        case arrow::Type::TIMESTAMP:
        case arrow::Type::DURATION:
        case arrow::Type::INT64: return Dtype::kInt64;
        case arrow::Type::DOUBLE: return Dtype::kFloat64;
        default: return std::nullopt;
    }
}

std::shared_ptr<arrow::DataType> element_type(const std::shared_ptr<arrow::DataType>& type,
                                              std::vector<std::int64_t>& shape) {
    std::shared_ptr<arrow::DataType> inner = type;
    while (inner->id() == arrow::Type::FIXED_SIZE_LIST) {
        shape.push_back(static_cast<const arrow::FixedSizeListType&>(*inner).list_size());
        inner = child_type(*inner);
    }
    return inner;
}

Result<OutputColumn> output_column(const TableColumn& table, const ColumnOptions& options,
                                   bool holds_npy) {
    OutputColumn column{.table = table, .options = options, .info = {}};
    column.info.name = table.name;
    column.info.has_mask = options.nulls == Nulls::kMask;
    TUNE_TRY_VOID(holds_npy ? plan_npy(column) : plan(column, table.type));
    if (!options.shape.empty() && column.kind != ColumnKind::kFixedArray &&
        column.kind != ColumnKind::kNpy)
        return invalid_parameter("column '" + table.name + "' (" + table.type->ToString() +
                                 ") is no list of numbers; it cannot be given a shape");
    if (column.kind != ColumnKind::kNpy) TUNE_TRY_VOID(apply_dtype(options, column.info));
    if (const std::string stored = table.type->ToString(); stored != column.info.encoding)
        column.info.stored = holds_npy ? "npy" : stored;
    return column;
}

}  // namespace tune::loader
