#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using LinksTest = StoreTest;

DatasetInput dataset(const std::string& name, const std::string& digest,
                     const std::string& context = "") {
    DatasetInput input{{name, digest, "local", "{\"uri\": \"" + name + "\"}", "schema", {}}, {}};
    if (!context.empty()) input.tags = {{"mlflow.data.context", context}};
    return input;
}

TEST_F(LinksTest, InputsAreOnePerExperimentNameAndDigest) {
    const std::string first = create_run();
    const std::string second = create_run();
    run(LogInputs{
        .run_id = first,
        .datasets = {dataset("a", "1", "train"), dataset("a", "1", "ignored"), dataset("b", "1")},
        .models = {{"m-1"}, {"m-1"}}});
    DatasetInput other = dataset("a", "1", "eval");
    other.dataset.source = "changed";
    run(LogInputs{.run_id = second, .datasets = {other}});
    run(LogInputs{.run_id = first, .datasets = {dataset("a", "1", "again")}});
    const Run read = get(first);
    ASSERT_EQ(read.dataset_inputs.size(), 2u);
    EXPECT_EQ(read.dataset_inputs[0].dataset.name, "a");
    EXPECT_EQ(read.dataset_inputs[0].dataset.schema, "schema");
    EXPECT_FALSE(read.dataset_inputs[0].dataset.profile);
    EXPECT_EQ(pairs(read.dataset_inputs[0].tags), "mlflow.data.context=train");
    EXPECT_TRUE(read.dataset_inputs[1].tags.empty());
    ASSERT_EQ(read.model_inputs.size(), 1u);
    EXPECT_EQ(read.model_inputs[0].model_id, "m-1");
    EXPECT_EQ(get(second).dataset_inputs[0].dataset.source, "{\"uri\": \"a\"}");
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<RunLinksChanged>().size(), 2u);
}

TEST_F(LinksTest, OutputsKeepTheirOrderAndRepeatsAreHarmless) {
    const std::string id = create_run();
    run(LogOutputs{.run_id = id, .models = {{"m-b", 3}, {"m-a", 1}}});
    run(LogOutputs{.run_id = id, .models = {{"m-b", 3}, {"m-c", 2}}});
    const Run read = get(id);
    ASSERT_EQ(read.model_outputs.size(), 3u);
    EXPECT_EQ(read.model_outputs[0].model_id, "m-b");
    EXPECT_EQ(read.model_outputs[0].step, 3);
    EXPECT_EQ(read.model_outputs[1].model_id, "m-a");
    EXPECT_EQ(read.model_outputs[2].model_id, "m-c");
}

TEST_F(LinksTest, DatasetsAreSearched) {
    const auto other = create_experiment("other");
    run(LogInputs{.run_id = create_run(), .datasets = {dataset("a", "1", "train")}});
    run(LogInputs{.run_id = create_run(), .datasets = {dataset("a", "1", "train")}});
    run(LogInputs{.run_id = create_run(), .datasets = {dataset("a", "1")}});
    run(LogInputs{.run_id = create_run(other), .datasets = {dataset("b", "2", "eval")}});
    const auto text_of_all = [&](std::vector<ExperimentId> ids) {
        std::string out;
        const auto found = store_->search_datasets(ids);
        for (const DatasetSummary& one : *found)
            out += std::to_string(one.experiment_id) + one.name + one.digest + one.context + " ";
        return out;
    };
    EXPECT_EQ(text_of_all({0}), "0a1 0a1train ");
    EXPECT_EQ(text_of_all({0, other}), "0a1 0a1train 1b2eval ");
    EXPECT_EQ(text_of_all({}), "");
}

}  // namespace
}  // namespace tune::tracker
