// The parts of the Delta reader that need no Arrow: the examples of the protocol's text, and
// damage.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "loader/delta/action.h"
#include "loader/delta/deletion_vector.h"
#include "loader/delta/log_files.h"
#include "loader/delta/snapshot.h"
#include "loader/source/open_source.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The rows 3, 4, 7, 11, 18 and 29, as delta-kernel-rs writes its inline example.
constexpr const char* kInlineText = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
const DeletionVector kInline{'i', kInlineText, {}, 44, 6};

TEST(DeletionVector, TheInlineExampleHoldsItsRows) {
    const auto rows = rows_inline(kInline);
    ASSERT_TRUE(rows.has_value()) << rows.error().text();
    EXPECT_THAT(*rows, ElementsAre(3, 4, 7, 11, 18, 29));
}

TEST(DeletionVector, TheProtocolsFileExampleHasItsName) {
    const DeletionVector vector{'u', "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6};
    EXPECT_EQ(deletion_file(vector).value(),
              "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
    EXPECT_EQ(vector.unique_id(), "uab^-aqEH.-t@S}K{vb[*k^@4");
}

TEST(DeletionVector, Z85IsThatOfItsSpecification) {
    EXPECT_EQ(decode_z85("HelloWorld").value(), "\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b");
    EXPECT_EQ(decode_z85("").value(), "");
    EXPECT_FALSE(decode_z85("Hell").has_value());
    EXPECT_FALSE(decode_z85("Hel o").has_value());
    EXPECT_FALSE(decode_z85("#####").has_value());
}

TEST(DeletionVector, EveryCutAndEveryCardinalityThatIsNotItsIsRefused) {
    const std::string bytes = decode_z85(kInline.path_or_inline).value().substr(0, 44);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(parse_roaring(std::as_bytes(std::span(bytes.data(), size)), 6)) << size;
    for (const std::int64_t cardinality : {-1, 0, 5, 7}) {
        DeletionVector vector = kInline;
        vector.cardinality = cardinality;
        EXPECT_FALSE(rows_inline(vector).has_value()) << cardinality;
    }
}

std::string fault(const std::string& action) {
    const auto parsed = parse_commit(action);
    return parsed ? "no error" : parsed.error().message;
}

TEST(DeltaAction, PathsMayNotLeaveTheTable) {
    EXPECT_EQ(file_path("a%20b/c%3Dd.parquet").value(), "a b/c=d.parquet");
    for (const char* path : {"../x", "a/../../x", "%2e%2e/x", "", "a%00b"})
        EXPECT_FALSE(file_path(path).has_value()) << path;
    for (const char* path : {"/etc/passwd", "s3://bucket/x", "file:/x"})
        EXPECT_EQ(file_path(path).error().code, Code::kNotImplemented) << path;
}

TEST(DeltaAction, DamageIsNamedWithItsLine) {
    EXPECT_EQ(fault("{\"add\":{\"path\":\"x\",\"size\":1}}\n\n{\"txn\":{}}"), "no error");
    EXPECT_THAT(fault("{}\n{\"add\":{\"size\":1}}"), HasSubstr("line 2: the action 'add'"));
    EXPECT_THAT(fault("{\"add\":{\"path\":\"x\",\"size\":18446744073709551615}}"),
                HasSubstr("'size'"));
    EXPECT_THAT(fault("{\"protocol\":{}}"), HasSubstr("'minReaderVersion'"));
    EXPECT_THAT(fault("{\"metaData\":[]}"), HasSubstr("'schemaString'"));
    EXPECT_THAT(fault("{\"add\":"), HasSubstr("line 1"));
    EXPECT_THAT(fault("7"), HasSubstr("no JSON object"));
}

TEST(DeltaAction, UnknownFeaturesAndVersionsAreRefusedByName) {
    EXPECT_TRUE(check_protocol({3, {"deletionVectors", "columnMapping"}}).has_value());
    EXPECT_TRUE(check_protocol({2, {"ignored before version 3"}}).has_value());
    EXPECT_THAT(check_protocol({3, {"variantType"}}).error().message, HasSubstr("'variantType'"));
    EXPECT_THAT(check_protocol({4, {}}).error().message, HasSubstr("version 4"));
}

std::string checkpoint(std::int64_t version, const std::string& rest) {
    const std::string name = commit_name(version);
    return name.substr(0, name.size() - 4) + "checkpoint" + rest;
}

TEST(DeltaLog, TheNewestCompleteCheckpointIsTaken) {
    std::vector<std::string> names = {"_last_checkpoint", "x.json", checkpoint(2, ".parquet"),
                                      checkpoint(4, ".0000000001.0000000002.parquet")};
    for (std::int64_t version = 0; version < 6; ++version) names.push_back(commit_name(version));
    LogSegment segment = choose_segment(names, {}).value();
    EXPECT_EQ(segment.version, 5);
    EXPECT_THAT(segment.checkpoint, ElementsAre(checkpoint(2, ".parquet")));
    EXPECT_THAT(segment.commits, ElementsAre(3, 4, 5));
    names.push_back(checkpoint(4, ".0000000002.0000000002.parquet"));
    segment = choose_segment(names, {}).value();
    EXPECT_EQ(segment.checkpoint.size(), 2U);
    EXPECT_THAT(segment.commits, ElementsAre(5));
    EXPECT_THAT(choose_segment(names, 1).value().commits, ElementsAre(0, 1));
    EXPECT_TRUE(choose_segment(names, 1).value().checkpoint.empty());
}

TEST(DeltaLog, GapsAndVersionsThatAreNotThereAreSaid) {
    EXPECT_EQ(choose_segment({}, {}).error().code, Code::kResourceDoesNotExist);
    const std::vector<std::string> names = {commit_name(0), commit_name(2)};
    EXPECT_EQ(choose_segment(names, {}).error().code, Code::kDataLoss);
    EXPECT_THAT(choose_segment(names, 3).error().message, HasSubstr("its newest is 2"));
    EXPECT_THAT(choose_segment({commit_name(5)}, {}).error().message, HasSubstr("cleaned up"));
    EXPECT_EQ(commit_name(INT64_MAX).size(), 25U);
    EXPECT_FALSE(commit_version("0.json").has_value());
}

TEST(DeltaSnapshot, ReplaysAddsRemovesAndTheLastSchema) {
    const Scratch scratch;
    const auto commit = [&](std::int64_t version, const std::string& text) {
        std::filesystem::create_directories(scratch / "_delta_log");
        write_bytes(scratch / ("_delta_log/" + commit_name(version)), text);
    };
    const auto add = [](const std::string& path) {
        return "{\"add\":{\"path\":\"" + path +
               "\",\"size\":1,\"partitionValues\":{\"p\":\"\"}}}\n";
    };
    commit(0,
           "{\"protocol\":{\"minReaderVersion\":1}}\n"
           "{\"metaData\":{\"schemaString\":\"one\"}}\n" +
               add("b") + add("a"));
    commit(1, "{\"remove\":{\"path\":\"b\"}}\n" + add("c"));
    commit(2, "{\"metaData\":{\"schemaString\":\"two\"}}\n{\"commitInfo\":{\"timestamp\":5}}\n");
    const auto source = open_source(scratch.path().string()).value();
    const DeltaSnapshot newest = read_snapshot(*source, {}, "", {}).value();
    EXPECT_EQ(newest.version, 2);
    EXPECT_EQ(newest.metadata.schema, "two");
    ASSERT_EQ(newest.files.size(), 2U);
    EXPECT_EQ(newest.files[0].path, "a");
    EXPECT_EQ(newest.files[0].partition.at("p"), std::nullopt);
    EXPECT_EQ(newest.files[1].path, "c");
    EXPECT_EQ(read_snapshot(*source, 0, "", {}).value().files.size(), 2U);
    EXPECT_THAT(read_snapshot(*source, {}, "2020-01-01", {}).error().message,
                HasSubstr("does not state its time"));
}

}  // namespace
}  // namespace tune::loader
