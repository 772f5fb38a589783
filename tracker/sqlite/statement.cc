// Binding by a wrong index or type is a programmer's error and aborts; what the database answers is
// a Result. Text and blobs are bound without a copy: the caller's bytes must live until the step.

#include "tracker/sqlite/statement.h"

#include <sqlite3.h>

#include "base/check.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker::sqlite {
namespace {

void check_bound(int code) {
    TUNE_CHECK(code == SQLITE_OK, sqlite3_errstr(code));
}

}  // namespace

Statement::Statement(Connection& connection, sqlite3_stmt* statement, bool is_cached)
    : connection_(&connection), statement_(statement), is_cached_(is_cached) {}

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_),
      statement_(std::exchange(other.statement_, nullptr)),
      is_cached_(other.is_cached_) {}

Statement::~Statement() {
    if (statement_ != nullptr) connection_->give_back(statement_, is_cached_);
}

void Statement::bind(int index, std::int64_t value) {
    check_bound(sqlite3_bind_int64(statement_, index, value));
}

void Statement::bind(int index, double value) {
    check_bound(sqlite3_bind_double(statement_, index, value));
}

void Statement::bind(int index, std::string_view value) {
    // A null pointer would bind NULL; an empty view may have one.
    const char* data = value.data() == nullptr ? "" : value.data();
    check_bound(
        sqlite3_bind_text64(statement_, index, data, value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::bind_blob(int index, std::span<const std::byte> value) {
    const void* data = value.data() == nullptr ? static_cast<const void*>("") : value.data();
    check_bound(sqlite3_bind_blob64(statement_, index, data, value.size(), SQLITE_STATIC));
}

void Statement::bind_null(int index) {
    check_bound(sqlite3_bind_null(statement_, index));
}

void Statement::bind_value(int index, const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return bind(index, *integer);
    if (const auto* real = std::get_if<double>(&value)) return bind(index, *real);
    if (const auto* text = std::get_if<std::string>(&value))
        return bind(index, std::string_view(*text));
    bind_null(index);
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    Error error = connection_->last_error(code);
    sqlite3_reset(statement_);
    return error;
}

Result<void> Statement::run() {
    for (;;) {
        TUNE_TRY(has_row, step());
        if (!has_row) break;
    }
    reset();
    return {};
}

void Statement::reset() {
    sqlite3_reset(statement_);
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
    return sqlite3_column_double(statement_, column);
}

std::string_view Statement::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (data == nullptr) return {};
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::span<const std::byte> Statement::blob(int column) const {
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
    if (data == nullptr) return {};
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Value Statement::value(int column) const {
    switch (sqlite3_column_type(statement_, column)) {
        case SQLITE_INTEGER: return integer(column);
        case SQLITE_FLOAT: return real(column);
        case SQLITE_TEXT: return std::string(text(column));
        default: return std::monostate{};
    }
}

}  // namespace tune::tracker::sqlite
