#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>

#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/log_file.h"
#include "tracker/sqlite/transaction.h"

namespace tune::tracker::sqlite {
namespace {

class SqliteTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "tune-sqlite-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        connection_ = open({});
        must(connection_->execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)"));
    }
    void TearDown() override {
        connection_.reset();
        std::filesystem::remove_all(directory_);
    }

    std::unique_ptr<Connection> open(ConnectionOptions options) {
        auto opened = Connection::open((directory_ / "x.db").string(), options);
        EXPECT_TRUE(opened) << opened.error().text();
        return opened ? std::move(*opened) : nullptr;
    }

    static void must(const Result<void>& result) { ASSERT_TRUE(result) << result.error().text(); }

    std::int64_t count(Connection& connection) {
        auto select = connection.prepare("SELECT count(*) FROM t");
        EXPECT_TRUE(select && *select->step());
        return select->integer(0);
    }

    std::filesystem::path directory_;
    std::unique_ptr<Connection> connection_;
};

TEST_F(SqliteTest, BindsAndReadsEveryKind) {
    auto insert = connection_->prepare("INSERT INTO t (b) VALUES (?)");
    ASSERT_TRUE(insert);
    const std::string bytes("a\0b", 3);
    must(insert->with(std::int64_t{-5}).run());
    must(insert->with(0.25).run());
    must(insert->with(std::string_view(bytes)).run());
    must(insert->with(std::string_view()).run());
    insert->bind_null(1);
    must(insert->run());
    must(insert->with(std::nan("")).run());
    insert->bind_blob(1, std::as_bytes(std::span(bytes)));
    must(insert->run());
    const Value text(std::string("v"));
    insert->bind_value(1, text);
    must(insert->run());
    auto select = connection_->prepare("SELECT b FROM t ORDER BY a");
    const auto next = [&] { return *select->step(); };
    ASSERT_TRUE(next());
    EXPECT_EQ(select->integer(0), -5);
    ASSERT_TRUE(next());
    EXPECT_EQ(select->real(0), 0.25);
    ASSERT_TRUE(next());
    EXPECT_EQ(select->text(0), bytes);
    ASSERT_TRUE(next());
    EXPECT_EQ(select->text(0), "");
    EXPECT_FALSE(select->is_null(0));
    ASSERT_TRUE(next());
    EXPECT_TRUE(select->is_null(0));
    ASSERT_TRUE(next());
    EXPECT_TRUE(select->is_null(0));
    ASSERT_TRUE(next());
    EXPECT_EQ(select->blob(0).size(), 3u);
    ASSERT_TRUE(next());
    EXPECT_EQ(std::get<std::string>(select->value(0)), "v");
    EXPECT_FALSE(next());
}

TEST_F(SqliteTest, StatementsAreCachedAndMayOverlap) {
    auto outer = connection_->prepare("SELECT 1 UNION SELECT 2");
    ASSERT_TRUE(*outer->step());
    auto inner = connection_->prepare("SELECT 1 UNION SELECT 2");
    ASSERT_TRUE(*inner->step());
    ASSERT_TRUE(*outer->step());
    EXPECT_EQ(outer->integer(0), 2);
    EXPECT_EQ(inner->integer(0), 1);
    for (std::size_t i = 0; i < 3 * kStatementCacheMax; ++i) {
        auto select = connection_->prepare("SELECT " + std::to_string(i));
        ASSERT_TRUE(*select->step());
        EXPECT_EQ(select->integer(0), static_cast<std::int64_t>(i));
    }
    EXPECT_FALSE(*outer->step());
}

TEST_F(SqliteTest, TransactionsAreRolledBackUnlessCommitted) {
    {
        auto transaction = Transaction::begin_write(*connection_);
        must(connection_->execute("INSERT INTO t (b) VALUES (1)"));
        EXPECT_TRUE(connection_->is_in_transaction());
    }
    EXPECT_EQ(count(*connection_), 0);
    {
        auto transaction = Transaction::begin_write(*connection_);
        must(connection_->execute("INSERT INTO t (b) VALUES (1)"));
        {
            auto savepoint = Savepoint::begin(*connection_);
            must(connection_->execute("INSERT INTO t (b) VALUES (2)"));
        }
        {
            auto savepoint = Savepoint::begin(*connection_);
            must(connection_->execute("INSERT INTO t (b) VALUES (3)"));
            must(savepoint->release());
        }
        must(transaction->commit());
    }
    EXPECT_EQ(count(*connection_), 2);
    EXPECT_FALSE(connection_->is_in_transaction());
}

