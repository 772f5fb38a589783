#include "worker/train/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "base/system/file.h"

namespace tune::train {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

std::string file_of(const std::string& header, const std::string& data = "",
                    std::optional<std::uint64_t> length = {}) {
    const std::uint64_t stated = length.value_or(header.size());
    return std::string(reinterpret_cast<const char*>(&stated), 8) + header + data;
}

std::string fault(const std::string& file) {
    const auto parsed = Safetensors::parse(file);
    if (parsed) return "no fault";
    EXPECT_EQ(parsed.error().code, Code::kDataLoss);
    const std::string start = "not a complete safetensors file: ";
    EXPECT_TRUE(parsed.error().message.starts_with(start)) << parsed.error().message;
    return parsed.error().message.substr(start.size());
}

TEST(Safetensors, GivesBackWhatWasWritten) {
    const std::vector<float> a = {1.5f, -2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    const std::vector<std::int64_t> b = {-7};
    const std::vector<std::uint8_t> c = {1, 2, 3};
    const std::string file = write_safetensors({{"a", "F32", {2, 3}, bytes_of(a)},
                                                {"b", "I64", {}, bytes_of(b)},
                                                {"c", "U8", {3}, bytes_of(c)},
                                                {"none", "F32", {0, 4}, {}}},
                                               {{"k", "v \"quoted\" \xc3\xa9"}, {"empty", ""}});
    auto parsed = Safetensors::parse(file);
    ASSERT_TRUE(parsed) << parsed.error().message;
    // A moved file still points into its own bytes.
    const Safetensors moved = std::move(*parsed);
    EXPECT_EQ(moved.tensors().size(), 4u);
    EXPECT_EQ(moved.metadata().at("k"), "v \"quoted\" \xc3\xa9");
    EXPECT_EQ(moved.metadata().at("empty"), "");
    const TensorBytes* found = moved.find("a");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(std::memcmp(found->data.data(), a.data(), sizeof(float) * a.size()), 0);
    EXPECT_EQ(moved.find("b")->shape.size(), 0u);
    EXPECT_EQ(moved.find("none")->data.size(), 0u);
    EXPECT_EQ(moved.find("missing"), nullptr);
}

/// The bytes that safetensors 0.8.0 in Python writes: save({"b": ..., "a": ..., "c": ...}).
TEST(Safetensors, WritesTheBytesOfTheReferenceImplementation) {
    const std::vector<float> a = {1.0f, 2.0f};
    const std::vector<std::uint8_t> b = {9};
    const std::vector<std::int64_t> c = {3};
    const std::string header = R"({"__metadata__":{"format":"pt"},)"
                               R"("c":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                               R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                               R"("b":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
    const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
    const std::string data("\x03\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40\x09", 17);
    EXPECT_EQ(write_safetensors({{"b", "U8", {1}, bytes_of(b)},
                                 {"a", "F32", {2}, bytes_of(a)},
                                 {"c", "I64", {1}, bytes_of(c)}},
                                {{"format", "pt"}}),
              file_of(padded, data));
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
    const auto parsed = Safetensors::parse(file_of("{}"));
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->tensors().empty());
    EXPECT_TRUE(Safetensors::parse(file_of(R"({"__metadata__":{}}   )")));
}

TEST(Safetensors, RefusesWrongLengths) {
    EXPECT_EQ(fault(""), "it has only 0 bytes");
    EXPECT_EQ(fault("1234567"), "it has only 7 bytes");
    EXPECT_EQ(fault(file_of("{}", "", 3)), "its header claims 3 bytes");
    EXPECT_EQ(fault(file_of("{}", "", ~0ull)), "its header claims 18446744073709551615 bytes");
    EXPECT_EQ(fault(file_of("{}", "", (1ull << 63) + 2)),
              "its header claims 9223372036854775810 bytes");
    EXPECT_EQ(fault(file_of("{}", "", 0)), "its header is not a JSON object");
    EXPECT_EQ(fault(file_of("{}", "x")), "its tensors take 0 bytes, the file has 1");
}

TEST(Safetensors, RefusesHeadersThatAreNoHeader) {
    for (const char* header : {"[]", "1", "{", "{}}", "nul", R"({"a")", "\xff{}"})
        EXPECT_EQ(fault(file_of(header)), "its header is not a JSON object") << header;
    EXPECT_EQ(fault(file_of(R"({"a":1})")), "'a' has not exactly dtype, shape and data_offsets");
    EXPECT_EQ(fault(file_of(R"({"__metadata__":{"a":1}})")),
              "its __metadata__ holds more than texts");
    EXPECT_EQ(fault(file_of(R"({"__metadata__":[]})")), "its __metadata__ is not an object");
    EXPECT_EQ(fault(file_of(R"({"__metadata__":{"a":[[[[1]]]]}})")),
              "its header is nested too deeply");
    const std::string deep(200'000, '[');
    EXPECT_EQ(fault(file_of(R"({"a":)" + deep)), "its header is nested too deeply");
}

TEST(Safetensors, RefusesEqualKeys) {
    EXPECT_EQ(fault(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                            "x")),
              "its header has 'a' twice");
    EXPECT_EQ(fault(file_of(R"({"a":{"dtype":"U8","dtype":"F32","shape":[1],)"
                            R"("data_offsets":[0,1]}})",
                            "x")),
              "its header has 'dtype' twice");
    EXPECT_EQ(fault(file_of(R"({"__metadata__":{"k":"1","k":"2"}})")), "its header has 'k' twice");
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
}

TEST(Safetensors, RefusesSizesThatDoNotFit) {
    const std::string four(4, 'x');
    EXPECT_EQ(fault(file_of(one("F32", "[1]", "[0,4]"), four)), "no fault");
    EXPECT_EQ(fault(file_of(one("F12", "[1]", "[0,4]"), four)), "'a' has the unknown dtype 'F12'");
    for (const char* offsets : {"[4,0]", "[0]", "[0,4,4]"})
        EXPECT_EQ(fault(file_of(one("F32", "[1]", offsets), four)),
                  "the offsets of 'a' are not a begin and an end");
    for (const char* offsets : {"[-4,0]", "[0,4.0]", "[\"0\",4]", "[0,99999999999999999999]"})
        EXPECT_EQ(fault(file_of(one("F32", "[1]", offsets), four)),
                  "the offsets of 'a' holds something other than sizes")
            << offsets;
    for (const char* shape : {"[2]", "[]", "[1,0]", "[9223372036854775807,2]",
                              "[4294967296,4294967296]", "[18446744073709551615]"}) {
        const bool scalar = std::string(shape) == "[]";
        EXPECT_EQ(fault(file_of(one("F32", shape, "[0,4]"), four)),
                  scalar ? "no fault" : "'a' has a size that does not match its shape and dtype")
            << shape;
    }
    EXPECT_EQ(fault(file_of(one("F32", "[1]", "[0,4]"), "xxx")),
              "its tensors take 4 bytes, the file has 3");
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
    const auto two = [](const char* a, const char* b) {
        return std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") + a +
               R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
    };
    EXPECT_EQ(fault(file_of(two("[0,2]", "[2,4]"), "xxxx")), "no fault");
    EXPECT_EQ(fault(file_of(two("[2,4]", "[0,2]"), "xxxx")), "no fault");
    EXPECT_EQ(fault(file_of(two("[0,2]", "[0,2]"), "xx")),
              "'b' overlaps its neighbour or leaves a hole");
    EXPECT_EQ(fault(file_of(two("[0,2]", "[1,3]"), "xxx")),
              "'b' overlaps its neighbour or leaves a hole");
    EXPECT_EQ(fault(file_of(two("[0,2]", "[3,5]"), "xxxxx")),
              "'b' overlaps its neighbour or leaves a hole");
}

/// Every prefix of a file and every file with one byte changed is read or refused, never more.
TEST(Safetensors, SurvivesDamageOfEveryByte) {
    const std::vector<float> a = {1.0f, 2.0f};
    const std::vector<std::uint8_t> b = {1, 2, 3};
    const std::string file = write_safetensors(
        {{"a", "F32", {2}, bytes_of(a)}, {"b", "U8", {3}, bytes_of(b)}}, {{"k", "v"}});
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(Safetensors::parse(file.substr(0, size))) << size;
    std::mt19937 rng(1);
    for (int round = 0; round < 20'000; ++round) {
        std::string damaged = file;
        for (unsigned i = 0; i <= rng() % 3; ++i)
            damaged[rng() % damaged.size()] = static_cast<char>(rng());
        if (const auto parsed = Safetensors::parse(damaged)) {
            std::size_t total = 0;
            for (const TensorBytes& tensor : parsed->tensors())
                for (const std::byte byte : tensor.data) total += static_cast<std::size_t>(byte);
            EXPECT_GE(total, 0u);  // the sanitizers watch the reads
        }
    }
}

TEST(Safetensors, NamesTheFileThatIsDamaged) {
    const auto path =
        std::filesystem::temp_directory_path() / ("safetensors_test." + std::to_string(getpid()));
    ASSERT_TRUE(write_file_atomic(path, "short"));
    const auto parsed = Safetensors::read(path);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().text(),
              path.string() + ": not a complete safetensors file: it has only 5 bytes");
    std::filesystem::remove(path);
    EXPECT_EQ(Safetensors::read(path).error().code, Code::kResourceDoesNotExist);
}

}  // namespace
}  // namespace tune::train
