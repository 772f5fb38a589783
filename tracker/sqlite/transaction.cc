#include "tracker/sqlite/transaction.h"

#include <utility>

namespace tune::tracker::sqlite {
namespace {

Result<void> run(Connection& connection, const char* sql) {
    TUNE_TRY(statement, connection.prepare(sql));
    return statement.run();
}

/// Undoing may fail only when there is nothing left to undo.
void run_quietly(Connection& connection, const char* sql) {
    if (!connection.is_in_transaction()) return;
    if (const Result<void> done = run(connection, sql); !done) return;
}

}  // namespace

Result<Transaction> Transaction::begin(Connection& connection, const char* sql) {
    TUNE_TRY_VOID(run(connection, sql));
    return Transaction(connection);
}

Result<Transaction> Transaction::begin_write(Connection& connection) {
    return begin(connection, "BEGIN IMMEDIATE");
}

Result<Transaction> Transaction::begin_read(Connection& connection) {
    return begin(connection, "BEGIN DEFERRED");
}

Transaction::Transaction(Transaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)) {}

Transaction::~Transaction() {
    if (connection_ != nullptr) run_quietly(*connection_, "ROLLBACK");
}

Result<void> Transaction::commit() {
    TUNE_TRY_VOID(run(*connection_, "COMMIT"));
    connection_ = nullptr;
    return {};
}

Result<Savepoint> Savepoint::begin(Connection& connection) {
    TUNE_TRY_VOID(run(connection, "SAVEPOINT command"));
    return Savepoint(connection);
}

Savepoint::Savepoint(Savepoint&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)) {}

Savepoint::~Savepoint() {
    if (connection_ == nullptr) return;
    run_quietly(*connection_, "ROLLBACK TO command");
    run_quietly(*connection_, "RELEASE command");
}

Result<void> Savepoint::release() {
    TUNE_TRY_VOID(run(*connection_, "RELEASE command"));
    connection_ = nullptr;
    return {};
}

}  // namespace tune::tracker::sqlite
