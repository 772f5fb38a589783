// Documents that are written with the events they report; stats of the store.

#include <sys/stat.h>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/store/stats.h"
#include "tracker/store/writer/outbox.h"

namespace tune::tracker {
namespace {

/// A document for each created run; fails the whole transaction when told to.
class RunOutbox final : public Outbox {
public:
    void add_documents(std::span<const Event> events, std::vector<Document>& documents) override {
        for (const Event& event : events)
            if (const auto* created = std::get_if<RunCreated>(&event))
                documents.push_back({"outbox", created->info.run_id, "{}"});
    }
};

class OutboxTest : public StoreTest {
protected:
    void SetUp() override {
        open();
        store_->set_outbox(&outbox_);
    }
    RunOutbox outbox_;
};

TEST_F(OutboxTest, PutsADocumentIntoTheTransactionOfItsEvent) {
    const std::string run_id = create_run();
    ASSERT_TRUE(store_->get_document("outbox", run_id)->has_value());
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<DocumentPut>().size(), 1u);
    EXPECT_EQ(observer_.positions().size(), 1u) << "one commit holds both";
}

TEST_F(OutboxTest, KnowsNothingOfWhatWasUndone) {
    std::vector<Command> commands;
    commands.push_back(CreateRun{.experiment_id = 0});
    commands.push_back(DeleteRun{"0123456789abcdef0123456789abcdef"});
    EXPECT_FALSE(store_->execute(Atomic{std::move(commands)}));
    EXPECT_TRUE(store_->list_documents("outbox")->empty());
}

TEST_F(OutboxTest, AStatusChangeIsTold) {
    const std::string run_id = create_run();
    run<RunInfo>(UpdateRun{.run_id = run_id, .run_name = "renamed"});
    run<RunInfo>(UpdateRun{.run_id = run_id, .status = RunStatus::kFinished});
    run<RunInfo>(UpdateRun{.run_id = run_id, .status = RunStatus::kFinished});
    store_->wait_for_observers();
    std::vector<bool> changed;
    for (const RunUpdated& update : observer_.of<RunUpdated>())
        changed.push_back(update.status_changed);
    EXPECT_EQ(changed, (std::vector<bool>{false, true, false}));
}

TEST_F(OutboxTest, AConditionalUpdateLeavesOtherStatesAlone) {
    const std::string run_id = create_run();
    run<RunInfo>(UpdateRun{.run_id = run_id, .status = RunStatus::kFinished});
    const auto refused = store_->execute(UpdateRun{
        .run_id = run_id, .status = RunStatus::kKilled, .only_if_status = RunStatus::kRunning});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidState);
    EXPECT_EQ(refused.error().message, "The run " + run_id + " is FINISHED, not RUNNING.");
    EXPECT_EQ(store_->get_run_info(run_id)->status, RunStatus::kFinished);
}

TEST_F(OutboxTest, FiguresCountWhatHappened) {
    create_run();
    EXPECT_TRUE(store_->search_runs({.experiment_ids = {0}}));
    const StoreStatistics statistics = store_->statistics();
    EXPECT_EQ(statistics.group_commands.count(), statistics.commit_seconds.count());
    EXPECT_GE(statistics.group_commands.count(), 1u);
    EXPECT_GT(statistics.commit_seconds.sum, 0);
    EXPECT_EQ(statistics.commands_waiting, 0u);
    EXPECT_EQ(statistics.read_connections_open, 1u);
    EXPECT_EQ(statistics.read_connections_in_use, 0u);
    EXPECT_GT(statistics.database_bytes, 0u);
    EXPECT_GT(statistics.log_bytes, 0u);
}

TEST_F(OutboxTest, FilesBelongToTheirOwnerAlone) {
    create_run();
    const std::string path = (directory_.path() / "tune.db").string();
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    reopen();
    for (const char* suffix : {"", "-wal", "-shm"}) {
        struct stat status {};
        ASSERT_EQ(::stat((path + suffix).c_str(), &status), 0) << suffix;
        EXPECT_EQ(status.st_mode & 0777, 0600u) << suffix;
    }
}

}  // namespace
}  // namespace tune::tracker
