// Reads go to the source as they come. An error of ours travels through Arrow as the detail of a
// Status, so that a time-out of a store comes out as that and not as a damaged file.

#include "loader/tables/arrow_file.h"

#include <arrow/buffer.h>
#include <arrow/result.h>

#include <utility>

namespace tune::loader {
namespace {

/// Carries an Error of ours through Arrow.
class ErrorDetail final : public arrow::StatusDetail {
public:
    explicit ErrorDetail(Error error) : error_(std::move(error)) {}
    [[nodiscard]] const char* type_id() const override { return "tune::Error"; }
    [[nodiscard]] std::string ToString() const override { return error_.text(); }
    [[nodiscard]] const Error& error() const { return error_; }

private:
    Error error_;
};

class SourceFile final : public arrow::io::RandomAccessFile {
public:
    SourceFile(std::shared_ptr<const ObjectSource> source, ObjectInfo object)
        : source_(std::move(source)), object_(std::move(object)) {}

    arrow::Status Close() override {
        is_closed_ = true;
        return arrow::Status::OK();
    }
    [[nodiscard]] bool closed() const override { return is_closed_; }
    [[nodiscard]] arrow::Result<std::int64_t> Tell() const override { return position_; }
    arrow::Status Seek(std::int64_t position) override {
        position_ = position;
        return arrow::Status::OK();
    }
    arrow::Result<std::int64_t> GetSize() override {
        return static_cast<std::int64_t>(object_.bytes);
    }

    arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes,
                                       void* out) override {
        const auto size = static_cast<std::int64_t>(object_.bytes);
        if (position < 0 || bytes < 0 || position > size)
            return arrow::Status::Invalid("a read beyond the end of the file, at byte ", position);
        bytes = std::min(bytes, size - position);
        const Result<void> read =
            source_->read(object_, static_cast<std::uint64_t>(position),
                          {static_cast<std::byte*>(out), static_cast<std::size_t>(bytes)});
        if (read) return bytes;
        return arrow::Status(arrow::StatusCode::IOError, read.error().text(),
                             std::make_shared<ErrorDetail>(read.error()));
    }

    arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position,
                                                         std::int64_t bytes) override {
        // A damaged footer may ask for any number of bytes; the file bounds what is allocated.
        const auto size = static_cast<std::int64_t>(object_.bytes);
        if (position < 0 || bytes < 0 || position > size)
            return arrow::Status::Invalid("a read beyond the end of the file, at byte ", position);
        bytes = std::min(bytes, size - position);
        ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(bytes));
        ARROW_RETURN_NOT_OK(ReadAt(position, bytes, buffer->mutable_data()));
        return std::shared_ptr<arrow::Buffer>(std::move(buffer));
    }

    arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override {
        ARROW_ASSIGN_OR_RAISE(const std::int64_t read, ReadAt(position_, bytes, out));
        position_ += read;
        return read;
    }
    arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override {
        ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
        position_ += buffer->size();
        return buffer;
    }

private:
    std::shared_ptr<const ObjectSource> source_;
    ObjectInfo object_;
    std::int64_t position_ = 0;
    bool is_closed_ = false;
};

}  // namespace

std::shared_ptr<arrow::io::RandomAccessFile> make_arrow_file(
    std::shared_ptr<const ObjectSource> source, ObjectInfo object) {
    return std::make_shared<SourceFile>(std::move(source), std::move(object));
}

Error arrow_error(const arrow::Status& status) {
    if (const auto* detail = dynamic_cast<const ErrorDetail*>(status.detail().get()))
        return detail->error();
    if (status.IsOutOfMemory()) return Error{Code::kResourceExhausted, status.message()};
    if (status.IsNotImplemented()) return Error{Code::kNotImplemented, status.message()};
    return data_loss(status.message());
}

Error in_file(Error error, const ObjectSource& source, const std::string& path) {
    if (error.message.find(path) == std::string::npos || path.empty())
        error.context = (path.empty() ? "'" + source.url() : "'" + source.url() + "/" + path) +
                        "'" + (error.context.empty() ? "" : ", " + error.context);
    return error;
}

}  // namespace tune::loader
