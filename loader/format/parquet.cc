// Rows of a Parquet file as values of MDS, for `tune-data convert`. Built only where Arrow is.
//
// Arrow decodes record batches of the selected leaf columns; a row is then picked out of each array
// by its type. Texts and bytes are views into the current batch, which is why a row is valid until
// the next one is read; decimals, which have no text of their own, are formatted into texts_, whose
// capacity is reserved per row so that views into it stay. Nulls are refused with row and column:
// MDS has none. parquet-cpp throws in places where Arrow returns a status, so both are caught here.

#include "loader/format/parquet.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/decimal.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tune::loader {
namespace {

Error arrow_error(const arrow::Status& status) {
    const Code code = status.IsIOError() ? Code::kInternalError : Code::kInvalidParameterValue;
    return Error{code, status.message()};
}

std::optional<Dtype> number_dtype(const arrow::DataType& type) {
    switch (type.id()) {
        case arrow::Type::UINT8: return Dtype::kUint8;
        case arrow::Type::INT8: return Dtype::kInt8;
        case arrow::Type::UINT16: return Dtype::kUint16;
        case arrow::Type::INT16: return Dtype::kInt16;
        case arrow::Type::HALF_FLOAT: return Dtype::kFloat16;
        case arrow::Type::UINT32: return Dtype::kUint32;
        case arrow::Type::INT32: return Dtype::kInt32;
        case arrow::Type::FLOAT: return Dtype::kFloat32;
        case arrow::Type::UINT64: return Dtype::kUint64;
        case arrow::Type::INT64: return Dtype::kInt64;
        case arrow::Type::DOUBLE: return Dtype::kFloat64;
        default: return std::nullopt;
    }
}

/// The encoding of a type; empty when there is none.
std::string encoding_of(const arrow::DataType& type) {
    if (const auto dtype = number_dtype(type)) return std::string(dtype_name(*dtype));
    switch (type.id()) {
        case arrow::Type::BOOL: return "uint8";
        case arrow::Type::DATE32:
        case arrow::Type::DATE64:
        case arrow::Type::TIMESTAMP: return "int64";
        case arrow::Type::DECIMAL128:
        case arrow::Type::DECIMAL256: return "str_decimal";
        case arrow::Type::STRING:
        case arrow::Type::LARGE_STRING: return "str";
        case arrow::Type::BINARY:
        case arrow::Type::LARGE_BINARY:
        case arrow::Type::FIXED_SIZE_BINARY: return "bytes";
        case arrow::Type::DICTIONARY:
            return static_cast<const arrow::DictionaryType&>(type).value_type()->id() ==
                           arrow::Type::STRING
                       ? "str"
                       : "";
        case arrow::Type::LIST:
        case arrow::Type::LARGE_LIST:
        case arrow::Type::FIXED_SIZE_LIST: {
            const auto dtype = number_dtype(*type.field(0)->type());
            if (!dtype) return {};
            std::string encoding = "ndarray:" + std::string(dtype_name(*dtype));
            if (type.id() == arrow::Type::FIXED_SIZE_LIST)
                encoding +=
                    ":" +
                    std::to_string(static_cast<const arrow::FixedSizeListType&>(type).list_size());
            return encoding;
        }
        default: return {};
    }
}

/// The leaf columns of a field: the file counts those, not the fields.
void collect_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
    if (field.children.empty()) leaves.push_back(field.column_index);
    for (const parquet::arrow::SchemaField& child : field.children) collect_leaves(child, leaves);
}

template <class ArrayType>
Value number_at(const arrow::Array& array, std::int64_t row) {
    const auto number = static_cast<const ArrayType&>(array).Value(row);
    if constexpr (std::is_floating_point_v<decltype(number)>)
        return static_cast<double>(number);
    else if constexpr (std::is_unsigned_v<decltype(number)>)
        return static_cast<std::uint64_t>(number);
    else
        return static_cast<std::int64_t>(number);
}

Value bytes_value(std::string_view view) {
    return std::as_bytes(std::span(view.data(), view.size()));
}

/// The elements begin..end-1 of `elements` as a one-dimensional array.
Result<Value> list_value(const arrow::Array& elements, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; elements.null_count() > 0 && i < end; ++i)
        if (elements.IsNull(i))
            return Error{Code::kInvalidParameterValue, "a null in a list; MDS has no nulls"};
    const Dtype dtype = *number_dtype(*elements.type());
    const auto width = static_cast<std::int64_t>(dtype_bytes(dtype));
    const auto* data = reinterpret_cast<const std::byte*>(elements.data()->buffers[1]->data()) +
                       (elements.offset() + begin) * width;
    return Value(ArrayView{
        dtype, {end - begin}, std::span(data, static_cast<std::size_t>((end - begin) * width))});
}

