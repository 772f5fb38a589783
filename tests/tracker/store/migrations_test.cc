// Migrations that change what users have stored, played once more on rows as older versions wrote
// them.

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/migrations/schema.h"

namespace tune::tracker {
namespace {

class MigrationsTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        store_.reset();
        auto opened = sqlite::Connection::open((directory_.path() / "tune.db").string(), {});
        ASSERT_TRUE(opened);
        connection_ = std::move(*opened);
    }

    void execute(const std::string& sql) {
        const auto done = connection_->execute(sql);
        ASSERT_TRUE(done) << done.error().text();
    }

    /// Lines of a query's columns, with spaces between.
    std::vector<std::string> lines(const std::string& sql, int columns) {
        std::vector<std::string> found;
        auto select = connection_->prepare(sql);
        EXPECT_TRUE(select) << select.error().text();
        while (select && *select->step()) {
            std::string line;
            for (int i = 0; i < columns; ++i)
                line += (i > 0 ? " " : "") + std::string(select->text(i));
            found.push_back(std::move(line));
        }
        return found;
    }

    std::unique_ptr<sqlite::Connection> connection_;
};

TEST_F(MigrationsTest, GrantsOnPromptsGoOnToHold) {
    execute("DROP TABLE metric_marks");
    execute("DROP TABLE marked_points");
    execute("DELETE FROM schema_version WHERE version >= 9");
    execute(
        "INSERT INTO registered_models VALUES (1, 'greeting', '', 1, 1, 1, 0), "
        "(2, 'model', '', 1, 1, 0, 0), (3, 'no prompt', '', 1, 1, 0, 0)");
    execute(
        "INSERT INTO registered_model_tags VALUES (1, 'mlflow.prompt.is_prompt', 'True'), "
        "(3, 'mlflow.prompt.is_prompt', 'false')");
    execute(
        "INSERT INTO role_permissions (role_id, resource_type, resource_pattern, permission) "
        "VALUES (7, 'registered_model', 'greeting', 4), (7, 'registered_model', 'model', 3), "
        "(7, 'registered_model', 'no prompt', 1), (8, 'registered_model', '*', -1), "
        "(8, 'experiment', 'greeting', 1)");
    const SystemClock clock;
    const Result<void> migrated = migrate(*connection_, clock);
    ASSERT_TRUE(migrated) << migrated.error().text();
    EXPECT_EQ(lines("SELECT role_id, resource_type, resource_pattern, permission "
                    "FROM role_permissions ORDER BY 1, 2, 3",
                    4),
              (std::vector<std::string>{"7 prompt greeting 4", "7 registered_model model 3",
                                        "7 registered_model no prompt 1", "8 experiment greeting 1",
                                        "8 prompt * -1", "8 registered_model * -1"}));
    EXPECT_EQ(*stored_schema_version(*connection_), schema_version());
}

}  // namespace
}  // namespace tune::tracker
