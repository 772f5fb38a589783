// Parses the options for columns and packs and resolves them against the columns of the table.
// Encodings that nobody gave are asked of the table only if some column needs one, because finding
// them reads the whole file.

#include "loader/tools/convert/column_plan.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "loader/format/mds/encoding.h"

namespace tune::loader {
namespace {

using Names = std::vector<std::string>;

/// Columns that one pack may take; an image of 1024 x 1024 in CSV is already unusual.
constexpr std::size_t kPackedColumnsMax = 1 << 20;

Names split(std::string_view text, char separator) {
    Names parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.emplace_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

bool is_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Cuts "a:int,b:ndarray:uint8:8,8" at the commas that do not belong to a shape.
Names split_columns(const Names& options) {
    Names columns;
    for (const std::string& option : options)
        for (std::string& part : split(option, ',')) {
            const bool continues_shape =
                !columns.empty() && is_digits(part) &&
                std::count(columns.back().begin(), columns.back().end(), ':') >= 3;
            if (continues_shape)
                columns.back() += "," + part;
            else
                columns.push_back(std::move(part));
        }
    return columns;
}

Result<std::size_t> find_column(std::string_view option, std::string_view name,
                                const Names& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    std::string message =
        std::string(option) + ": the table has no column '" + std::string(name) + "'; it has";
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 12); ++i)
        message += " " + names[i];
    return invalid_parameter(message + (names.size() > 12 ? " ..." : ""));
}

/// "p0..p63" as the names between; the number's leading zeros are kept.
Result<Names> expand_range(std::string_view option, std::string_view first, std::string_view last) {
    const auto number_at = [](std::string_view text) {
        return text.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
    };
    const std::size_t cut = number_at(first);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    const auto read = [](std::string_view digits, std::uint64_t& number) {
        const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size();
    };
    if (number_at(last) != cut || first.substr(0, cut) != last.substr(0, cut) ||
        !read(first.substr(cut), begin) || !read(last.substr(cut), end) || begin > end ||
        end - begin >= kPackedColumnsMax)
        return invalid_parameter(std::string(option) + ": '" + std::string(first) + ".." +
                                 std::string(last) +
                                 "' is not a range of columns; write for example p0..p63");
    const std::size_t width = first[cut] == '0' && first.size() > cut + 1 ? first.size() - cut : 0;
    Names names;
    for (std::uint64_t number = begin; number <= end; ++number) {
        std::string digits = std::to_string(number);
        if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
        names.push_back(std::string(first.substr(0, cut)) + digits);
    }
    return names;
}

Result<Names> expand_sources(std::string_view option, std::string_view sources) {
    Names names;
    for (const std::string& part : split(sources, ',')) {
        const std::size_t dots = part.find("..");
        if (dots == std::string::npos) {
            names.push_back(part);
            continue;
        }
        TUNE_TRY(range, expand_range(option, std::string_view(part).substr(0, dots),
                                     std::string_view(part).substr(dots + 2)));
        names.insert(names.end(), range.begin(), range.end());
    }
    return names;
}

Result<PlannedColumn> plan_pack(const std::string& pack, const Names& names) {
    const std::string option = "--pack " + pack;
    const std::size_t equals = pack.find('=');
    const Names parts = equals == std::string::npos ? Names{} : split(pack.substr(equals + 1), ':');
    if (equals == std::string::npos || equals == 0 || parts.size() < 2 || parts.size() > 3)
        return invalid_parameter(option +
                                 ": write NAME=COLUMNS:TYPE[:SHAPE], e.g. image=p0..p63:uint8:8,8");
    PlannedColumn column{.name = pack.substr(0, equals)};
    TUNE_TRY(sources, expand_sources(option, parts[0]));
    for (const std::string& source : sources) {
        TUNE_TRY(number, find_column(option, source, names));
        column.sources.push_back(number);
    }
    const std::string shape = parts.size() == 3 ? parts[2] : std::to_string(sources.size());
    column.encoding = "ndarray:" + parts[1] + ":" + shape;
    Result<Encoding> encoding = parse_encoding(column.encoding);
    if (!encoding) return invalid_parameter(option + ": " + encoding.error().message);
    column.packed_dtype = encoding->dtype;
    const std::size_t elements = *encoding->size / dtype_bytes(*encoding->dtype);
    if (elements != sources.size())
        return invalid_parameter(option + ": the shape " + shape + " has " +
                                 std::to_string(elements) + " elements, but " +
                                 std::to_string(sources.size()) + " columns are named");
    return column;
}

Result<PlannedColumn> plan_single(const std::string& text, const Names& names,
                                  const Names& natural) {
    const std::string option = "--columns " + text;
    const std::size_t colon = text.find(':');
    PlannedColumn column{.name = text.substr(0, colon)};
    TUNE_TRY(number, find_column(option, column.name, names));
    column.sources = {number};
    if (colon == std::string::npos) {
        column.encoding = natural[number];  // empty: the table itself says why it has none
        return column;
    }
    column.encoding = text.substr(colon + 1);
    if (Result<Encoding> encoding = parse_encoding(column.encoding); !encoding)
        return invalid_parameter(option + ": " + encoding.error().message);
    return column;
}

}  // namespace

bool needs_natural_encodings(const ColumnRequest& request) {
    const Names columns = split_columns(request.columns);
    return columns.empty() ||
           std::any_of(columns.begin(), columns.end(), [](const std::string& column) {
               return column.find(':') == std::string::npos;
           });
}

Result<std::vector<PlannedColumn>> plan_columns(const ColumnRequest& request, const Names& names,
                                                const Names& natural) {
    std::vector<PlannedColumn> planned;
    std::set<std::size_t> packed;
    for (const std::string& pack : request.packs) {
        TUNE_TRY(column, plan_pack(pack, names));
        packed.insert(column.sources.begin(), column.sources.end());
        planned.push_back(std::move(column));
    }
    for (const std::string& text : split_columns(request.columns)) {
        TUNE_TRY(column, plan_single(text, names, natural));
        planned.push_back(std::move(column));
    }
    if (request.columns.empty())
        for (std::size_t number = 0; number < names.size(); ++number)
            if (!packed.contains(number))
                planned.push_back({names[number], natural[number], {number}});
    std::sort(planned.begin(), planned.end(),
              [](const PlannedColumn& a, const PlannedColumn& b) { return a.name < b.name; });
    for (std::size_t i = 1; i < planned.size(); ++i)
        if (planned[i - 1].name == planned[i].name)
            return invalid_parameter("two columns of the data set would be named '" +
                                     planned[i].name + "'");
    if (planned.empty()) return invalid_parameter("no column is left to store");
    return planned;
}

}  // namespace tune::loader
