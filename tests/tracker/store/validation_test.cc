// The sentences are those of mlflow 3.17.2 (utils/validation.py).

#include "tracker/store/commands/validation.h"

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

constexpr const char* kBadCharacters =
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
    "colon(:) and slashes (/).";

class ValidationTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        id_ = create_run();
    }
    std::string id_;
};

std::string repeat(const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
}

TEST_F(ValidationTest, KeysAreNames) {
    for (const char* good :
         {"a", "a/b", "a.b-c:d e_f", "k\xc3\xa4se", "\xe6\x8d\x9f\xe5\xa4\xb1", "a b/c", ".a", "0"})
        EXPECT_EQ(refusal(LogParam{id_, {good, "1"}}), "") << good;
    for (const char* bad : {"a@b", "a\nb", "a\"b", "a#", "caf\xc3", "\xf0\x9f\x98\x80"})
        EXPECT_TRUE(refusal(LogParam{id_, {bad, "1"}}).ends_with(kBadCharacters)) << bad;
    EXPECT_EQ(refusal(LogParam{id_, {"a@b", "1"}}),
              "INVALID_PARAMETER_VALUE: Invalid value \"a@b\" for parameter 'key' supplied: " +
                  std::string(kBadCharacters));
}

TEST_F(ValidationTest, KeysAreNormalPaths) {
    const auto refused = [&](const std::string& key) { return refusal(SetTag{id_, {key, "1"}}); };
    const std::string start = "INVALID_PARAMETER_VALUE: Invalid value ";
    const std::string middle =
        " for parameter 'key' supplied: Names may be treated as files in certain cases, and must "
        "not resolve to other names when treated as such. This name would resolve to ";
    EXPECT_EQ(refused("a//b"), start + "\"a//b\"" + middle + "'a/b'");
    EXPECT_EQ(refused("a/./b"), start + "\"a/./b\"" + middle + "'a/b'");
    EXPECT_EQ(refused("a/"), start + "\"a/\"" + middle + "'a'");
    EXPECT_EQ(refused("a/../b"), start + "\"a/../b\"" + middle + "'b'");
    EXPECT_EQ(refused(""), start + "\"\"" + middle + "'.'");
    EXPECT_EQ(refused("."), start + "\".\"" + middle + "'.'");
    EXPECT_EQ(refused("../x"), start + "\"../x\"" + middle + "'../x'");
    EXPECT_EQ(refused("/x"), start + "\"/x\"" + middle + "'/x'");
    EXPECT_EQ(refused("//x"), start + "\"//x\"" + middle + "'//x'");
    EXPECT_EQ(refused("///x"), start + "\"///x\"" + middle + "'/x'");
    EXPECT_EQ(refused("..x"), start + "\"..x\"" + middle + "'..x'");
}

TEST_F(ValidationTest, MetricsAreChecked) {
    EXPECT_EQ(refusal(LogMetric{id_, {"a", 1, -1, 0}}),
              "INVALID_PARAMETER_VALUE: Invalid value -1 for parameter 'timestamp' supplied: "
              "metric 'a' (value=1.0). Timestamp must be a nonnegative long (64-bit integer) ");
    EXPECT_EQ(refusal(LogMetric{id_, {"a@", 1, 1, 0}}),
              "INVALID_PARAMETER_VALUE: Invalid value \"a@\" for parameter 'name' supplied: " +
                  std::string(kBadCharacters));
    EXPECT_EQ(refusal(LogMetric{id_, {std::string(251, 'a'), 1, 1, 0}}),
              "INVALID_PARAMETER_VALUE: 'Metric name' exceeds the maximum length of 250 "
              "characters");
    EXPECT_EQ(refusal(LogMetric{id_, {repeat("\xc3\xa4", 250), 1, 1, 0}}), "");
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .metrics = {{"a", 1, 1, 0}, {"a", 1, -5, 0}}}),
              "INVALID_PARAMETER_VALUE: Invalid value -5 for parameter 'metrics[1].timestamp' "
              "supplied: metric 'a' (value=1.0). Timestamp must be a nonnegative long (64-bit "
              "integer) ");
}

TEST_F(ValidationTest, BatchItemsAreNamedByPosition) {
    EXPECT_TRUE(refusal(LogBatch{.run_id = id_, .params = {{"a", "1"}, {"b@", "1"}}})
                    .starts_with("INVALID_PARAMETER_VALUE: Invalid value \"b@\" for parameter "
                                 "'params[1].key' supplied: "));
    EXPECT_TRUE(refusal(LogBatch{.run_id = id_, .tags = {{"a@", "1"}}})
                    .starts_with("INVALID_PARAMETER_VALUE: Invalid value \"a@\" for parameter "
                                 "'tags[0].key' supplied: "));
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .tags = {{std::string(251, 'a'), "1"}}}),
              "INVALID_PARAMETER_VALUE: 'tags[0].key' exceeds the maximum length of 250 "
              "characters");
    EXPECT_EQ(refusal(LogBatch{.run_id = "-"}),
              "INVALID_PARAMETER_VALUE: Invalid value \"-\" for parameter 'run_id' supplied.");
}

