// Sources of local files: what a format reader sees of a folder or a file.

#include <gtest/gtest.h>

#include "loader/source/open_source.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

std::vector<std::string> paths_of(const std::vector<ObjectInfo>& objects) {
    std::vector<std::string> paths;
    for (const ObjectInfo& object : objects) paths.push_back(object.path);
    return paths;
}

std::string read_range(const ObjectSource& source, std::string_view path, std::uint64_t offset,
                       std::size_t count) {
    std::string text(count, '?');
    const ObjectInfo object = source.stat(path).value();
    source.read(object, offset, std::as_writable_bytes(std::span(text))).value();
    return text;
}

TEST(OpenSource, ReadsAFolderByPathAndByFileUrl) {
    const Scratch scratch;
    std::filesystem::create_directories(scratch / "a b");
    write_bytes(scratch / "a b/x", "0123456789");
    for (const std::string& url :
         {scratch.path().string(), "file://" + scratch.path().string(),
          "file:" + scratch.path().string(), "FILE://localhost" + scratch.path().string()}) {
        const auto source = open_source(url).value();
        EXPECT_EQ(source->stat("a b/x").value().bytes, 10u) << url;
        EXPECT_EQ(read_range(*source, "a b/x", 3, 4), "3456") << url;
        EXPECT_EQ(source->local_folder(), scratch.path()) << url;
    }
    const auto encoded = open_source("file://" + scratch.path().string() + "/a%20b").value();
    EXPECT_EQ(read_object(*encoded, "x").value(), "0123456789");
}

TEST(OpenSource, RefusesUrlsOfNoKnownKindAndEmptyOnes) {
    EXPECT_EQ(open_source("gopher://host/x").error().code, Code::kInvalidParameterValue);
    EXPECT_NE(open_source("gopher://host/x").error().message.find("gopher"), std::string::npos);
    EXPECT_EQ(open_source("").error().code, Code::kInvalidParameterValue);
}

TEST(LocalSource, ListsEveryFileSortedByPathRelativeToTheSource) {
    const Scratch scratch;
    std::filesystem::create_directories(scratch / "b/c");
    for (const char* name : {"z", "b/y", "b/c/x", "a"}) write_bytes(scratch / name, name);
    std::filesystem::create_directory_symlink(scratch.path(), scratch / "b/round");
    std::filesystem::create_symlink(scratch / "a", scratch / "link");
    const auto source = open_source(scratch.path().string()).value();
    EXPECT_EQ(paths_of(source->list("").value()),
              (std::vector<std::string>{"a", "b/c/x", "b/y", "link", "z"}));
    EXPECT_EQ(paths_of(source->list("b").value()), (std::vector<std::string>{"b/c/x", "b/y"}));
    EXPECT_EQ(source->list("none").error().code, Code::kResourceDoesNotExist);
}

TEST(LocalSource, OneFileIsReadUnderTheEmptyPath) {
    const Scratch scratch;
    write_bytes(scratch / "one.csv", "a,b");
    const auto source = open_source((scratch / "one.csv").string()).value();
    EXPECT_EQ(paths_of(source->list("").value()), std::vector<std::string>{""});
    EXPECT_EQ(read_object(*source, "").value(), "a,b");
}

TEST(LocalSource, NamesWhatIsMissingShorterOrChanged) {
    const Scratch scratch;
    write_bytes(scratch / "x", "0123456789");
    const auto source = open_source(scratch.path().string()).value();
    EXPECT_EQ(source->stat("none").error().code, Code::kResourceDoesNotExist);
    EXPECT_NE(source->stat("none").error().message.find((scratch / "none").string()),
              std::string::npos);
    EXPECT_EQ(source->stat("").error().code, Code::kResourceDoesNotExist);

    const ObjectInfo object = source->stat("x").value();
    std::byte bytes[8];
    const Result<void> beyond = source->read(object, 5, bytes);
    EXPECT_EQ(beyond.error().code, Code::kDataLoss);
    EXPECT_NE(beyond.error().message.find("3 bytes too early"), std::string::npos);

    write_bytes(scratch / "new", "abcdefghij");
    std::filesystem::rename(scratch / "new", scratch / "x");
    EXPECT_EQ(source->read(object, 0, bytes).error().code, Code::kDataLoss);
    EXPECT_EQ(read_object(*source, "x", 9).error().code, Code::kResourceExhausted);
}

TEST(LocalSource, NeverLeavesItsFolder) {
    const Scratch scratch;
    write_bytes(scratch / "secret", "s");
    std::filesystem::create_directories(scratch / "set");
    const auto source = open_source((scratch / "set").string()).value();
    for (const char* path : {"../secret", "a/../../secret", "/etc/passwd", ".."}) {
        EXPECT_EQ(source->stat(path).error().code, Code::kInvalidParameterValue) << path;
        EXPECT_EQ(source->list(path).error().code, Code::kInvalidParameterValue) << path;
        std::byte byte{};
        EXPECT_EQ(source->read({path, 1, ""}, 0, {&byte, 1}).error().code,
                  Code::kInvalidParameterValue)
            << path;
    }
    EXPECT_TRUE(is_object_path("a/..b/c.."));
    EXPECT_FALSE(is_object_path(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace tune::loader
