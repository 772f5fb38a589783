#include "loader/format/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tune::loader {
namespace {

using testing::HasSubstr;

std::string from_hex(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    return bytes;
}

Result<std::string> unpacked(std::string_view name, std::string_view input, std::size_t size) {
    TUNE_TRY(compression, parse_compression(name));
    TUNE_TRY(output, decompress(compression, std::as_bytes(std::span(input)), size));
    return std::string(reinterpret_cast<const char*>(output.data.get()), output.size);
}

TEST(Compression, ReadsWhatMosaicWrote) {
    EXPECT_EQ(unpacked("zstd", from_hex("28b52ffd200c610000616263616263616263616263"), 12).value(),
              "abcabcabcabc");
    EXPECT_EQ(unpacked("gz", from_hex("1f8b0800000000000 2ff4b4c4a4e842100342a6e5a0c000000"), 12)
                  .has_value(),
              false);
    EXPECT_EQ(
        unpacked("gz", from_hex("1f8b08000000000002ff4b4c4a4e842100342a6e5a0c000000"), 12).value(),
        "abcabcabcabc");
    EXPECT_EQ(unpacked("br", from_hex("1b0b00f825c3c4c6e293204003"), 12).value(), "abcabcabcabc");
    EXPECT_EQ(unpacked("snappy", from_hex("0c2c616263616263616263616263"), 12).value(),
              "abcabcabcabc");
    EXPECT_EQ(unpacked("bz2",
                       from_hex("425a68393141592653599f5dc7e900000181003800200030cc05418a638bb922"
                                "9c28484faee3f480"),
                       12)
                  .value(),
              "abcabcabcabc");
}

TEST(Compression, RoundTrips) {
    std::string text;
    for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919);
    for (const std::string name : {"zstd", "zstd:1", "zstd:12", "gz", "gz:0", "gz:9", "bz2",
                                   "bz2:1", "br", "br:0", "br:5", "snappy"}) {
        const std::string packed = compress(parse_compression(name).value(), text).value();
        EXPECT_EQ(unpacked(name, packed, text.size()).value(), text) << name;
        // Brotli and snappy files are one stream by definition.
        if (!name.starts_with("br") && name != "snappy") {
            EXPECT_EQ(unpacked(name, packed + packed, 2 * text.size()).value(), text + text)
                << name;
        }
        const std::string nothing = compress(parse_compression(name).value(), "").value();
        EXPECT_EQ(unpacked(name, nothing, 0).value(), "") << name;
    }
}

TEST(Compression, NeverGivesMoreOrLessThanWasStated) {
    for (const char* name : {"zstd", "gz", "br", "bz2", "snappy"}) {
        const std::string packed =
            compress(parse_compression(name).value(), std::string(1000, 'z')).value();
        EXPECT_THAT(unpacked(name, packed, 999).error().message, HasSubstr("more than the 999"));
        EXPECT_THAT(unpacked(name, packed, 1001).error().message, HasSubstr("less than the 1001"));
        EXPECT_EQ(unpacked(name, packed, 0).error().code, Code::kDataLoss);
    }
}

TEST(Compression, EveryTruncationIsAnError) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += std::to_string(i * 104729);
    for (const char* name : {"zstd", "gz", "br", "bz2", "snappy"}) {
        const std::string packed = compress(parse_compression(name).value(), text).value();
        for (std::size_t size = 0; size < packed.size(); ++size)
            EXPECT_EQ(unpacked(name, packed.substr(0, size), text.size()).error().code,
                      Code::kDataLoss)
                << name << " " << size;
    }
}

TEST(Compression, RefusesByName) {
    EXPECT_THAT(parse_compression("br:12").error().message, HasSubstr("0..11"));
    EXPECT_THAT(parse_compression("bz2:0").error().message, HasSubstr("1..9"));
    EXPECT_THAT(parse_compression("snappy:1").error().message, HasSubstr("snappy has no levels"));
    EXPECT_THAT(parse_compression("lz4").error().message, HasSubstr("unknown compression 'lz4'"));
    EXPECT_THAT(parse_compression("zstd:23").error().message, HasSubstr("1..22"));
    EXPECT_THAT(parse_compression("gz:x").error().message, HasSubstr("0..9"));
    EXPECT_THAT(parse_compression("zstd:").error().message, HasSubstr("1..22"));
}

}  // namespace
}  // namespace tune::loader
