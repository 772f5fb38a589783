#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

struct sqlite3_stmt;

namespace tune::tracker::sqlite {

class Connection;

/// Any value that can be bound.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A prepared statement borrowed from its connection's cache; returned, reset, when it goes out of
/// scope. Same thread rules as the connection. Bound text and blobs must live until the statement
/// is reset (they are not copied), Values too.
class Statement {
public:
    Statement(Connection& connection, sqlite3_stmt* statement, bool is_cached);
    ~Statement();
    Statement(Statement&& other) noexcept;
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    Statement& operator=(Statement&&) = delete;

    // Parameters are numbered from 1. A wrong index is a programmer's error (aborts).
    void bind(int index, std::int64_t value);
    void bind(int index, double value);  // NaN becomes NULL, as in SQLite
    void bind(int index, std::string_view value);
    void bind_blob(int index, std::span<const std::byte> value);
    void bind_null(int index);
    void bind_value(int index, const Value& value);

    /// bind() of each argument in order.
    template <class... Args>
    Statement& with(const Args&... args) {
        int index = 0;
        (bind(++index, args), ...);
        return *this;
    }

    /// True: there is a row. False: done. Errors: errors.h.
    [[nodiscard]] Result<bool> step();
    /// Steps to the end, ignoring rows, and resets.
    [[nodiscard]] Result<void> run();
    /// Makes it ready for another round; bindings stay.
    void reset();

    // Columns of the current row, numbered from 0. Views are valid until the next step or reset.
    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const;
    [[nodiscard]] std::string_view text(int column) const;
    [[nodiscard]] std::span<const std::byte> blob(int column) const;
    [[nodiscard]] bool is_null(int column) const;
    [[nodiscard]] Value value(int column) const;

private:
    Connection* connection_;
    sqlite3_stmt* statement_;
    bool is_cached_;
};

}  // namespace tune::tracker::sqlite
