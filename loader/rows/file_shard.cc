// Sizes are known from a listing or an archive's headers, so a batch makes its room first and the
// payloads are read straight into their places.

#include "loader/rows/file_shard.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/text/text.h"
#include "loader/format/convert_dtype.h"

namespace tune::loader {
namespace {

constexpr std::uint64_t kNumberBytesMax = 32;

std::string_view fill_of(const FileColumn& column) {
    return column.options.nulls == Nulls::kFill ? std::string_view(column.options.fill)
                                                : std::string_view{};
}

}  // namespace

Result<void> FileShard::read(const Extent& extent, std::span<std::byte> bytes) const {
    if (mapped) {
        const std::span<const std::byte> file = mapped->bytes();
        if (extent.offset > file.size() || bytes.size() > file.size() - extent.offset)
            return data_loss("'" + source->url() + "/" + objects[extent.object].path +
                             "' has become shorter since it was opened");
        if (!bytes.empty()) std::memcpy(bytes.data(), file.data() + extent.offset, bytes.size());
        return {};
    }
    return source->read(objects[extent.object], extent.offset, bytes);
}

void FileShard::payload_sizes(std::size_t c, const RowCopies& rows,
                              std::span<std::uint64_t> sizes) const {
    const FileColumn& column = columns[c];
    for (const RowCopy& row : rows)
        sizes[row.to] = is_missing(column, row.row) ? fill_of(column).size()
                        : !column.extents.empty()   ? column.extents[row.row].bytes
                                                    : column.texts[row.row].size();
}

Result<void> FileShard::copy_number(const FileColumn& column, const RowCopy& row,
                                    std::byte* target) const {
    std::int64_t number = 0;
    std::string text(fill_of(column));
    const bool has_text = !column.extents.empty();
    if (has_text && !is_missing(column, row.row)) {
        const Extent& extent = column.extents[row.row];
        text.resize(static_cast<std::size_t>(std::min(extent.bytes, kNumberBytesMax)));
        TUNE_TRY_VOID(read(extent, std::as_writable_bytes(std::span(text.data(), text.size()))));
    }
    if (!has_text) {
        number = column.numbers[row.row];
    } else if (!text.empty()) {
        const std::string_view digits = trimmed(text);
        const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size())
            return data_loss("'" + source->url() + "/" + objects.front().path + "', row " +
                             std::to_string(row.row) + ", column '" + column.info.name + "': '" +
                             text + "' is no whole number");
    }
    converter(Dtype::kInt64, column.info.dtype)(reinterpret_cast<const std::byte*>(&number), target,
                                                1);
    return {};
}

Result<void> FileShard::copy(std::size_t c, const RowCopies& rows,
                             BatchSlot::ColumnBuffer& target) const {
    const FileColumn& column = columns[c];
    for (const RowCopy& row : rows) {
        const bool is_null = is_missing(column, row.row);
        if (is_null && column.options.nulls == Nulls::kRefuse)
            return invalid_parameter("'" + source->url() + "/" + objects.front().path + "': row " +
                                     std::to_string(row.row) + " has no '" + column.info.name +
                                     "'; say what nulls become (a mask, or a value to fill in)");
        if (column.info.has_mask) target.valid[row.to] = is_null ? 0 : 1;
        if (column.info.fixed) {
            TUNE_TRY_VOID(
                copy_number(column, row, target.data.data() + row.to * column.info.sample_bytes));
            continue;
        }
        std::byte* const to = target.data.data() + target.offsets[row.to];
        if (!is_null && !column.extents.empty()) {
            const Extent& extent = column.extents[row.row];
            TUNE_TRY_VOID(read(extent, {to, static_cast<std::size_t>(extent.bytes)}));
            continue;
        }
        const std::string_view text =
            is_null ? fill_of(column) : std::string_view(column.texts[row.row]);
        if (!text.empty()) std::memcpy(to, text.data(), text.size());
    }
    return {};
}

Result<FileColumn> file_column(const DatasetOptions& options, std::string name,
                               std::string encoding) {
    FileColumn column{.options = options_of(options, name)};
    column.info.name = std::move(name);
    column.info.has_mask = column.options.nulls == Nulls::kMask;
    column.info.fixed = encoding == "int64";
    column.info.encoding = std::move(encoding);
    if (column.info.fixed) {
        column.info.dtype = Dtype::kInt64;
        column.info.sample_bytes = sizeof(std::int64_t);
    }
    TUNE_TRY_VOID(apply_dtype(column.options, column.info));
    return column;
}

std::string encoding_of_extension(std::string_view extension) {
    if (extension == "jpg" || extension == "jpeg") return "jpeg";
    if (extension == "png") return "png";
    if (extension == "json") return "json";
    if (extension == "txt" || extension == "text" || extension == "transcript") return "str";
    if (extension == "cls" || extension == "cls2" || extension == "index") return "int64";
    return "bytes";
}

}  // namespace tune::loader
