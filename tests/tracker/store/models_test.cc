#include <cmath>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

class ModelsTest : public StoreTest {
protected:
    LoggedModel create(const std::string& name, ExperimentId experiment_id = 0) {
        clock_.advance_ms(1);
        return run<LoggedModel>(CreateLoggedModel{.experiment_id = experiment_id, .name = name});
    }

    std::string names(SearchLoggedModels query) {
        if (query.experiment_ids.empty()) query.experiment_ids = {0};
        const auto page = store_->search_logged_models(query);
        if (!page) return text_of(page);
        std::string out;
        for (const LoggedModel& model : page->items) out += (out.empty() ? "" : " ") + model.name;
        return out;
    }
};

TEST_F(ModelsTest, ArePendingUntilFinalized) {
    const LoggedModel created =
        run<LoggedModel>(CreateLoggedModel{.experiment_id = 0,
                                           .name = "net",
                                           .model_type = "cnn",
                                           .source_run_id = "r",
                                           .params = {{"b", "1"}, {"a", "2"}},
                                           .tags = {{"z", "1"}}});
    EXPECT_EQ(created.model_id.size(), 34u);
    EXPECT_TRUE(created.model_id.starts_with("m-"));
    EXPECT_EQ(created.artifact_uri,
              "mlflow-artifacts:/0/models/" + created.model_id + "/artifacts");
    EXPECT_EQ(created.status, LoggedModelStatus::kPending);
    EXPECT_EQ(pairs(created.params), "a=2 b=1");
    clock_.advance_ms(9);
    const LoggedModel ready =
        run<LoggedModel>(FinalizeLoggedModel{created.model_id, LoggedModelStatus::kReady});
    EXPECT_EQ(ready.status, LoggedModelStatus::kReady);
    EXPECT_EQ(ready.creation_time_ms, 1'000);
    EXPECT_EQ(ready.last_updated_time_ms, 1'009);
    EXPECT_EQ(ready.model_type, "cnn");
    EXPECT_FALSE(run<LoggedModel>(CreateLoggedModel{.experiment_id = 0}).name.empty());
}

TEST_F(ModelsTest, TakeTagsParamsAndMetrics) {
    const std::string id = create("net").model_id;
    run(SetLoggedModelTags{id, {{"a", "1"}, {"a", "2"}, {"b", "1"}}});
    run(DeleteLoggedModelTag{id, "b"});
    EXPECT_EQ(refusal(DeleteLoggedModelTag{id, "b"}),
              "RESOURCE_DOES_NOT_EXIST: No tag with key 'b' found for model with ID '" + id + "'.");
    run(LogLoggedModelParams{id, {{"p", "1"}}});
    const std::string run_id = create_run();
    const Metric metric{"acc", 0.5, 7, 3, id, "data", "d1"};
    run(LogMetric{run_id, metric});
    run(LogBatch{.run_id = run_id, .metrics = {metric, {"acc", 0.6, 8, 4, id}, {"own", 1, 1, 1}}});
    const auto model = store_->get_logged_model(id);
    ASSERT_TRUE(model);
    EXPECT_EQ(pairs(model->tags), "a=2");
    EXPECT_EQ(pairs(model->params), "p=1");
    EXPECT_EQ(text(model->metrics), "3:0.5@7 4:0.6@8");
    EXPECT_EQ(model->metrics[0].run_id, run_id);
    EXPECT_EQ(model->metrics[0].model_id, id);
    EXPECT_EQ(model->metrics[0].dataset_digest, "d1");
    EXPECT_EQ(history(run_id, "acc"), "3:0.5@7 4:0.6@8");
    EXPECT_EQ(refusal(LogMetric{run_id, {"acc", 1, 1, 1, "m-nope"}}),
              "RESOURCE_DOES_NOT_EXIST: Logged model with ID 'm-nope' not found.");
    EXPECT_EQ(history(run_id, "acc"), "3:0.5@7 4:0.6@8");
}

TEST_F(ModelsTest, DeletedOnesAreGoneForReads) {
    const std::string id = create("net").model_id;
    run(DeleteLoggedModel{id});
    run(DeleteLoggedModel{id});
    EXPECT_EQ(text_of(store_->get_logged_model(id)),
              "RESOURCE_DOES_NOT_EXIST: Logged model with ID '" + id + "' not found.");
    EXPECT_EQ(names({}), "");
    for (const Command& command :
         {Command(FinalizeLoggedModel{"m-x"}), Command(DeleteLoggedModel{"m-x"}),
          Command(SetLoggedModelTags{"m-x", {}}), Command(LogLoggedModelParams{"m-x", {}})})
        EXPECT_EQ(refusal(command),
                  "RESOURCE_DOES_NOT_EXIST: Logged model with ID 'm-x' not found.");
}

TEST_F(ModelsTest, SearchFiltersAndOrders) {
    const auto other = create_experiment("other");
    const std::string a = create("a").model_id;
    const std::string b = create("b").model_id;
    create("c");
    create("elsewhere", other);
    run(SetLoggedModelTags{a, {{"kind", "x"}}});
    run(SetLoggedModelTags{b, {{"kind", "y"}}});
    run(LogLoggedModelParams{a, {{"lr", "0.1"}}});
    run<LoggedModel>(FinalizeLoggedModel{b, LoggedModelStatus::kReady});
    const std::string run_id = create_run();
    run(LogBatch{.run_id = run_id,
                 .metrics = {{"acc", 0.9, 1, 1, a, "d1", "h"},
                             {"acc", 0.1, 2, 2, a, "d2", "h"},
                             {"acc", 0.5, 1, 1, b, "d1", "h"}}});
    EXPECT_EQ(names({}), "c b a");
    EXPECT_EQ(names({.experiment_ids = {0, other}}), "elsewhere c b a");
    EXPECT_EQ(names({.filter = "name = 'b'"}), "b");
    EXPECT_EQ(names({.filter = "name IN ('a', 'c') AND tags.kind = 'x'"}), "a");
    EXPECT_EQ(names({.filter = "tags.kind IN ('x','y')"}), "b a");
    EXPECT_EQ(names({.filter = "params.lr = '0.1'"}), "a");
    EXPECT_EQ(names({.filter = "status = 'READY'"}), "b");
    EXPECT_EQ(names({.filter = "status = 'LOGGED_MODEL_READY'"}), "b");
    EXPECT_EQ(names({.filter = "metrics.acc > 0.4"}), "b a");
    EXPECT_EQ(names({.filter = "metrics.acc > 0.4", .datasets = {{"d2"}}}), "");
    EXPECT_EQ(names({.datasets = {{"d2"}}}), "a");
    EXPECT_EQ(names({.order_by = {{"metrics.acc", true}}}), "a b c");
    EXPECT_EQ(names({.order_by = {{"metrics.acc", false}}}), "b a c");
    EXPECT_EQ(names({.order_by = {{"metrics.acc", false, "d1"}}}), "a b c");
    EXPECT_EQ(names({.order_by = {{"name", false}}}), "c b a");
    EXPECT_EQ(names({.order_by = {{"creation_timestamp", true}}}), "a b c");
    EXPECT_EQ(names({.order_by = {{"params.a", true}}}),
              "INVALID_PARAMETER_VALUE: Invalid order by field name: params.a. Only metrics are "
              "supported.");
    EXPECT_EQ(names({.order_by = {{"bogus", true}}}),
              "INVALID_PARAMETER_VALUE: Invalid order by field name: bogus");
    EXPECT_EQ(
        names({.datasets = {{""}}}),
        "INVALID_PARAMETER_VALUE: `dataset_name` in the `datasets` clause must be specified.");
}

TEST_F(ModelsTest, PagesJoinToTheWhole) {
    for (int i = 0; i < 25; ++i) create("m" + std::to_string(i));
    std::string joined;
    SearchLoggedModels query{.experiment_ids = {0}, .order_by = {{"name", true}}, .max_results = 4};
    do {
        const auto page = store_->search_logged_models(query);
        ASSERT_TRUE(page);
        for (const LoggedModel& model : page->items)
            joined += (joined.empty() ? "" : " ") + model.name;
        query.page_token = page->next_page_token;
    } while (!query.page_token.empty());
    EXPECT_EQ(joined, names({.order_by = {{"name", true}}}));
}

}  // namespace
}  // namespace tune::tracker
