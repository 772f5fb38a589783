// Numbers are stored as they are parsed and converted in one go at the end, so that a row costs no
// dispatch over types.

#include "loader/rows/text/column_builder.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/text/number_text.h"
#include "base/text/text.h"
#include "loader/format/convert_dtype.h"

namespace tune::loader {
namespace {

Dtype stored_dtype(TextKind kind) {
    return kind == TextKind::kReal ? Dtype::kFloat64 : Dtype::kInt64;
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
    text = trimmed(text);
    if (text.starts_with('+')) text.remove_prefix(1);
    const std::optional<Number> found = number_from_text<Number>(text);
    if (found) number = *found;
    return found.has_value();
}

/// Also Python's and JSON's words for what is no number.
bool parse_real(std::string_view text, double& number) {
    if (parse_number(text, number)) return true;
    const std::string lower = lower_ascii(trimmed(text));
    if (lower == "infinity" || lower == "-infinity") {
        number = lower.front() == '-' ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    // Beyond the range of double: from_chars says so, Python gives infinity or zero.
    const auto parsed = std::from_chars(lower.data(), lower.data() + lower.size(), number);
    if (parsed.ec != std::errc::result_out_of_range) return false;
    number = std::strtod(lower.c_str(), nullptr);
    return true;
}

}  // namespace

Result<TextColumn> text_column(std::string name, TextKind kind, const ColumnOptions& options) {
    TextColumn column{name, kind, options};
    column.info.name = std::move(name);
    column.info.has_mask = options.nulls == Nulls::kMask;
    if (!options.shape.empty())
        return invalid_parameter("column '" + column.name +
                                 "' is no list of numbers; it cannot be given a shape");
    if (kind == TextKind::kText || kind == TextKind::kJson) {
        column.info.fixed = false;
        column.info.encoding = kind == TextKind::kText ? "str" : "json";
    } else {
        column.info.dtype = stored_dtype(kind);
        column.info.encoding = dtype_name(column.info.dtype);
        column.info.sample_bytes = dtype_bytes(column.info.dtype);
    }
    TUNE_TRY_VOID(apply_dtype(options, column.info));
    return column;
}

Result<void> ColumnBuilder::append(std::string_view text) {
    const auto refuse = [&](const char* what) {
        return data_loss("column '" + column_.name + "': '" + std::string(text.substr(0, 40)) +
                         "' is no " + what);
    };
    if (column_.kind == TextKind::kInteger) {
        std::int64_t number = 0;
        if (!parse_number(text, number)) return refuse("whole number of 64 bits");
        bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    } else if (column_.kind == TextKind::kReal) {
        double number = 0;
        if (!parse_real(text, number)) return refuse("number");
        bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    } else {
        bytes_ += text;
        offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
    }
    return {};
}

Result<void> ColumnBuilder::add(std::string_view text) {
    valid_.push_back(1);
    return append(text);
}

Result<void> ColumnBuilder::add_null() {
    if (column_.options.nulls == Nulls::kRefuse)
        return invalid_parameter("column '" + column_.name +
                                 "': a null; say what nulls become (a mask, or a value to fill "
                                 "in)");
    valid_.push_back(0);
    const bool is_number = column_.kind == TextKind::kInteger || column_.kind == TextKind::kReal;
    const bool fills = column_.options.nulls == Nulls::kFill;
    return append(fills ? column_.options.fill : is_number ? "0" : "");
}

ColumnBlock ColumnBuilder::finish() {
    ColumnBlock block;
    block.has_mask = column_.info.has_mask;
    auto valid = std::make_shared<const std::vector<std::uint8_t>>(std::move(valid_));
    block.valid = valid->data();
    block.bytes = valid->size();
    if (column_.info.fixed && column_.info.dtype != stored_dtype(column_.kind)) {
        const std::size_t count = bytes_.size() / sizeof(std::int64_t);
        std::string converted(count * column_.info.sample_bytes, '\0');
        converter(stored_dtype(column_.kind), column_.info.dtype)(
            reinterpret_cast<const std::byte*>(bytes_.data()),
            reinterpret_cast<std::byte*>(converted.data()), count);
        bytes_ = std::move(converted);
    }
    auto bytes = std::make_shared<const std::string>(std::move(bytes_));
    block.data = reinterpret_cast<const std::byte*>(bytes->data());
    block.is_fixed = column_.info.fixed;
    block.value_bytes = block.stride = column_.info.sample_bytes;
    block.bytes += bytes->size();
    block.owners = {std::move(valid), std::move(bytes)};
    if (!column_.info.fixed) {
        auto offsets = std::make_shared<const std::vector<std::int64_t>>(std::move(offsets_));
        block.offsets64 = offsets->data();
        block.bytes += offsets->size() * sizeof(std::int64_t);
        block.owners.push_back(std::move(offsets));
    }
    return block;
}

}  // namespace tune::loader
