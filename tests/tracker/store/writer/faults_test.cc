// A full disk, a second process, a newer version, directories that cannot be written, damage.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/migrations/schema.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

class FaultsTest : public StoreTest {
protected:
    std::string open_error(const fs::path& path) {
        StoreOptions options;
        options.directory = path;
        return text_of(Store::open(options));
    }

    void edit_database(const std::string& sql) {
        auto connection = sqlite::Connection::open((directory_.path() / "tune.db").string(), {});
        ASSERT_TRUE(connection);
        const auto done = (*connection)->execute(sql);
        ASSERT_TRUE(done) << done.error().text();
    }
};

TEST_F(FaultsTest, AFullDiskRefusesWritesAndLosesNothing) {
    store_.reset();
    options_.database_bytes_max = 1 << 20;
    open();
    const std::string id = create_run();
    log(id, "before", 1, 1, 1);
    int written = 0;
    std::string error;
    while (error.empty() && written < 1'000) {
        error = refusal(PutDocument{"fill", std::to_string(written), std::string(50'000, 'x')});
        written += error.empty() ? 1 : 0;
    }
    EXPECT_TRUE(error.starts_with("TEMPORARILY_UNAVAILABLE: The disk (or quota) that holds '"))
        << error;
    EXPECT_NE(error.find("is full; nothing was changed. Free some space and try again."),
              std::string::npos);
    // The store lives: reads work, what was answered is there, small writes succeed while they fit.
    EXPECT_EQ(store_->list_documents("fill")->size(), static_cast<std::size_t>(written));
    EXPECT_EQ(history(id, "before"), "1:1@1");
    // A group in which one command does not fit: the others are done.
    std::vector<std::string> answers(3);
    const auto keep = [&](std::size_t i) {
        return [&answers, i](Result<Outcome> outcome) { answers[i] = text_of(outcome); };
    };
    store_->submit(LogMetric{id, {"before", 2, 2, 2}}, keep(0));
    store_->submit(PutDocument{"fill", "huge", std::string(900'000, 'x')}, keep(1));
    store_->submit(LogMetric{id, {"before", 3, 3, 3}}, keep(2));
    EXPECT_EQ(refusal(LogBatch{.run_id = id}), "");
    EXPECT_EQ(answers[0], "");
    EXPECT_TRUE(answers[1].starts_with("TEMPORARILY_UNAVAILABLE")) << answers[1];
    EXPECT_EQ(answers[2], "");
    EXPECT_EQ(history(id, "before"), "1:1@1 2:2@2 3:3@3");
    // Space again: writes resume.
    for (int i = 0; i < 5; ++i) run(DeleteDocument{"fill", std::to_string(i)});
    run(PutDocument{"fill", "again", std::string(50'000, 'x')});
    reopen();
    EXPECT_EQ(store_->list_documents("fill")->size(), static_cast<std::size_t>(written - 5 + 1));
    EXPECT_EQ(history(id, "before"), "1:1@1 2:2@2 3:3@3");
}

TEST_F(FaultsTest, ASecondOpenIsRefusedWithThePid) {
    const std::string expected =
        "RESOURCE_CONFLICT: The data directory '" + directory_.path().string() +
        "' is in use by another tune process (pid " + std::to_string(::getpid()) +
        "); stop it or choose another directory.";
    EXPECT_EQ(open_error(directory_.path()), expected);
    store_.reset();
    EXPECT_EQ(open_error(directory_.path()), "");
}

TEST_F(FaultsTest, AnotherProcessIsRefusedToo) {
    const pid_t child = ::fork();
    if (child == 0) {
        StoreOptions options;
        options.directory = directory_.path();
        const auto opened = Store::open(options);
        _exit(!opened && opened.error().code == Code::kResourceConflict ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(FaultsTest, ANewerVersionIsRefused) {
    store_.reset();
    edit_database("INSERT INTO schema_version VALUES (999, 0)");
    const std::string path = (directory_.path() / "tune.db").string();
    EXPECT_EQ(
        open_error(directory_.path()),
        "INVALID_STATE: '" + path +
            "' was written by a newer version of tune (schema 999, this program knows up to " +
            std::to_string(schema_version()) + "); use that version, or another data directory.");
}

TEST_F(FaultsTest, AForeignDatabaseIsRefused) {
    TemporaryDirectory other;
    const std::string path = (other.path() / "tune.db").string();
    {
        auto connection = sqlite::Connection::open(path, {});
        ASSERT_TRUE(connection);
        ASSERT_TRUE((*connection)->execute("CREATE TABLE theirs (x)"));
    }
    EXPECT_EQ(open_error(other.path()),
              "INVALID_STATE: '" + path +
                  "' is a database of another program (table 'theirs'); choose another data "
                  "directory.");
}

TEST_F(FaultsTest, AFileThatIsNoDatabaseIsRefused) {
    TemporaryDirectory other;
    std::ofstream(other.path() / "tune.db") << std::string(10'000, 'x');
    const std::string error = open_error(other.path());
    EXPECT_TRUE(error.starts_with("DATA_LOSS: '" + (other.path() / "tune.db").string() +
                                  "' is damaged or not a database"))
        << error;
}

TEST_F(FaultsTest, ADirectoryThatCannotBeMadeIsRefused) {
    const fs::path file = directory_.path() / "file";
    std::ofstream(file) << "x";
    const std::string error = open_error(file / "data");
    EXPECT_TRUE(error.starts_with("PERMISSION_DENIED: Cannot make the data directory '" +
                                  (file / "data").string() + "' ("))
        << error;
}

TEST_F(FaultsTest, AnUnwritableDirectoryIsRefused) {
    TemporaryDirectory other;
    // In a child that gives its privileges up, as root may write everywhere.
    fs::permissions(other.path(), fs::perms::owner_read | fs::perms::owner_exec |
                                      fs::perms::others_read | fs::perms::others_exec);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) _exit(2);
        StoreOptions options;
        options.directory = other.path();
        const auto opened = Store::open(options);
        const bool is_refused =
            !opened && opened.error().code == Code::kPermissionDenied &&
            opened.error().message.starts_with("Cannot write in the data directory '" +
                                               other.path().string() + "' (");
        _exit(is_refused ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
}

TEST_F(FaultsTest, ADamagedBlockIsReportedAsDamaged) {
    const std::string id = create_run();
    LogBatch batch{.run_id = id};
    for (int i = 0; i < 600; ++i) batch.metrics.push_back({"m", 0.1 * i, i, i});
    run(batch);
    store_.reset();
    edit_database("UPDATE metric_blocks SET points = zeroblob(5)");
    open();
    const auto page = store_->metric_history(id, "m");
    ASSERT_FALSE(page);
    EXPECT_EQ(page.error().code, Code::kDataLoss);
    // Other data is not touched by it.
    EXPECT_EQ(get(id).metrics.size(), 1u);
    log(id, "other", 1);
    EXPECT_EQ(history(id, "other"), "0:1@0");
}

TEST_F(FaultsTest, AReadThatTakesTooLongIsStopped) {
    options_.read_timeout_ms = 1;
    reopen();
    LogBatch batch;
    for (int i = 0; i < 300; ++i) {
        batch.run_id = create_run();
        batch.tags = {{"t", std::string(8'000, 'a')}};
        run(batch);
    }
    std::string pattern;
    for (int i = 0; i < 4'000; ++i) pattern += "%a";
    const auto page =
        store_->search_runs({.experiment_ids = {0},
                             .filter = "tags.t LIKE '" + pattern + "b' AND tags.t LIKE '" +
                                       pattern + "c' AND metrics.x > 1"});
    // Either it was quick enough or it was stopped; never anything else.
    EXPECT_TRUE(page || page.error().code == Code::kDeadlineExceeded);
}

TEST_F(FaultsTest, OpensFastAfterManyRuns) {
    for (int i = 0; i < 50; ++i) log(create_run(), "m", i);
    reopen();
    EXPECT_EQ(store_->search_runs({.experiment_ids = {0}})->items.size(), 50u);
}

}  // namespace
}  // namespace tune::tracker
