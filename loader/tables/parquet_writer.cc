// Arrays are built over the batch's own memory: fixed columns and offsets need no copy but the one
// of variable offsets from uint64 to int64.

#include "loader/tables/parquet_writer.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/bit_util.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

namespace tune::loader {
namespace {

using BufferPtr = std::shared_ptr<arrow::Buffer>;

std::shared_ptr<arrow::DataType> number_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::kUint8: return arrow::uint8();
        case Dtype::kInt8: return arrow::int8();
        case Dtype::kUint16: return arrow::uint16();
        case Dtype::kInt16: return arrow::int16();
        case Dtype::kFloat16: return arrow::float16();
        case Dtype::kUint32: return arrow::uint32();
        case Dtype::kInt32: return arrow::int32();
        case Dtype::kFloat32: return arrow::float32();
        case Dtype::kUint64: return arrow::uint64();
        case Dtype::kInt64: return arrow::int64();
        case Dtype::kFloat64: return arrow::float64();
    }
    return arrow::binary();
}

bool is_list(const ColumnInfo& column) {
    return column.encoding.starts_with("list:");
}

std::shared_ptr<arrow::DataType> type_of(const ColumnInfo& column) {
    if (column.fixed && column.shape.empty()) return number_type(column.dtype);
    if (column.fixed)
        return arrow::fixed_size_list(
            number_type(column.dtype),
            static_cast<std::int32_t>(column.sample_bytes / dtype_bytes(column.dtype)));
    if (is_list(column)) return arrow::large_list(number_type(column.dtype));
    if (column.encoding.starts_with("str") || column.encoding == "json") return arrow::large_utf8();
    return arrow::large_binary();
}

BufferPtr view(const void* data, std::size_t bytes) {
    return std::make_shared<arrow::Buffer>(static_cast<const std::uint8_t*>(data),
                                           static_cast<std::int64_t>(bytes));
}

arrow::Result<BufferPtr> validity(const Column& column, std::size_t count) {
    if (!column.valid) return BufferPtr();
    ARROW_ASSIGN_OR_RAISE(auto bits, arrow::AllocateBitmap(static_cast<std::int64_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
        arrow::bit_util::SetBitTo(bits->mutable_data(), static_cast<std::int64_t>(i),
                                  column.valid[i] != 0);
    return BufferPtr(std::move(bits));
}

std::shared_ptr<arrow::Array> numbers(const Column& column, std::size_t bytes) {
    const auto length = static_cast<std::int64_t>(bytes / dtype_bytes(column.info->dtype));
    return arrow::MakeArray(arrow::ArrayData::Make(number_type(column.info->dtype), length,
                                                   {nullptr, view(column.data, bytes)}, 0));
}

/// Offsets in units of the column's elements.
arrow::Result<BufferPtr> offsets(const Column& column, std::size_t count, std::size_t unit) {
    ARROW_ASSIGN_OR_RAISE(
        auto buffer,
        arrow::AllocateBuffer(static_cast<std::int64_t>((count + 1) * sizeof(std::int64_t))));
    auto* out = reinterpret_cast<std::int64_t*>(buffer->mutable_data());
    for (std::size_t i = 0; i <= count; ++i)
        out[i] = static_cast<std::int64_t>(column.offsets[i] / unit);
    return BufferPtr(std::move(buffer));
}

arrow::Result<std::shared_ptr<arrow::Array>> array_of(const Column& column, std::size_t count) {
    const ColumnInfo& info = *column.info;
    const auto length = static_cast<std::int64_t>(count);
    ARROW_ASSIGN_OR_RAISE(auto valid, validity(column, count));
    if (info.fixed && info.shape.empty())
        return arrow::MakeArray(arrow::ArrayData::Make(
            type_of(info), length, {valid, view(column.data, count * info.sample_bytes)}));
    if (info.fixed) {
        const auto elements = numbers(column, count * info.sample_bytes);
        return arrow::MakeArray(
            arrow::ArrayData::Make(type_of(info), length, {valid}, {elements->data()}));
    }
    const std::size_t unit = is_list(info) ? dtype_bytes(info.dtype) : 1;
    ARROW_ASSIGN_OR_RAISE(auto ends, offsets(column, count, unit));
    if (is_list(info)) {
        const auto elements = numbers(column, column.offsets[count]);
        return arrow::MakeArray(
            arrow::ArrayData::Make(type_of(info), length, {valid, ends}, {elements->data()}));
    }
    return arrow::MakeArray(arrow::ArrayData::Make(
        type_of(info), length, {valid, ends, view(column.data, column.offsets[count])}));
}

Error write_error(const arrow::Status& status, const std::filesystem::path& path) {
    return Error{Code::kInternalError, status.message(), path.string()};
}

class ArrowWriter final : public ParquetWriter {
public:
    ArrowWriter(std::filesystem::path path, const std::vector<ColumnInfo>& columns)
        : path_(std::move(path)) {
        arrow::FieldVector fields;
        for (const ColumnInfo& column : columns)
            fields.push_back(arrow::field(column.name, type_of(column), column.has_mask));
        schema_ = arrow::schema(std::move(fields));
    }

    arrow::Status open() {
        ARROW_ASSIGN_OR_RAISE(file_, arrow::io::FileOutputStream::Open(path_.string()));
        const auto properties =
            parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
        const auto arrow_properties =
            parquet::ArrowWriterProperties::Builder().store_schema()->build();
        ARROW_ASSIGN_OR_RAISE(
            writer_, parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), file_,
                                                      properties, arrow_properties));
        return arrow::Status::OK();
    }

    Result<void> write(const std::vector<Column>& columns, std::size_t count) override {
        const arrow::Status status = write_group(columns, count);
        if (!status.ok()) return write_error(status, path_);
        return {};
    }

    Result<void> finish() override {
        arrow::Status status = writer_->Close();
        if (status.ok()) status = file_->Close();
        if (!status.ok()) return write_error(status, path_);
        return {};
    }

private:
    arrow::Status write_group(const std::vector<Column>& columns, std::size_t count) {
        arrow::ArrayVector arrays;
        for (const Column& column : columns) {
            ARROW_ASSIGN_OR_RAISE(auto array, array_of(column, count));
            arrays.push_back(std::move(array));
        }
        const auto length = static_cast<std::int64_t>(count);
        const auto table = arrow::Table::Make(schema_, arrays, length);
        return writer_->WriteTable(*table, length);
    }

    std::filesystem::path path_;
    std::shared_ptr<arrow::Schema> schema_;
    std::shared_ptr<arrow::io::FileOutputStream> file_;
    std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

}  // namespace

Result<std::unique_ptr<ParquetWriter>> open_parquet_writer(const std::filesystem::path& path,
                                                           const std::vector<ColumnInfo>& columns) {
    auto writer = std::make_unique<ArrowWriter>(path, columns);
    const arrow::Status status = writer->open();
    if (!status.ok()) return write_error(status, path);
    return std::unique_ptr<ParquetWriter>(std::move(writer));
}

}  // namespace tune::loader
