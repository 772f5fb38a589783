#include "tracker/artifacts/artifact_path.h"

#include <gtest/gtest.h>

namespace tune::tracker {
namespace {

TEST(ArtifactPath, KeepsOrdinaryNamesAsTheyAre) {
    for (const char* path :
         {"model.pkl", "a/b/c.txt", "images/x~1+2.png", "a b.txt", "ünïcode/日本語.json", "a%20b",
          "100%.txt", "a\\b", "...", "..a/b..", "a:b", "-rf", "~root", "a?b"}) {
        const Result<std::string> normal = normal_artifact_path(path);
        ASSERT_TRUE(normal.has_value()) << path;
        EXPECT_EQ(*normal, path);
    }
}

TEST(ArtifactPath, NormalisesSlashesAndDots) {
    EXPECT_EQ(*normal_artifact_path(""), "");
    EXPECT_EQ(*normal_artifact_path("."), "");
    EXPECT_EQ(*normal_artifact_path("a//b/./c/"), "a/b/c");
    EXPECT_EQ(join_artifact_path("", "x"), "x");
    EXPECT_EQ(join_artifact_path("a", ""), "a");
    EXPECT_EQ(join_artifact_path("a", "x"), "a/x");
    EXPECT_EQ(artifact_name("a/b/c"), "c");
    EXPECT_EQ(artifact_name("c"), "c");
}

/// Each is harmless only as long as nobody decodes it once more; MLflow refuses them all.
TEST(ArtifactPath, RefusesWhatLeadsOutsideNowOrAfterDecoding) {
    for (const char* path : {"..",
                             "../x",
                             "a/../b",
                             "a/..",
                             "/etc/passwd",
                             "//x",
                             "%2e%2e/x",
                             "%252e%252e/x",
                             "%25252e%25252e%25252fx",
                             "..%2f..%2fx",
                             "%2Fetc/passwd",
                             "%252Fetc",
                             "a#b",
                             "a%23b",
                             "..\\x",
                             "a\\..\\..\\x",
                             "..%5cx",
                             "..%255cx",
                             "a%2523b",
                             "C:/x",
                             "C:\\x",
                             "./C:/x",
                             "./\\\\host",
                             "./file:x",
                             "./%5c%5chost",
                             "C%3A%5Cx",
                             "\\\\host\\share",
                             "file:/etc/passwd",
                             "file:///etc/passwd",
                             "%66ile:/etc",
                             "a\nb",
                             "a%0ab",
                             "a%00b",
                             "x\x7f"}) {
        const Result<std::string> normal = normal_artifact_path(path);
        ASSERT_FALSE(normal.has_value()) << path << " became " << *normal;
        EXPECT_EQ(normal.error().code, Code::kInvalidParameterValue);
        EXPECT_EQ(normal.error().message, "Invalid path");
    }
    EXPECT_FALSE(normal_artifact_path(std::string("a\0b", 3)).has_value());
}

TEST(ArtifactPath, BoundsDepthLengthAndReservedNames) {
    std::string deep;
    for (std::size_t i = 0; i < kArtifactDepthMax; ++i) deep += "d/";
    EXPECT_TRUE(normal_artifact_path(deep).has_value());
    EXPECT_FALSE(normal_artifact_path(deep + "d").has_value());
    EXPECT_FALSE(normal_artifact_path(std::string(kArtifactPathBytesMax + 1, 'x')).has_value());
    EXPECT_FALSE(normal_artifact_path("a/.artifact.uploading.1").has_value());
}

TEST(ArtifactPath, OfAFileNeedsAName) {
    EXPECT_TRUE(artifact_file_path("a/b").has_value());
    EXPECT_FALSE(artifact_file_path("").has_value());
    EXPECT_FALSE(artifact_file_path("a/").has_value());
    EXPECT_FALSE(artifact_file_path("a/../b").has_value());
}

}  // namespace
}  // namespace tune::tracker
