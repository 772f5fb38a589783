// Golden encodings of mosaicml-streaming 0.13.0.

#include "loader/format/mds/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace tune::loader {
namespace {

using testing::HasSubstr;

std::string hex_of(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        text.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
        text.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
    }
    return text;
}

Result<std::string> encoded(std::string_view encoding, const Value& value) {
    TUNE_TRY(parsed, parse_encoding(encoding));
    std::string out;
    TUNE_TRY_VOID(encode(parsed, value, out));
    return out;
}

std::string encoded_hex(std::string_view encoding, const Value& value) {
    return hex_of(encoded(encoding, value).value());
}

std::string fault(std::string_view encoding, const Value& value) {
    const auto result = encoded(encoding, value);
    return result ? "no error" : result.error().message;
}

template <class T>
ArrayView view_of(Dtype dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

TEST(Encoding, ScalarsAreLittleEndian) {
    EXPECT_EQ(encoded_hex("int", std::int64_t{-2}), "feffffffffffffff");
    EXPECT_EQ(encoded_hex("uint16", std::int64_t{513}), "0102");
    EXPECT_EQ(encoded_hex("float16", 1.5), "003e");
    EXPECT_EQ(encoded_hex("float32", 1.5), "0000c03f");
    EXPECT_EQ(encoded_hex("float64", 0.1), "9a9999999999b93f");
    EXPECT_EQ(encoded_hex("uint64", std::numeric_limits<std::uint64_t>::max()), "ffffffffffffffff");
    EXPECT_EQ(encoded_hex("int8", std::string_view(" -128 ")), "80");
    EXPECT_EQ(encoded_hex("uint8", 7.0), "07");
    EXPECT_EQ(encoded_hex("float32", std::string_view("+1.5")), "0000c03f");
}

TEST(Encoding, NumbersThatDoNotFitAreRefused) {
    EXPECT_THAT(fault("uint8", std::int64_t{256}), HasSubstr("'256' does not fit into uint8"));
    EXPECT_THAT(fault("uint8", std::int64_t{-1}), HasSubstr("does not fit"));
    EXPECT_THAT(fault("int64", std::numeric_limits<std::uint64_t>::max()), HasSubstr("fit"));
    EXPECT_THAT(fault("int8", std::string_view("128")), HasSubstr("'128' does not fit into int8"));
    EXPECT_THAT(fault("int", std::string_view("4.5")), HasSubstr("not a whole number"));
    EXPECT_THAT(fault("int", std::string_view("")), HasSubstr("not a whole number"));
    EXPECT_THAT(fault("int", 4.5), HasSubstr("does not fit"));
    EXPECT_THAT(fault("int", 9223372036854775808.0), HasSubstr("does not fit"));
    EXPECT_THAT(fault("uint8", std::nan("")), HasSubstr("does not fit"));
    EXPECT_THAT(fault("float32", std::string_view("one")), HasSubstr("'one' is not a number"));
    EXPECT_THAT(fault("float32", std::string_view("1.5x")), HasSubstr("is not a number"));
    EXPECT_THAT(fault("int", std::as_bytes(std::span("abc", 3))), HasSubstr("3 bytes do not fit"));
}

TEST(Encoding, TextOfNumbersIsPythons) {
    EXPECT_EQ(encoded("str_int", std::string_view("1000000000000000000000000000000")).value(),
              "1000000000000000000000000000000");
    EXPECT_EQ(encoded("str_float", 1e-5).value(), "1e-05");
    EXPECT_EQ(encoded("str_float", std::string_view("0.00001")).value(), "1e-05");
    EXPECT_EQ(encoded("str_decimal", std::string_view("1.50")).value(), "1.50");
    EXPECT_EQ(encoded("str_decimal", std::string_view("1E+3")).value(), "1E+3");
    EXPECT_THAT(fault("str_int", std::string_view("1.5")), HasSubstr("does not fit"));
    EXPECT_THAT(fault("str_float", std::string_view("--1")), HasSubstr("does not fit"));
}

TEST(Encoding, ArraysCarryWhatTheEncodingLeavesOpen) {
    const std::vector<std::int16_t> pair = {1, 2};
    EXPECT_EQ(encoded_hex("ndarray:int16", view_of(Dtype::kInt16, {1, 2}, pair)),
              "080102"
              "01000200");
    const std::vector<std::uint8_t> row(300, 0);
    const std::string wide = encoded_hex("ndarray", view_of(Dtype::kUint8, {1, 300}, row));
    EXPECT_TRUE(wide.starts_with("080901002c01")) << wide.substr(0, 20);
    EXPECT_EQ(wide.size(), 2 * (6 + 300U));
    const std::vector<float> three = {0, 1, 2};
    EXPECT_EQ(encoded_hex("ndarray", view_of(Dtype::kFloat32, {3}, three)),
              "220403000000000000803f00000040");
    const std::vector<std::int16_t> ones(4, 1);
    EXPECT_EQ(encoded_hex("ndarray:int16:2,2", view_of(Dtype::kInt16, {2, 2}, ones)),
              "0100010001000100");
}

TEST(Encoding, ArraysThatDoNotFitAreRefused) {
    const std::vector<std::int16_t> ones(4, 1);
    EXPECT_THAT(fault("ndarray:int16:2,2", view_of(Dtype::kInt16, {4}, ones)),
                HasSubstr("shape (4) does not fit"));
    EXPECT_THAT(fault("ndarray:int32", view_of(Dtype::kInt16, {4}, ones)), HasSubstr("of int16"));
    EXPECT_THAT(fault("ndarray", view_of(Dtype::kInt16, {}, ones)), HasSubstr("scalar encoding"));
    EXPECT_THAT(fault("ndarray", view_of(Dtype::kInt16, {0}, std::vector<std::int16_t>{})),
                HasSubstr("cannot be stored"));
    EXPECT_THAT(fault("ndarray:uint8:2", std::int64_t{3}), HasSubstr("a single value"));
}

TEST(Encoding, UnknownEncodingsAreRefused) {
    const auto message = [](std::string_view text) {
        const auto encoding = parse_encoding(text);
        return encoding ? std::string("no error") : encoding.error().message;
    };
    EXPECT_THAT(message("integer"), HasSubstr("unknown encoding 'integer'"));
    EXPECT_THAT(message("ndarray:bool"), HasSubstr("arrays of 'bool'"));
    EXPECT_THAT(message("ndarray:uint8:2,0"), HasSubstr("above 0"));
    EXPECT_THAT(message("ndarray:uint8:2,,3"), HasSubstr("above 0"));
    EXPECT_THAT(message("ndarray:uint8:"), HasSubstr("above 0"));
    EXPECT_THAT(message("ndarray:uint8:2:3"), HasSubstr("above 0"));
    EXPECT_THAT(message("ndarray:uint8:65536,65536"), HasSubstr("larger than a shard"));
    EXPECT_THAT(message("ndarray:float64:99999999999999999999"), HasSubstr("above 0"));
}

TEST(Encoding, BytesGoInAsTheyAre) {
    const std::string jpeg = "\xff\xd8 no real picture";
    EXPECT_EQ(encoded("jpeg", std::as_bytes(std::span(jpeg))).value(), jpeg);
    EXPECT_EQ(encoded("bytes", std::string_view("ab")).value(), "ab");
    EXPECT_THAT(fault("pil", std::string_view("ab")), HasSubstr("encoded bytes only"));
}

TEST(Encoding, TextMustBeUtf8AndJsonMustBeJson) {
    EXPECT_EQ(encoded("str", std::string_view("\xc3\xa9")).value(), "\xc3\xa9");
    EXPECT_THAT(fault("str", std::string_view("\xc3")), HasSubstr("not UTF-8"));
    EXPECT_THAT(fault("str", std::int64_t{1}), HasSubstr("a number does not fit into str"));
    EXPECT_EQ(encoded("json", std::string_view(R"({"a": [1.0, null, NaN]})")).value(),
              R"({"a": [1.0, null, NaN]})");
    for (const char* bad : {"", "{", "{\"a\":}", "[1,]", "01", "1 2", "nul", "'a'", "{1: 2}", "-"})
        EXPECT_THAT(fault("json", std::string_view(bad)), HasSubstr("not JSON")) << bad;
    EXPECT_THAT(fault("json", std::string_view(std::string(100000, '['))), HasSubstr("not JSON"));
    for (const char* good : {"0", "-1.5e+3", "[]", " {} ", "\"\\u00e9\"", "-Infinity", "true"})
        EXPECT_EQ(fault("json", std::string_view(good)), "no error") << good;
}

TEST(Encoding, PayloadsAreCheckedAgainstTheirEncoding) {
    const auto check = [](std::string_view encoding, std::string_view payload) {
        const auto result =
            check_payload(parse_encoding(encoding).value(), std::as_bytes(std::span(payload)));
        return result ? std::string("no error") : result.error().message;
    };
    EXPECT_EQ(check("ndarray", std::string("\x08\x04\x02 ab", 5).replace(3, 2, "ab")), "no error");
    EXPECT_THAT(check("ndarray", "\x07\x04\x02"), HasSubstr("element type"));
    EXPECT_THAT(check("ndarray", ""), HasSubstr("element type"));
    EXPECT_THAT(check("ndarray:uint8", ""), HasSubstr("without a shape"));
    EXPECT_THAT(check("ndarray:uint8", "\x0b\x01\x01"), HasSubstr("cut off"));
    EXPECT_THAT(check("ndarray:uint8",
                      "\x04\x02"
                      "abc"),
                HasSubstr("in 3 bytes"));
    EXPECT_THAT(check("ndarray:uint8", std::string_view("\x00", 1)), HasSubstr("shape ()"));
    EXPECT_THAT(check("ndarray:uint8:3", "ab"), HasSubstr("2 bytes where"));
    EXPECT_THAT(check("int", "abc"), HasSubstr("3 bytes where int takes 8"));
    EXPECT_THAT(check("str", "\xff"), HasSubstr("not UTF-8"));
    EXPECT_THAT(check("str_int", "12a"), HasSubstr("whole number"));
    EXPECT_THAT(check("str_float", "1.2.3"), HasSubstr("not a number"));
    EXPECT_EQ(check("str_float", "-inf"), "no error");
    EXPECT_THAT(check("jpeg", "GIF89a"), HasSubstr("not a JPEG"));
    EXPECT_THAT(check("png", "\xff\xd8"), HasSubstr("not a PNG"));
    const std::string image("\x03\0\0\0\x02\0\0\0\x01\0\0\0L\0\1\2\3\4\5", 19);
    EXPECT_EQ(check("pil", image), "no error");
    EXPECT_THAT(check("pil", std::string_view(image).substr(0, 18)), HasSubstr("3 x 2 pixels"));
    EXPECT_THAT(check("pil", std::string_view(image).substr(0, 11)), HasSubstr("header"));
    const std::string bits("\x0a\0\0\0\x02\0\0\0\x01\0\0\0\x31\xff\xc0\xff\xc0", 17);
    EXPECT_EQ(check("pil", bits), "no error");
}

TEST(Encoding, DescribesForPeople) {
    const auto describe = [](std::string_view encoding, const Value& value) {
        const Encoding parsed = parse_encoding(encoding).value();
        std::string payload;
        encode(parsed, value, payload).value();
        return describe_payload(parsed, std::as_bytes(std::span(payload)), 3).value().dump();
    };
    const std::vector<std::int16_t> four = {1, -2, 3, 4};
    EXPECT_EQ(describe("ndarray:int16:2,2", view_of(Dtype::kInt16, {2, 2}, four)),
              "[[1,-2],[3,\"...\"]]");
    EXPECT_EQ(describe("str", std::string_view("abcdef")), "\"abc...\"");
    EXPECT_EQ(describe("float32", std::string_view("nan")), "\"NaN\"");
    EXPECT_EQ(describe("bytes", std::string_view("abc")), "\"<3 bytes>\"");
}

TEST(Half, EveryValueSurvives) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const double value = double_from_half(half);
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(double_from_half(half_from_double(value))));
        } else {
            ASSERT_EQ(half_from_double(value), half) << bits;
        }
    }
}

TEST(Half, RoundsToEven) {
    EXPECT_EQ(half_from_double(2049.0), half_from_double(2048.0));  // halfway between even and odd
    EXPECT_EQ(half_from_double(2051.0), half_from_double(2052.0));
    EXPECT_EQ(half_from_double(65519.0), 0x7bff);
    EXPECT_EQ(half_from_double(65520.0), 0x7c00);
    EXPECT_EQ(half_from_double(-1e300), 0xfc00);
    EXPECT_EQ(half_from_double(std::ldexp(1.0, -25)), 0x0000);
    EXPECT_EQ(half_from_double(std::ldexp(1.1, -25)), 0x0001);
}

}  // namespace
}  // namespace tune::loader
