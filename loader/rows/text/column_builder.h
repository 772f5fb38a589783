#pragma once
// A column of text files as it is read row by row. Internal to the loader.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/rows/row_set.h"
#include "loader/rows/row_shard.h"

namespace tune::loader {

/// A column of text: whole numbers (int64), numbers (float64), or bytes of any kind.
enum class TextKind { kInteger, kReal, kText, kJson };

/// What is known of a column of text files.
struct TextColumn {
    std::string name;
    TextKind kind = TextKind::kText;
    ColumnOptions options = {};
    /// As given out.
    ColumnInfo info = {};
};

/// Works out `info`. Errors: those of apply_dtype.
[[nodiscard]] Result<TextColumn> text_column(std::string name, TextKind kind,
                                             const ColumnOptions& options);

/// Takes one value a row. Not thread-safe.
class ColumnBuilder {
public:
    explicit ColumnBuilder(const TextColumn& column) : column_(column) {}

    /// Errors: kDataLoss for text that is no such number, kInvalidParameterValue for a null that
    /// was not asked for; both name the column.
    [[nodiscard]] Result<void> add(std::string_view text);
    [[nodiscard]] Result<void> add_null();

    [[nodiscard]] ColumnBlock finish();

private:
    [[nodiscard]] Result<void> append(std::string_view text);

    const TextColumn& column_;
    std::string bytes_;  // numbers as stored, or payloads
    std::vector<std::int64_t> offsets_ = {0};
    std::vector<std::uint8_t> valid_;
};

}  // namespace tune::loader
