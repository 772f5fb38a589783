#include "tracker/maintenance/backup.h"

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/maintenance/backup_file.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

bool go_on(const Progress&) {
    return true;
}

std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

class BackupTest : public StoreTest {
protected:
    fs::path file() const { return other_.path() / "b.backup"; }
    fs::path target() const { return other_.path() / "restored"; }

    Result<BackupReport> back_up(bool with_artifacts = false) {
        return write_backup(directory_.path(), file(), with_artifacts, go_on);
    }
    Result<BackupReport> restore(bool overwrite = false) {
        return restore_backup(file(), target(), overwrite, go_on);
    }
    void put_artifact(const fs::path& data, const std::string& path, const std::string& content) {
        const auto artifacts = ArtifactStore::open(data / "artifacts").value();
        EXPECT_TRUE(artifacts->put(path, content));
    }

    std::unique_ptr<Store> open_restored() {
        StoreOptions options;
        options.directory = target();
        auto opened = Store::open(options);
        EXPECT_TRUE(opened) << opened.error().text();
        return opened ? std::move(*opened) : nullptr;
    }

    /// Whatever the backup is, nothing may come of it.
    void expect_refused(const std::string& sentence_part, Code code = Code::kDataLoss) {
        const auto result = restore();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, code) << result.error().text();
        EXPECT_NE(result.error().message.find(sentence_part), std::string::npos)
            << result.error().text();
        EXPECT_FALSE(fs::exists(target() / "tune.db"));
        EXPECT_FALSE(fs::exists(target() / "artifacts"));
        for (const auto& entry : fs::directory_iterator(target()))
            EXPECT_EQ(entry.path().filename(), "tune.lock");
    }

    TemporaryDirectory other_;
};

