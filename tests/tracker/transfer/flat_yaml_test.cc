#include "tracker/transfer/source/flat_yaml.h"

#include <gtest/gtest.h>

namespace tune::tracker {
namespace {

FlatYaml read(const std::string& text) {
    Result<FlatYaml> yaml = read_flat_yaml(text);
    EXPECT_TRUE(yaml) << yaml.error().text();
    return yaml ? *yaml : FlatYaml{};
}

TEST(FlatYaml, ReadsWhatMlflowWrites) {
    const FlatYaml yaml = read(
        "artifact_uri: file:///x\nend_time: null\nname: ''\nrun_name: \"a\\nb \\u00fc\"\n"
        "start_time: 1700000000000\nstatus: 3\ntags: []\ndescription: |-\n  one\n  two\n"
        "experiment_id: '0'\n");
    EXPECT_EQ(yaml.text("artifact_uri"), "file:///x");
    EXPECT_FALSE(yaml.optional_text("end_time"));
    EXPECT_EQ(yaml.optional_text("name"), "");
    EXPECT_EQ(yaml.text("run_name"), "a\nb ü");
    EXPECT_EQ(yaml.integer("start_time"), 1'700'000'000'000);
    EXPECT_EQ(yaml.text("description"), "one\ntwo");
    EXPECT_EQ(yaml.text("experiment_id"), "0");
    EXPECT_FALSE(yaml.integer("tags"));
}

TEST(FlatYaml, ReadsMapsOneDeepAndLeavesTheRestOut) {
    const FlatYaml yaml = read(
        "a: 1\ntags:\n  k: v\n  empty: {}\n  deep: {x: {y: z}}\n  after: 2\nlist: [1, {b: c}]\n"
        "last: end\n");
    EXPECT_EQ(yaml.text("a"), "1");
    EXPECT_EQ(yaml.maps.at("tags").at("k"), "v");
    EXPECT_EQ(yaml.maps.at("tags").at("after"), "2");
    EXPECT_EQ(yaml.maps.at("tags").count("deep"), 0u);
    EXPECT_EQ(yaml.text("last"), "end");
    EXPECT_EQ(yaml.scalars.count("b"), 0u);
}

TEST(FlatYaml, RefusesWhatIsNoneOrHarmful) {
    for (const std::string bad :
         {"a: &x 1\n", "a: *x\n", "- 1\n", "[1", "{a: [}", "\t\tx: 1\n: :\n"}) {
        const Result<FlatYaml> yaml = read_flat_yaml(bad);
        ASSERT_FALSE(yaml) << bad;
        EXPECT_EQ(yaml.error().code, Code::kDataLoss);
    }
    EXPECT_FALSE(read_flat_yaml(std::string(200'000, '[')));
    EXPECT_FALSE(read_flat_yaml(""));
    std::string deep = "a: ";
    for (int i = 0; i < 100'000; ++i) deep += "{a: ";
    EXPECT_FALSE(read_flat_yaml(deep));
}

}  // namespace
}  // namespace tune::tracker
