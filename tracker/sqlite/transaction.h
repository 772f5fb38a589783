#pragma once

#include "base/result.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker::sqlite {

/// A transaction; rolled back unless commit() succeeded.
class Transaction {
public:
    /// For writing: takes the write lock at once.
    [[nodiscard]] static Result<Transaction> begin_write(Connection& connection);
    /// For reading: all reads see one snapshot.
    [[nodiscard]] static Result<Transaction> begin_read(Connection& connection);

    ~Transaction();
    Transaction(Transaction&& other) noexcept;
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    Transaction& operator=(Transaction&&) = delete;

    /// Returns after the fsync. On an error nothing was changed.
    [[nodiscard]] Result<void> commit();

private:
    explicit Transaction(Connection& connection) : connection_(&connection) {}
    [[nodiscard]] static Result<Transaction> begin(Connection& connection, const char* sql);
    Connection* connection_;
};

/// A part of a transaction that can be undone by itself; undone unless release() succeeded.
class Savepoint {
public:
    [[nodiscard]] static Result<Savepoint> begin(Connection& connection);
    ~Savepoint();
    Savepoint(Savepoint&& other) noexcept;
    Savepoint(const Savepoint&) = delete;
    Savepoint& operator=(const Savepoint&) = delete;
    Savepoint& operator=(Savepoint&&) = delete;

    [[nodiscard]] Result<void> release();

private:
    explicit Savepoint(Connection& connection) : connection_(&connection) {}
    Connection* connection_;
};

}  // namespace tune::tracker::sqlite