class ParquetReader final : public TableReader {
public:
    explicit ParquetReader(std::unique_ptr<parquet::arrow::FileReader> reader)
        : reader_(std::move(reader)) {}

    [[nodiscard]] arrow::Status read_schema() {
        ARROW_RETURN_NOT_OK(reader_->GetSchema(&schema_));
        for (int i = 0; i < schema_->num_fields(); ++i) {
            names_.push_back(schema_->field(i)->name());
            selected_.push_back(i);
        }
        row_count_ = reader_->parquet_reader()->metadata()->num_rows();
        return arrow::Status::OK();
    }

    [[nodiscard]] const std::vector<std::string>& column_names() const override { return names_; }

    [[nodiscard]] Result<std::vector<std::string>> natural_encodings() override {
        std::vector<std::string> encodings;
        for (const auto& field : schema_->fields())
            encodings.push_back(encoding_of(*field->type()));
        return encodings;
    }

    [[nodiscard]] Result<std::int64_t> row_count() override { return row_count_; }

    [[nodiscard]] Result<void> select(const std::vector<std::size_t>& columns) override {
        selected_.clear();
        for (const std::size_t column : columns) {
            const auto& field = schema_->field(static_cast<int>(column));
            if (encoding_of(*field->type()).empty())
                return Error{Code::kInvalidParameterValue,
                             "column '" + field->name() + "' has the type " +
                                 field->type()->ToString() +
                                 ", which no encoding takes; leave it out with --columns"};
            selected_.push_back(static_cast<int>(column));
        }
        return {};
    }

    [[nodiscard]] Result<bool> next(std::vector<Value>& row) override {
        try {
            while (!batch_ || row_ + 1 >= batch_->num_rows()) {
                const arrow::Status status = next_batch();
                if (!status.ok()) return arrow_error(status);
                if (!batch_) return false;
            }
        } catch (const parquet::ParquetException& error) {
            return Error{Code::kInvalidParameterValue, error.what()};
        }
        ++row_;
        ++rows_given_;
        row.clear();
        texts_.clear();
        texts_.reserve(selected_.size());
        for (const int i : batch_columns_) {
            Result<Value> value = value_at(*batch_->column(i));
            if (!value) {
                Error error = std::move(value).error();
                error.message =
                    place() + ", column '" + batch_->column_name(i) + "': " + error.message;
                return error;
            }
            row.push_back(*std::move(value));
        }
        return true;
    }

    [[nodiscard]] std::string place() const override {
        return "row " + std::to_string(rows_given_);
    }

