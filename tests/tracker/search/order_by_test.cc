// Expected results and sentences as from mlflow 3.17.2.

#include "tracker/search/order_by.h"

#include <gtest/gtest.h>

namespace tune::tracker::search::order_by_test {
namespace {

constexpr const char* kEntities[] = {"attribute", "metric", "param", "tag", "dataset"};

std::string parsed(Subject subject, const std::vector<std::string>& texts) {
    const auto keys = parse_order_by(subject, texts);
    if (!keys) return keys.error().message;
    std::string out;
    for (const OrderKey& key : *keys)
        out += (out.empty() ? "" : ", ") + std::string(kEntities[static_cast<int>(key.entity)]) +
               " " + key.key + (key.is_ascending ? " asc" : " desc");
    return out;
}

std::string run_order(const std::string& text) {
    return parsed(Subject::kRuns, {text});
}

TEST(OrderBy, ReadsRunKeys) {
    EXPECT_EQ(run_order("metrics.a"), "metric a asc");
    EXPECT_EQ(run_order("metrics.a  DESC"), "metric a desc");
    EXPECT_EQ(run_order("metrics.`a b` asc"), "metric a b asc");
    EXPECT_EQ(run_order("metrics.\"a b\" DESC"), "metric a b desc");
    EXPECT_EQ(run_order("params.order desc"), "param order desc");
    EXPECT_EQ(run_order("tags.group"), "tag group asc");
    EXPECT_EQ(run_order("attribute.start_time DESC"), "attribute start_time desc");
    EXPECT_EQ(run_order("Created"), "attribute start_time asc");
    EXPECT_EQ(parsed(Subject::kRuns, {}), "");
}

TEST(OrderBy, RefusesRunKeysWithMlflowsSentence) {
    EXPECT_EQ(run_order("metrics.a desc desc"),
              "Invalid order_by clause 'metrics.a desc desc'. Could not be parsed.");
    EXPECT_EQ(run_order("metrics.a foo"),
              "Invalid ordering key in order_by clause 'metrics.a foo'.");
    EXPECT_EQ(run_order(""), "Invalid order_by clause ''. Could not be parsed.");
    EXPECT_EQ(run_order("metrics.a, metrics.b"),
              "Invalid order_by clause 'metrics.a, metrics.b'. Could not be parsed.");
    EXPECT_EQ(run_order("metrics.a;"),
              "Invalid order_by clause 'metrics.a;'. Could not be parsed.");
    EXPECT_EQ(run_order("foo.a"),
              "Invalid entity type 'foo'. Valid values are ['metric', 'parameter', 'tag', "
              "'attribute', 'dataset']");
    EXPECT_EQ(run_order("lifecycle_stage"),
              "Invalid attribute key 'lifecycle_stage' specified. Valid keys are '{'artifact_uri', "
              "'created', 'Created', 'end_time', 'run_id', 'run_name', 'start_time', 'status', "
              "'user_id'}'");
    EXPECT_EQ(run_order("dataset.name"), "Invalid identifier type 'dataset'");
    EXPECT_EQ(parsed(Subject::kRuns, {"metrics.a", "metrics.a DESC"}),
              "`order_by` contains duplicate fields: ['metrics.a', 'metrics.a DESC']");
    EXPECT_EQ(parsed(Subject::kRuns, std::vector<std::string>(51, "metrics.a")),
              "order_by has 51 keys; at most 50 are supported.");
}

TEST(OrderBy, QuotesLongTextsUpToAWholeCharacter) {
    std::string key = "x";
    for (int i = 0; i < 300; ++i) key += "日";
    const std::string said = run_order(key);
    const std::string begin = "Invalid attribute key '" + key.substr(0, 1 + 3 * 166) + "...'";
    EXPECT_EQ(said.substr(0, begin.size()), begin);
}

TEST(OrderBy, ReadsExperimentKeys) {
    EXPECT_EQ(parsed(Subject::kExperiments, {"name DESC", "experiment_id"}),
              "attribute name desc, attribute experiment_id asc");
    EXPECT_EQ(parsed(Subject::kExperiments, {"tag.a"}), "Invalid order_by entity: tag");
    EXPECT_EQ(parsed(Subject::kExperiments, {"metrics.a"}),
              "Invalid entity type 'metrics'. Valid entity types are ('attribute', 'tag', 'tags')");
    EXPECT_EQ(parsed(Subject::kExperiments, {"id desc desc"}),
              "Invalid order_by clause 'id desc desc'. Could not be parsed.");
}

}  // namespace
}  // namespace tune::tracker::search::order_by_test
