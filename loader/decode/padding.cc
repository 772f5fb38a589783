#include "loader/decode/padding.h"

#include <algorithm>
#include <cstring>

#include "base/text/counted.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kLengthMax = std::int64_t{1} << 28;

/// A column of `length` elements in the place of `stored`.
ColumnInfo column_of(const ColumnInfo& stored, std::string name, Dtype dtype, std::int64_t length) {
    ColumnInfo column = stored;
    column.name = std::move(name);
    column.fixed = true;
    column.dtype = dtype;
    column.shape = {length};
    column.encoding = "ndarray:" + std::string(dtype_name(dtype)) + ":" + std::to_string(length);
    column.stored = stored.encoding;
    column.sample_bytes = dtype_bytes(dtype) * static_cast<std::size_t>(length);
    return column;
}

}  // namespace

Result<Padding> Padding::make(const PadOptions& options, const ColumnInfo& stored) {
    const auto refuse = [&](const std::string& what) {
        return invalid_parameter("column '" + stored.name + "': " + what);
    };
    if (options.length < 1 || options.length > kLengthMax)
        return refuse("a padded length must lie in 1.." + std::to_string(kLengthMax) + ", it is " +
                      std::to_string(options.length));
    const std::string_view encoding = stored.encoding;
    const bool is_bytes = encoding == "bytes" || encoding == "str";
    Padding made;
    made.options_ = options;
    Dtype dtype = stored.dtype;
    if (!stored.fixed && encoding.starts_with("ndarray:")) {
        TUNE_TRY(array, parse_encoding(encoding));
        if (!array.dtype) return refuse("its arrays state no type of elements");
        dtype = *array.dtype;
        made.array_ = std::move(array);
    } else if (stored.fixed || !stored.shape.empty() ||
               (!is_bytes && !encoding.starts_with("list:"))) {
        return refuse("(" + stored.encoding +
                      ") holds no values of varying length that could be "
                      "padded; lists, arrays of one dimension, bytes and str can");
    }
    if (options.bytes_as) {
        if (!is_bytes) return refuse("bytes_as is for bytes; it holds " + stored.encoding);
        dtype = *options.bytes_as;
    }
    if (auto added = append_element(dtype, Value(options.value), made.fill_); !added)
        return refuse("the value to fill up with is no " + std::string(dtype_name(dtype)) + ": " +
                      added.error().message);
    made.column_ = column_of(stored, stored.name, dtype, options.length);
    made.mask_ = column_of(stored, stored.name + "_mask", Dtype::kUint8, options.length);
    made.mask_.has_mask = false;
    return made;
}

Result<void> Padding::apply(std::span<const std::byte> stored, std::byte* to,
                            std::byte* mask) const {
    if (array_) {
        TUNE_TRY(array, decode_array(*array_, stored));
        stored = array.bytes;
    }
    const std::size_t element = fill_.size();
    if (stored.size() % element != 0)
        return Error{Code::kDataLoss, std::to_string(stored.size()) +
                                          " bytes are no whole number "
                                          "of elements of " +
                                          std::to_string(element) + " bytes"};
    const auto length = static_cast<std::size_t>(options_.length);
    const std::size_t count = stored.size() / element;
    const std::size_t kept = std::min(count, length);
    if (kept < count && !options_.cuts)
        return invalid_parameter("it has " + counted(static_cast<std::int64_t>(count), "element") +
                                 ", more than the padded length " + std::to_string(length));
    const std::size_t empty = length - kept;
    const std::size_t first_kept = options_.at_start ? count - kept : 0;
    const std::size_t kept_at = options_.at_start ? empty : 0;
    const std::size_t empty_at = options_.at_start ? 0 : kept;
    if (kept > 0)
        std::memcpy(to + kept_at * element, stored.data() + first_kept * element, kept * element);
    for (std::size_t i = 0; i < empty; ++i)
        std::memcpy(to + (empty_at + i) * element, fill_.data(), element);
    std::memset(mask + kept_at, 1, kept);
    std::memset(mask + empty_at, 0, empty);
    return {};
}

}  // namespace tune::loader
