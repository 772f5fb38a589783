#include "loader/format/mds/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "loader/format/python_json.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::HasSubstr;

Json good_index() {
    return Json::parse(R"({"version": 2, "shards": [{
        "column_encodings": ["int", "str"], "column_names": ["id", "t"], "column_sizes": [8, null],
        "compression": null, "format": "mds", "hashes": [], "samples": 2, "size_limit": 67108864,
        "raw_data": {"basename": "shard.00000.mds", "bytes": 224, "hashes": {}},
        "version": 2, "zip_data": null}]})");
}

std::string fault_after(const std::function<void(Json&)>& change) {
    Json json = good_index();
    change(json);
    const auto index = parse_index(json.dump());
    return index ? "no error" : index.error().message;
}

TEST(Index, ReadsBackWhatItWrites) {
    const Index index = parse_index(good_index().dump()).value();
    ASSERT_EQ(index.shards.size(), 1U);
    EXPECT_EQ(index.sample_count(), 2);
    EXPECT_EQ(
        index_text(index),
        R"({"shards": [{"column_encodings": ["int", "str"], "column_names": ["id", "t"], )"
        R"("column_sizes": [8, null], "compression": null, "format": "mds", "hashes": [], )"
        R"("raw_data": {"basename": "shard.00000.mds", "bytes": 224, "hashes": {}}, "samples": 2, )"
        R"("size_limit": 67108864, "version": 2, "zip_data": null}], "version": 2})");
}

TEST(Index, TakesLimitsWrittenAsText) {
    const auto limit = [](const char* text) {
        Json json = good_index();
        json["shards"][0]["size_limit"] = text;
        return parse_index(json.dump()).value().shards[0].size_limit.value();
    };
    EXPECT_EQ(limit("64mb"), 64U << 20);
    EXPECT_EQ(limit("1.5KB"), 1536U);
    EXPECT_EQ(limit("100b"), 100U);
    EXPECT_EQ(limit("100"), 100U);
    EXPECT_THAT(fault_after([](Json& json) { json["shards"][0]["size_limit"] = "64 parsecs"; }),
                HasSubstr("'64 parsecs' is not a number of bytes"));
}

TEST(Index, NamesShardAndField) {
    EXPECT_THAT(fault_after([](Json& json) { json["shards"][0].erase("samples"); }),
                HasSubstr("shard 0 of the index: 'samples' is missing"));
    EXPECT_THAT(fault_after([](Json& json) { json["shards"][0]["raw_data"].erase("bytes"); }),
                HasSubstr("shard 0 of the index, raw_data: 'bytes' is missing"));
}

TEST(Index, RefusesWhatCannotBeTrue) {
    const auto shard_fault = [](const char* field, const Json& value) {
        return fault_after([&](Json& json) { json["shards"][0][field] = value; });
    };
    EXPECT_THAT(fault_after([](Json& json) { json["version"] = 3; }), HasSubstr("version 3"));
    EXPECT_THAT(fault_after([](Json& json) { json.erase("version"); }), HasSubstr("version none"));
    EXPECT_THAT(fault_after([](Json& json) { json["shards"] = 4; }),
                HasSubstr("no list of shards"));
    EXPECT_THAT(fault_after([](Json& json) { json["shards"][0] = 4; }), HasSubstr("not an object"));
    EXPECT_THAT(shard_fault("version", 1), HasSubstr("only 2 is known"));
    EXPECT_THAT(shard_fault("format", "lance"), HasSubstr("'lance' is not supported"));
    EXPECT_THAT(shard_fault("samples", -1), HasSubstr("'samples' is not a count"));
    EXPECT_THAT(shard_fault("samples", 1e300), HasSubstr("'samples' is not a count"));
    EXPECT_THAT(shard_fault("samples", 1000), HasSubstr("224 bytes cannot hold 1000 samples"));
    EXPECT_THAT(shard_fault("column_sizes", {8}), HasSubstr("differ in length"));
    EXPECT_THAT(shard_fault("column_sizes", {4, nullptr}), HasSubstr("wrong size in column_sizes"));
    EXPECT_THAT(shard_fault("column_sizes", {-8, nullptr}), HasSubstr("impossible size"));
    EXPECT_THAT(shard_fault("column_sizes", 3), HasSubstr("not a list"));
    EXPECT_THAT(shard_fault("column_names", {"t", "id"}), HasSubstr("not sorted"));
    EXPECT_THAT(shard_fault("column_names", {"id", "id"}), HasSubstr("not sorted"));
    EXPECT_THAT(shard_fault("column_names", {1, 2}), HasSubstr("holds no text"));
    EXPECT_THAT(shard_fault("column_encodings", {"int", "tensor"}), HasSubstr("unknown encoding"));
    EXPECT_THAT(shard_fault("compression", "zstd"), HasSubstr("exactly when"));
    EXPECT_THAT(shard_fault("raw_data", nullptr), HasSubstr("not an object"));
}

TEST(Index, KeepsFilesInsideTheDirectory) {
    for (const char* name : {"../shard.00000.mds", "/etc/passwd", "a/../../b", "", ".."})
        EXPECT_THAT(
            fault_after([&](Json& json) { json["shards"][0]["raw_data"]["basename"] = name; }),
            HasSubstr("leads out of"))
            << name;
    EXPECT_EQ(fault_after([](Json& json) {
                  json["shards"][0]["raw_data"]["basename"] = "part-1/shard.00000.mds";
              }),
              "no error");
}

TEST(Index, EveryTruncationIsAnError) {
    const std::string text = good_index().dump();
    for (std::size_t size = 0; size < text.size(); ++size)
        EXPECT_FALSE(parse_index(std::string_view(text).substr(0, size)).has_value()) << size;
}

TEST(Index, MissingFileIsNamed) {
    const Scratch scratch;
    const auto index = read_index(scratch.path());
    ASSERT_FALSE(index.has_value());
    EXPECT_EQ(index.error().code, Code::kResourceDoesNotExist);
    EXPECT_THAT(index.error().message, HasSubstr((scratch / "index.json").string()));
}

TEST(Index, DigestChangesWithTheData) {
    Index index = parse_index(good_index().dump()).value();
    const std::string digest = index_digest(index);
    index.shards[0].samples = 1;
    EXPECT_NE(index_digest(index), digest);
}

TEST(PythonJson, EscapesAsPython) {
    EXPECT_EQ(python_json(Json::parse(R"({"b": [1, 2.0, null, true], "a": {}})")),
              R"({"a": {}, "b": [1, 2.0, null, true]})");
    EXPECT_EQ(python_json(Json("\xc3\xa9\xf0\x9f\x98\x80\x7f\"\\\n\x01")),
              "\"\\u00e9\\ud83d\\ude00\x7f\\\"\\\\\\n\\u0001\"");
}

}  // namespace
}  // namespace tune::loader
