#include "loader/rows/text/text_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tune::loader {
namespace {

/// What a column takes of a member, or nothing when the kinds do not fit.
Result<void> add_member(const TextColumn& column, const JsonMember& member,
                        ColumnBuilder& builder) {
    if (member.kind == JsonKind::kNull) return builder.add_null();
    const bool takes_number = column.kind == TextKind::kInteger || column.kind == TextKind::kReal;
    if (takes_number && member.kind == JsonKind::kBoolean)
        return builder.add(member.text == "true" ? "1" : "0");
    const bool fits =
        column.kind == TextKind::kJson ||
        (takes_number ? member.kind == JsonKind::kNumber : member.kind == JsonKind::kText);
    if (fits && !(column.kind == TextKind::kJson && member.kind == JsonKind::kText))
        return builder.add(member.text);
    if (fits) {
        // JSON text keeps its quotes.
        std::string quoted = to_text(Json(std::string(member.text)));
        return builder.add(quoted);
    }
    return data_loss("column '" + column.name + "': " + std::string(member.text.substr(0, 40)) +
                     " is of another kind than the column's other values");
}

}  // namespace

TextRows::TextRows(const std::vector<TextColumn>& columns) : columns_(columns) {
    for (const TextColumn& column : columns_) builders_.emplace_back(column);
}

Result<void> TextRows::add_json(std::string_view line) {
    TUNE_TRY_VOID(parse_json_row(line, members_, unescaped_));
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        // The last one counts when a name stands twice, as in Python.
        const auto member = std::find_if(
            members_.rbegin(), members_.rend(),
            [&](const JsonMember& candidate) { return candidate.name == columns_[c].name; });
        TUNE_TRY_VOID(member == members_.rend() ? builders_[c].add_null()
                                                : add_member(columns_[c], *member, builders_[c]));
    }
    return {};
}

Result<void> TextRows::add_fields(const std::vector<std::string_view>& fields,
                                  const std::vector<std::size_t>& places) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        const std::string_view field = fields[places[c]];
        const bool is_null = field.empty() && columns_[c].info.fixed;
        TUNE_TRY_VOID(is_null ? builders_[c].add_null() : builders_[c].add(field));
    }
    return {};
}

std::shared_ptr<const RowShard> TextRows::finish() {
    std::vector<ColumnBlock> blocks;
    for (ColumnBuilder& builder : builders_) blocks.push_back(builder.finish());
    return std::make_shared<const ColumnarShard>(std::move(blocks), nullptr);
}

Result<std::vector<TextColumn>> plan_text_columns(
    const DatasetOptions& options, std::vector<std::pair<std::string, TextKind>> columns) {
    std::sort(columns.begin(), columns.end());
    std::vector<std::string> names;
    for (const auto& [name, kind] : columns) names.push_back(name);
    TUNE_TRY_VOID(check_names(options, names));
    std::vector<TextColumn> planned;
    for (auto& [name, kind] : columns) {
        if (!is_wanted(options, name)) continue;
        TUNE_TRY(column, text_column(name, kind, options_of(options, name)));
        planned.push_back(std::move(column));
    }
    return planned;
}

}  // namespace tune::loader
