#include <gtest/gtest.h>

#include "tracker/store/registry/model_source.h"
#include "tracker/store/registry/registry_validation.h"

namespace tune::tracker {
namespace {

TEST(ModelUri, IsReadAsMlflowReadsIt) {
    EXPECT_EQ(parse_model_uri("models:/m-1")->model_id, "m-1");
    EXPECT_EQ(parse_model_uri("models:/a/12")->version, "12");
    EXPECT_EQ(parse_model_uri("models:/a/LATEST")->stage, "");
    EXPECT_EQ(parse_model_uri("models:/a/Staging")->stage, "Staging");
    EXPECT_EQ(parse_model_uri("models:/a@b@c")->alias, "c");
    EXPECT_EQ(parse_model_uri("models:/a@b@c")->name, "a@b");
    for (const char* bad : {"models:/", "models:", "models:a", "models:/a/", "models:/a/1/2",
                            "models:/a@", "models:/ /1", "runs:/a", ""})
        EXPECT_FALSE(parse_model_uri(bad)) << bad;
}

TEST(Version, IsReadAsPythonReadsIntegers) {
    EXPECT_EQ(parse_version(" 1_0 ")->number, 10);
    EXPECT_EQ(parse_version("+2")->number, 2);
    EXPECT_EQ(parse_version("007")->text, "7");
    EXPECT_EQ(parse_version("-3")->text, "-3");
    EXPECT_EQ(parse_version("99999999999999999999")->number, -1);
    for (const char* bad : {"", " ", "1.0", "_1", "1_", "1__0", "x", "--1", "+"})
        EXPECT_EQ(parse_version(bad).error().message,
                  "Parameter 'version' must be an integer, got '" + std::string(bad) + "'.");
    EXPECT_FALSE(parse_version(std::string(5000, '9')));
}

}  // namespace
}  // namespace tune::tracker