TEST_F(ValidationTest, MetricsNameADatasetByBothOrNotAtAll) {
    const std::string sentence =
        "INVALID_PARAMETER_VALUE: Both dataset_name and dataset_digest must be provided if one is "
        "provided";
    const Metric half{.key = "m", .dataset_name = "iris"};
    EXPECT_EQ(refusal(LogMetric{id_, half}), sentence);
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .metrics = {Metric{.key = "m"}, half}}), sentence);
    EXPECT_EQ(refusal(LogMetric{id_, {.key = "m", .dataset_digest = "d"}}), sentence);
}

TEST_F(ValidationTest, BatchesHaveLimits) {
    const auto sentence = [](int most, int got, const std::string& what) {
        return "INVALID_PARAMETER_VALUE: A batch logging request can contain at most " +
               std::to_string(most) + " " + what + ". Got " + std::to_string(got) + " " + what +
               ". Please split up " + what + " across multiple requests and try again.";
    };
    const auto metrics = [](std::size_t count) {
        return std::vector<Metric>(count, Metric{.key = "m"});
    };
    const auto params = [](std::size_t count) { return std::vector<Param>(count, {"p", "1"}); };
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .metrics = metrics(1001)}),
              sentence(1000, 1001, "metrics"));
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .params = params(101)}),
              sentence(100, 101, "params"));
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .tags = std::vector<Tag>(101, {"t", "1"})}),
              sentence(100, 101, "tags"));
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .metrics = metrics(950), .params = params(51)}),
              sentence(1000, 1001, "metrics, params, and tags"));
    EXPECT_EQ(refusal(LogBatch{.run_id = id_, .params = {{"dd", "1"}, {"a", "1"}, {"dd", "2"}}}),
              "INVALID_PARAMETER_VALUE: Duplicate parameter keys have been submitted: ['dd']. "
              "Please ensure the request contains only one param value per param key.");
}

TEST_F(ValidationTest, LongValuesAreCut) {
    run(LogParam{id_, {"p", std::string(6001, 'x')}});
    run(LogParam{id_, {"p", std::string(7000, 'x')}});  // the same when cut
    run(SetTag{id_, {"t", repeat("\xc3\xa4", 8001)}});
    const Run read = get(id_);
    EXPECT_EQ(read.params[0].value.size(), 6000u);
    EXPECT_EQ(read.tags[1].value.size(), 16'000u);
}

TEST_F(ValidationTest, LongValuesAreRefusedWhenSoConfigured) {
    options_.truncate_long_values = false;
    reopen();
    EXPECT_EQ(refusal(LogParam{id_, {"p", std::string(6001, 'x')}}),
              "INVALID_PARAMETER_VALUE: 'Param value' exceeds the maximum length of 6000 "
              "characters");
    EXPECT_EQ(refusal(SetTag{id_, {"t", std::string(8001, 'x')}}),
              "INVALID_PARAMETER_VALUE: 'value' exceeds the maximum length of 8000 characters");
}

TEST_F(ValidationTest, DatasetsHaveLimits) {
    const auto refused = [&](const DatasetInput& input) {
        return refusal(LogInputs{.run_id = id_, .datasets = {input}});
    };
    EXPECT_EQ(refused({{.name = std::string(501, 'n')}, {}}),
              "INVALID_PARAMETER_VALUE: 'name' exceeds the maximum length of 500 characters");
    EXPECT_EQ(refused({{.digest = std::string(37, 'n')}, {}}),
              "INVALID_PARAMETER_VALUE: 'digest' exceeds the maximum length of 36 characters");
    EXPECT_EQ(refused({{.source = std::string(65'536, 'n')}, {}}),
              "INVALID_PARAMETER_VALUE: 'source' exceeds the maximum length of 65535 characters");
    EXPECT_EQ(refused({{.schema = std::string(1'048'576, 'n')}, {}}),
              "INVALID_PARAMETER_VALUE: 'schema' exceeds the maximum length of 1048575 characters");
    EXPECT_EQ(refused({{}, {{"k", std::string(501, 'v')}}}),
              "INVALID_PARAMETER_VALUE: 'value' exceeds the maximum length of 500 characters");
}

TEST_F(ValidationTest, ModelNamesAreChecked) {
    EXPECT_EQ(refusal(CreateLoggedModel{.experiment_id = 0, .name = "a/b"}),
              "INVALID_PARAMETER_VALUE: Invalid model name ('a/b') provided. Model name must be a "
              "non-empty string and cannot contain the following characters: ('/', ':', '.', '%', "
              "'\"', \"'\")");
}

}  // namespace
}  // namespace tune::tracker