    [[nodiscard]] double progress() const override {
        return row_count_ == 0 ? 1
                               : static_cast<double>(rows_given_) / static_cast<double>(row_count_);
    }

private:
    /// The next batch with rows into batch_; nullptr at the end.
    arrow::Status next_batch() {
        if (!batches_) {
            std::vector<int> groups(static_cast<std::size_t>(reader_->num_row_groups()));
            for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
            // Batches hold each field once, in the order of the file.
            std::vector<int> fields = selected_;
            std::sort(fields.begin(), fields.end());
            fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
            std::vector<int> leaves;
            for (const int field : fields)
                collect_leaves(reader_->manifest().schema_fields[static_cast<std::size_t>(field)],
                               leaves);
            for (const int field : selected_)
                batch_columns_.push_back(static_cast<int>(
                    std::lower_bound(fields.begin(), fields.end(), field) - fields.begin()));
            ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader(groups, leaves));
        }
        row_ = -1;
        return batches_->ReadNext(&batch_);
    }

    Result<Value> value_at(const arrow::Array& array) {
        if (array.IsNull(row_))
            return Error{Code::kInvalidParameterValue,
                         "a null; MDS has no nulls: replace it by a value before converting"};
        switch (array.type_id()) {
            case arrow::Type::UINT8: return number_at<arrow::UInt8Array>(array, row_);
            case arrow::Type::INT8: return number_at<arrow::Int8Array>(array, row_);
            case arrow::Type::UINT16: return number_at<arrow::UInt16Array>(array, row_);
            case arrow::Type::INT16: return number_at<arrow::Int16Array>(array, row_);
            case arrow::Type::UINT32: return number_at<arrow::UInt32Array>(array, row_);
            case arrow::Type::INT32: return number_at<arrow::Int32Array>(array, row_);
            case arrow::Type::UINT64: return number_at<arrow::UInt64Array>(array, row_);
            case arrow::Type::INT64: return number_at<arrow::Int64Array>(array, row_);
            case arrow::Type::FLOAT: return number_at<arrow::FloatArray>(array, row_);
            case arrow::Type::DOUBLE: return number_at<arrow::DoubleArray>(array, row_);
            case arrow::Type::DATE32: return number_at<arrow::Date32Array>(array, row_);
            case arrow::Type::DATE64: return number_at<arrow::Date64Array>(array, row_);
            case arrow::Type::TIMESTAMP: return number_at<arrow::TimestampArray>(array, row_);
            case arrow::Type::HALF_FLOAT:
                return Value(
                    double_from_half(static_cast<const arrow::HalfFloatArray&>(array).Value(row_)));
            case arrow::Type::BOOL:
                return Value(
                    std::int64_t{static_cast<const arrow::BooleanArray&>(array).Value(row_)});
            default: return long_value_at(array);
        }
    }

    Result<Value> long_value_at(const arrow::Array& array) {
        switch (array.type_id()) {
            case arrow::Type::STRING:
                return Value(static_cast<const arrow::StringArray&>(array).GetView(row_));
            case arrow::Type::LARGE_STRING:
                return Value(static_cast<const arrow::LargeStringArray&>(array).GetView(row_));
            case arrow::Type::BINARY:
                return bytes_value(static_cast<const arrow::BinaryArray&>(array).GetView(row_));
            case arrow::Type::LARGE_BINARY:
                return bytes_value(
                    static_cast<const arrow::LargeBinaryArray&>(array).GetView(row_));
            case arrow::Type::FIXED_SIZE_BINARY:
                return bytes_value(
                    static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(row_));
            case arrow::Type::DECIMAL128:
                texts_.push_back(
                    static_cast<const arrow::Decimal128Array&>(array).FormatValue(row_));
                return Value(std::string_view(texts_.back()));
            case arrow::Type::DECIMAL256:
                texts_.push_back(
                    static_cast<const arrow::Decimal256Array&>(array).FormatValue(row_));
                return Value(std::string_view(texts_.back()));
            case arrow::Type::DICTIONARY: {
                const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
                const auto& words = static_cast<const arrow::StringArray&>(*coded.dictionary());
                return Value(words.GetView(coded.GetValueIndex(row_)));
            }
            case arrow::Type::LIST: {
                const auto& list = static_cast<const arrow::ListArray&>(array);
                return list_value(*list.values(), list.value_offset(row_),
                                  list.value_offset(row_ + 1));
            }
            case arrow::Type::LARGE_LIST: {
                const auto& list = static_cast<const arrow::LargeListArray&>(array);
                return list_value(*list.values(), list.value_offset(row_),
                                  list.value_offset(row_ + 1));
            }
            case arrow::Type::FIXED_SIZE_LIST: {
                const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
                return list_value(*list.values(), list.value_offset(row_),
                                  list.value_offset(row_) + list.value_length());
            }
            default:
                return Error{Code::kInvalidParameterValue,
                             "its type " + array.type()->ToString() + " cannot be stored"};
        }
    }

    std::unique_ptr<parquet::arrow::FileReader> reader_;
    std::shared_ptr<arrow::Schema> schema_;
    std::vector<std::string> names_;
    std::vector<int> selected_;
    std::vector<int> batch_columns_;  // where each selected column stands in a batch
    std::int64_t row_count_ = 0;

    std::unique_ptr<arrow::RecordBatchReader> batches_;
    std::shared_ptr<arrow::RecordBatch> batch_;
    std::int64_t row_ = -1;  // in batch_
    std::int64_t rows_given_ = 0;
    std::vector<std::string> texts_;  // of decimals in the row given last
};

arrow::Result<std::unique_ptr<TableReader>> open_checked(const std::filesystem::path& path) {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path.string()));
    ARROW_ASSIGN_OR_RAISE(auto reader,
                          parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
    auto table = std::make_unique<ParquetReader>(std::move(reader));
    ARROW_RETURN_NOT_OK(table->read_schema());
    return table;
}

}  // namespace

bool can_read_parquet() {
    return true;
}

Result<std::unique_ptr<TableReader>> open_parquet(const std::filesystem::path& path) {
    try {
        arrow::Result<std::unique_ptr<TableReader>> table = open_checked(path);
        if (table.ok()) return *std::move(table);
        return arrow_error(table.status());
    } catch (const parquet::ParquetException& error) {
        return Error{Code::kInvalidParameterValue, error.what()};
    }
}

}  // namespace tune::loader
