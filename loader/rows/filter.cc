// Values are compared in the widest common type: integers as int64, an integer with a real as
// double, text by its bytes. A comparison of text with a number never matches; the readers refuse
// such a filter when they know the column's type.

#include "loader/rows/filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <optional>

#include "base/text/number_text.h"
#include "base/text/text.h"

namespace tune::loader {
namespace {

constexpr std::array<std::pair<std::string_view, FilterOp>, 9> kOperators = {{
    {"==", FilterOp::kEqual},
    {"!=", FilterOp::kNotEqual},
    {"<=", FilterOp::kLessEqual},
    {">=", FilterOp::kGreaterEqual},
    {"=", FilterOp::kEqual},
    {"<", FilterOp::kLess},
    {">", FilterOp::kGreater},
    {" not in ", FilterOp::kNotIn},
    {" in ", FilterOp::kIn},
}};

FilterValue parse_value(std::string_view text) {
    text = trimmed(text);
    const bool is_quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
                           text.back() == text.front();
    if (is_quoted) return std::string(text.substr(1, text.size() - 2));
    if (text == "true") return true;
    if (text == "false") return false;
    const char* const end = text.data() + text.size();
    std::int64_t integer = 0;
    if (const auto parsed = std::from_chars(text.data(), end, integer);
        parsed.ec == std::errc{} && parsed.ptr == end)
        return integer;
    double real = 0;
    if (const auto parsed = std::from_chars(text.data(), end, real);
        parsed.ec == std::errc{} && parsed.ptr == end)
        return real;
    return std::string(text);
}

/// unordered: NaN, or values of different kinds.
std::partial_ordering compare(const FilterValue& a, const FilterValue& b) {
    if (const auto* text = std::get_if<std::string>(&a)) {
        const auto* other = std::get_if<std::string>(&b);
        return other ? std::partial_ordering(*text <=> *other) : std::partial_ordering::unordered;
    }
    if (std::holds_alternative<std::string>(b)) return std::partial_ordering::unordered;
    const auto is_real = [](const FilterValue& value) {
        return std::holds_alternative<double>(value);
    };
    const auto integer_of = [](const FilterValue& value) {
        const auto* integer = std::get_if<std::int64_t>(&value);
        return integer ? *integer : static_cast<std::int64_t>(std::get<bool>(value));
    };
    const auto real_of = [&](const FilterValue& value) {
        return is_real(value) ? std::get<double>(value) : static_cast<double>(integer_of(value));
    };
    if (is_real(a) || is_real(b)) return real_of(a) <=> real_of(b);
    return integer_of(a) <=> integer_of(b);
}

std::string value_text(const FilterValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return number_text(*real);
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    return "'" + std::get<std::string>(value) + "'";
}

std::string_view op_text(FilterOp op) {
    for (const auto& [text, known] : kOperators)
        if (known == op) return trimmed(text);
    return "?";
}

}  // namespace

Result<Filter> parse_filter(std::string_view text) {
    std::optional<Filter> found;
    std::size_t found_at = std::string_view::npos;
    std::size_t rest_at = 0;
    for (const auto& [word, op] : kOperators) {
        const std::size_t at = text.find(word);
        if (at == std::string_view::npos || at >= found_at) continue;
        found = Filter{.column = std::string(trimmed(text.substr(0, at))), .op = op};
        found_at = at;
        rest_at = at + word.size();
    }
    if (!found || found->column.empty())
        return invalid_parameter("'" + std::string(text) +
                                 "' is no filter; write for example 'age >= 18' or 'split in a,b'");
    std::string_view rest = text.substr(rest_at);
    if (found->op != FilterOp::kIn && found->op != FilterOp::kNotIn) {
        found->values.push_back(parse_value(rest));
        return *std::move(found);
    }
    while (true) {
        const std::size_t comma = rest.find(',');
        found->values.push_back(parse_value(rest.substr(0, comma)));
        if (comma == std::string_view::npos) return *std::move(found);
        rest.remove_prefix(comma + 1);
    }
}

std::optional<FilterOp> filter_op_from_name(std::string_view name) {
    for (const auto& [text, op] : kOperators)
        if (trimmed(text) == name) return op;
    return std::nullopt;
}

std::string filter_text(const Filter& filter) {
    std::string text = filter.column + " " + std::string(op_text(filter.op)) + " ";
    for (std::size_t i = 0; i < filter.values.size(); ++i)
        text += (i == 0 ? "" : ",") + value_text(filter.values[i]);
    return text;
}

bool matches(const Filter& filter, const FilterValue& stored) {
    const auto equals = [&](const FilterValue& value) { return compare(stored, value) == 0; };
    if (filter.op == FilterOp::kIn)
        return std::any_of(filter.values.begin(), filter.values.end(), equals);
    if (filter.op == FilterOp::kNotIn)
        return std::none_of(filter.values.begin(), filter.values.end(), equals);
    const std::partial_ordering order = compare(stored, filter.values.front());
    switch (filter.op) {
        case FilterOp::kEqual: return order == 0;
        case FilterOp::kNotEqual: return order != 0;
        case FilterOp::kLess: return order < 0;
        case FilterOp::kLessEqual: return order <= 0;
        case FilterOp::kGreater: return order > 0;
        case FilterOp::kGreaterEqual: return order >= 0;
        case FilterOp::kIn:
        case FilterOp::kNotIn: break;
    }
    return true;
}

bool may_match(const Filter& filter, const FilterValue& low, const FilterValue& high) {
    const auto may_equal = [&](const FilterValue& value) {
        return !(compare(value, low) < 0) && !(compare(value, high) > 0);
    };
    switch (filter.op) {
        case FilterOp::kEqual: return may_equal(filter.values.front());
        case FilterOp::kNotEqual: {
            const FilterValue& value = filter.values.front();
            return !(compare(low, value) == 0 && compare(high, value) == 0);
        }
        case FilterOp::kLess: return !(compare(low, filter.values.front()) >= 0);
        case FilterOp::kLessEqual: return !(compare(low, filter.values.front()) > 0);
        case FilterOp::kGreater: return !(compare(high, filter.values.front()) <= 0);
        case FilterOp::kGreaterEqual: return !(compare(high, filter.values.front()) < 0);
        case FilterOp::kIn:
            return std::any_of(filter.values.begin(), filter.values.end(), may_equal);
        case FilterOp::kNotIn: return true;
    }
    return true;
}

}  // namespace tune::loader