TEST_F(BackupTest, WhatIsBackedUpComesBack) {
    const std::string id = create_run();
    for (int i = 0; i < 500; ++i) log(id, "m", 0.5 * i, i, i);
    put_artifact(directory_.path(), "0/" + id + "/artifacts/a.txt", "hello");
    const std::string long_name(200, 'n');
    put_artifact(directory_.path(), "0/" + id + "/artifacts/" + long_name,
                 std::string(700'000, 'x'));
    const auto written = back_up(true);
    ASSERT_TRUE(written) << written.error().text();
    EXPECT_EQ(written->artifact_count, 2);
    EXPECT_EQ(written->size_bytes, fs::file_size(file()));
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().text();
    EXPECT_EQ(restored->artifact_count, 2);
    const auto store = open_restored();
    EXPECT_EQ(store->metric_history(id, "m")->items.size(), 500u);
    EXPECT_TRUE(store->execute(LogMetric{id, {"m", 1, 1'000, 1'000}}));
    EXPECT_EQ(read(target() / "artifacts/0" / id / "artifacts/a.txt"), "hello");
    EXPECT_EQ(fs::file_size(target() / "artifacts/0" / id / "artifacts" / long_name), 700'000u);
    // Nothing but the backup is left where it was written.
    for (const auto& entry : fs::directory_iterator(other_.path()))
        EXPECT_TRUE(entry.path() == file() || entry.path() == target()) << entry.path();
}

TEST_F(BackupTest, ItIsATarFile) {
    ASSERT_TRUE(back_up());
    const std::string command =
        "tar -tf " + file().string() + " > " + (other_.path() / "l").string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read(other_.path() / "l"), "tune-backup.json\ntune.db\ntune-backup.sha256\n");
}

TEST_F(BackupTest, UnderLoadEverythingAnsweredBeforeIsThere) {
    std::vector<std::string> runs;
    for (int i = 0; i < 4; ++i) runs.push_back(create_run());
    std::vector<std::atomic<int>> answered(runs.size());
    std::atomic<bool> is_over{false};
    std::vector<std::thread> writers;
    for (std::size_t i = 0; i < runs.size(); ++i)
        writers.emplace_back([&, i] {
            for (int step = 0; !is_over; ++step) {
                LogBatch batch{.run_id = runs[i]};
                for (int k = 0; k < 50; ++k)
                    batch.metrics.push_back({"m", 0.5, step * 50 + k, step * 50 + k});
                if (store_->execute(std::move(batch))) answered[i] = step + 1;
            }
        });
    for (std::size_t i = 0; i < runs.size(); ++i)
        while (answered[i] < 20) std::this_thread::yield();
    std::vector<int> before;
    for (const auto& count : answered) before.push_back(count);
    const auto written = back_up();
    is_over = true;
    for (std::thread& writer : writers) writer.join();
    ASSERT_TRUE(written) << written.error().text();
    ASSERT_TRUE(restore());
    const auto store = open_restored();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto points = store->metric_history(runs[i], "m")->items.size();
        EXPECT_GE(points, 50u * static_cast<unsigned>(before[i]));
        EXPECT_EQ(points % 50, 0u) << "half a batch";
    }
}

TEST_F(BackupTest, EveryTruncationIsRefused) {
    create_run();
    ASSERT_TRUE(back_up());
    const std::uintmax_t whole = fs::file_size(file());
    for (const std::uintmax_t size : {whole - 1'500, whole / 2, std::uintmax_t{5'000},
                                      std::uintmax_t{1'024}, std::uintmax_t{600}}) {
        fs::resize_file(file(), size);
        expect_refused("is damaged: it is cut off");
    }
    fs::resize_file(file(), 100);
    const auto result = restore();
    EXPECT_EQ(text_of(result), "INVALID_PARAMETER_VALUE: '" + file().string() +
                                   "' is not a backup made by `tune backup`.");
}

TEST_F(BackupTest, EveryChangedByteIsRefused) {
    create_run();
    put_artifact(directory_.path(), "0/x/a.txt", std::string(3'000, 'x'));
    ASSERT_TRUE(back_up(true));
    const std::string whole = read(file());
    for (std::size_t at = 512; at < whole.size() - 1'600; at += whole.size() / 61) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        std::ofstream(file(), std::ios::binary) << damaged;
        const auto result = restore();
        ASSERT_FALSE(result) << "byte " << at;
        EXPECT_FALSE(fs::exists(target() / "tune.db"));
        EXPECT_FALSE(fs::exists(target() / "artifacts"));
    }
}

TEST_F(BackupTest, ForeignFilesAreRefused) {
    std::ofstream(file()) << std::string(10'000, 'x');
    EXPECT_NE(text_of(restore()), "");
    EXPECT_EQ(text_of(restore_backup(other_.path() / "none", target(), false, go_on)),
              "RESOURCE_DOES_NOT_EXIST: Cannot read '" + (other_.path() / "none").string() +
                  "' (No such file or directory).");
    EXPECT_NE(text_of(restore_backup(other_.path(), target(), false, go_on)), "");
}

/// A whole, correctly signed file with entries that lead elsewhere.
TEST_F(BackupTest, HostileNamesLeadNowhere) {
    for (const std::string name :
         {"artifacts/../../evil", "artifacts//etc/evil", "artifacts/a/../../evil", "../evil",
          "/tmp/evil", "artifacts/", "tune.db/../evil", "artifacts/..", "evil"}) {
        fs::remove(file());
        const auto writer = BackupWriter::create(file()).value();
        ASSERT_TRUE(writer->add(kBackupManifest, R"({"format": 1, "with_artifacts": true})"));
        ASSERT_TRUE(writer->add(name, "evil"));
        ASSERT_TRUE(writer->finish());
        EXPECT_FALSE(restore()) << name;
        EXPECT_FALSE(fs::exists(other_.path() / "evil"));
        EXPECT_FALSE(fs::exists(target() / "artifacts"));
    }
}

TEST_F(BackupTest, ANewerBackupIsRefused) {
    const auto writer = BackupWriter::create(file()).value();
    ASSERT_TRUE(writer->add(kBackupManifest, R"({"format": 2})"));
    ASSERT_TRUE(writer->finish());
    EXPECT_NE(text_of(restore()).find("newer version"), std::string::npos);
}

TEST_F(BackupTest, DataThatAreThereAreOverwrittenOnlyWhenAsked) {
    const std::string old_run = create_run();
    ASSERT_TRUE(back_up(true));
    ASSERT_TRUE(restore());
    {
        const auto store = open_restored();
        EXPECT_TRUE(store->execute(LogMetric{old_run, {"late", 1, 1, 1}}));
        EXPECT_EQ(text_of(restore(true)).substr(0, 18), "RESOURCE_CONFLICT:") << "it is in use";
    }
    put_artifact(target(), "0/late.txt", "late");
    EXPECT_EQ(text_of(restore()), "RESOURCE_ALREADY_EXISTS: There are data in '" +
                                      target().string() +
                                      "' already (a database and artifacts); restore into "
                                      "another folder, or overwrite them with --force.");
    const auto restored = restore(true);
    ASSERT_TRUE(restored) << restored.error().text();
    const auto store = open_restored();
    EXPECT_TRUE(store->get_run(old_run)->metrics.empty());
    EXPECT_FALSE(fs::exists(target() / "artifacts/0/late.txt"));
}

TEST_F(BackupTest, ALogThatACrashLeftIsNotMixedIn) {
    const std::string id = create_run();
    ASSERT_TRUE(back_up());
    ASSERT_TRUE(restore());
    {
        const auto store = open_restored();
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(store->execute(LogMetric{id, {"late", 1, i, i}}));
        // As kill -9 leaves it: the log still holds what was answered.
        fs::copy(target() / "tune.db", other_.path() / "db");
        fs::copy(target() / "tune.db-wal", other_.path() / "wal");
    }
    fs::rename(other_.path() / "db", target() / "tune.db");
    fs::rename(other_.path() / "wal", target() / "tune.db-wal");
    ASSERT_TRUE(restore(true));
    const auto store = open_restored();
    EXPECT_TRUE(store->get_run(id)->metrics.empty());
}

TEST_F(BackupTest, AStopLeavesNothing) {
    create_run();
    EXPECT_EQ(text_of(write_backup(directory_.path(), file(), false,
                                   [](const Progress&) { return false; }))
                  .substr(0, 9),
              "CANCELLED");
    EXPECT_TRUE(fs::is_empty(other_.path()));
    ASSERT_TRUE(back_up());
    EXPECT_EQ(text_of(back_up()).substr(0, 23), "RESOURCE_ALREADY_EXISTS");
    EXPECT_FALSE(restore_backup(file(), target(), false, [](const Progress&) { return false; }));
    EXPECT_FALSE(fs::exists(target() / "tune.db"));
    EXPECT_NE(text_of(write_backup(other_.path(), other_.path() / "c", false, go_on)), "");
}

TEST_F(BackupTest, ADamagedDatabaseIsNotBackedUp) {
    const std::string id = create_run();
    for (int i = 0; i < 100; ++i) {
        LogBatch batch{.run_id = id};
        for (int k = 0; k < 1'000; ++k)
            batch.metrics.push_back({"m" + std::to_string(k), 1.0 / (i + 1), i, i});
        run(batch);
    }
    store_.reset();
    std::fstream db(directory_.path() / "tune.db", std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 20; page < 200; page += 10) {
        db.seekp(page * 4096 + 10);
        db << std::string(2'000, '\xff');
    }
    db.close();
    const auto result = back_up();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kDataLoss) << result.error().text();
    EXPECT_TRUE(fs::is_empty(other_.path()));
}

}  // namespace
}  // namespace tune::tracker
