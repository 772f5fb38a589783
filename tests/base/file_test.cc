#include "base/system/file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/id.h"

namespace tune {
namespace {

class FileTest : public testing::Test {
protected:
    void SetUp() override { std::filesystem::create_directories(directory_); }
    void TearDown() override { std::filesystem::remove_all(directory_); }
    std::filesystem::path directory_ =
        std::filesystem::temp_directory_path() / ("file_test_" + random_hex(8));
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
    ASSERT_TRUE(write_file_atomic(directory_ / "a", "one").has_value());
    ASSERT_TRUE(write_file_atomic(directory_ / "a", std::string("two\0three", 9)).has_value());
    EXPECT_EQ(read_file(directory_ / "a").value(), std::string("two\0three", 9));
}

TEST_F(FileTest, ReplacementLeavesNoTemporaryFile) {
    ASSERT_TRUE(write_file_atomic(directory_ / "a", "one").has_value());
    const auto count = std::distance(std::filesystem::directory_iterator(directory_), {});
    EXPECT_EQ(count, 1);
}

TEST_F(FileTest, MissingFileIsNamed) {
    const Result<std::string> content = read_file(directory_ / "none");
    ASSERT_FALSE(content.has_value());
    EXPECT_EQ(content.error().code, Code::kResourceDoesNotExist);
    EXPECT_NE(content.error().message.find("none"), std::string::npos);
}

TEST_F(FileTest, TooLargeFileIsRefused) {
    ASSERT_TRUE(write_file_atomic(directory_ / "a", "0123456789").has_value());
    EXPECT_EQ(read_file(directory_ / "a", 9).error().code, Code::kResourceExhausted);
    EXPECT_TRUE(read_file(directory_ / "a", 10).has_value());
}

TEST_F(FileTest, WritingIntoAMissingDirectoryFails) {
    EXPECT_FALSE(write_file_atomic(directory_ / "x" / "a", "one").has_value());
}

TEST(RandomHex, HasTheAskedLengthAndDiffers) {
    EXPECT_EQ(random_hex(16).size(), 32u);
    EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace tune