TEST_F(SqliteTest, ReadersSeeOneSnapshot) {
    const auto reader = open({.access = Access::kReadOnly});
    auto transaction = Transaction::begin_read(*reader);
    EXPECT_EQ(count(*reader), 0);
    must(connection_->execute("INSERT INTO t (b) VALUES (1)"));
    EXPECT_EQ(count(*reader), 0);
    must(transaction->commit());
    EXPECT_EQ(count(*reader), 1);
    const auto refused = reader->execute("INSERT INTO t (b) VALUES (2)");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kPermissionDenied);
}

TEST_F(SqliteTest, BadSqlIsAnErrorWithItsText) {
    const auto bad = connection_->prepare("SELEC 1");
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, Code::kInternalError);
    EXPECT_EQ(bad.error().context, "SELEC 1");
    EXPECT_GT(connection_->failure_count(), 0);
}

TEST_F(SqliteTest, AnotherWriterIsALock) {
    const auto other = open({.busy_timeout_ms = 1});
    auto transaction = Transaction::begin_write(*connection_);
    const auto second = Transaction::begin_write(*other);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::kTemporarilyUnavailable);
}

TEST_F(SqliteTest, AQuotaIsAFullDisk) {
    const auto small = open({.database_bytes_max = 64 << 10});
    Result<void> done;
    for (int i = 0; i < 100 && done; ++i)
        done = small->execute("INSERT INTO t (b) VALUES (zeroblob(4000))");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kTemporarilyUnavailable);
    EXPECT_NE(done.error().message.find("is full"), std::string::npos);
}

TEST_F(SqliteTest, AMissingDirectoryIsAnError) {
    const auto opened = Connection::open((directory_ / "none" / "x.db").string(), {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::kPermissionDenied);
}

TEST_F(SqliteTest, EndlessStatementsAreStopped) {
    connection_->set_time_limit(20);
    auto endless = connection_->prepare(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n");
    const auto step = endless->step();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, Code::kDeadlineExceeded);
    connection_->set_time_limit(0);
    EXPECT_EQ(count(*connection_), 0);
}

TEST_F(SqliteTest, PredicatesAreCalled) {
    must(connection_->add_predicate("same",
                                    [](std::string_view a, std::string_view b) { return a == b; }));
    auto select = connection_->prepare("SELECT same('a', 'a'), same('a', 'b'), same(NULL, 'a')");
    ASSERT_TRUE(*select->step());
    EXPECT_EQ(select->integer(0), 1);
    EXPECT_EQ(select->integer(1), 0);
    EXPECT_TRUE(select->is_null(2));
}

TEST_F(SqliteTest, LogsGrowInStepsOfZerosThatACrashLeavesBehind) {
    const auto log = directory_ / "x.db-wal";
    for (int i = 0; i < 100; ++i) must(connection_->execute("INSERT INTO t (b) VALUES (1)"));
    EXPECT_EQ(std::filesystem::file_size(log) % kLogStepBytes, 0u);
    EXPECT_GT(std::filesystem::file_size(log), 100 * 4096u);
    // What a crash would leave: the files as they are, nobody having closed them.
    std::filesystem::copy_file(directory_ / "x.db", directory_ / "y.db");
    std::filesystem::copy_file(log, directory_ / "y.db-wal");
    auto after = Connection::open((directory_ / "y.db").string(), {});
    ASSERT_TRUE(after);
    EXPECT_EQ(count(**after), 100);
    must((*after)->execute("INSERT INTO t (b) VALUES (1)"));
    EXPECT_EQ(count(**after), 101);
}

TEST_F(SqliteTest, WhereZerosFindNoRoomTheLogItselfStillMay) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100'000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    auto opened = Connection::open((directory_ / "y.db").string(), {});
    const bool is_made = opened && (*opened)->execute("CREATE TABLE t (a)");
    const bool is_small = is_made && (*opened)->execute("INSERT INTO t VALUES (1)");
    const bool is_large = is_made && (*opened)->execute("INSERT INTO t VALUES (zeroblob(200000))");
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_TRUE(is_made);
    EXPECT_TRUE(is_small);
    EXPECT_FALSE(is_large);
    EXPECT_LT(std::filesystem::file_size(directory_ / "y.db-wal"), 100'001u);
    must((*opened)->execute("INSERT INTO t VALUES (zeroblob(200000))"));
    EXPECT_EQ(count(**opened), 2);
}

TEST_F(SqliteTest, CheckpointsEmptyTheLog) {
    must(connection_->execute("INSERT INTO t (b) VALUES (zeroblob(100000))"));
    EXPECT_GT(connection_->wal_pages(), 10);
    const auto pages = connection_->checkpoint();
    ASSERT_TRUE(pages);
    EXPECT_EQ(pages->in_log, connection_->wal_pages());
    EXPECT_EQ(pages->copied, pages->in_log);
    must(connection_->execute("INSERT INTO t (b) VALUES (1)"));
    EXPECT_LT(connection_->wal_pages(), 10);
}

}  // namespace
}  // namespace tune::tracker::sqlite
