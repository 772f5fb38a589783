#include "loader/format/hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tune::loader {
namespace {

using testing::HasSubstr;

std::string hash_of(std::string_view name, std::string_view text) {
    return hash_hex(name, std::as_bytes(std::span(text))).value();
}

/// Values of Python's hashlib and xxhash, as mosaicml-streaming 0.13.0 writes them.
TEST(Hash, EqualsMosaicsForAbc) {
    const std::pair<const char*, const char*> expected[] = {
        {"xxh32", "32d153ff"},
        {"xxh64", "44bc2cf5ad770999"},
        {"xxh3_64", "78af5f94892f3950"},
        {"xxh128", "06b05ab6733a618578af5f94892f3950"},
        {"xxh3_128", "06b05ab6733a618578af5f94892f3950"},
        {"md5", "900150983cd24fb0d6963f7d28e17f72"},
        {"sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"sha224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
        {"sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"blake2s", "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"},
        {"sha3_256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"},
    };
    for (const auto& [name, digest] : expected) EXPECT_EQ(hash_of(name, "abc"), digest) << name;
    EXPECT_TRUE(hash_of("blake2b", "abc").starts_with("ba80a53f"));
    EXPECT_TRUE(hash_of("blake2b", "abc").ends_with("009923"));
}

TEST(Hash, KnowsAllSeventeenNames) {
    EXPECT_EQ(hash_names().size(), 17U);
    EXPECT_TRUE(std::is_sorted(hash_names().begin(), hash_names().end()));
    for (const std::string_view name : hash_names()) EXPECT_FALSE(hash_of(name, "").empty());
}

TEST(Hash, PiecesGiveTheHashOfTheWhole) {
    const std::string text(100000, 'q');
    for (const std::string_view name : hash_names()) {
        Hasher hasher = Hasher::make(name).value();
        for (std::size_t at = 0; at < text.size(); at += 777)
            hasher.update(std::as_bytes(
                std::span(text).subspan(at, std::min<std::size_t>(777, text.size() - at))));
        EXPECT_EQ(hasher.finish(), hash_of(name, text)) << name;
    }
}

TEST(Hash, RefusesUnknownNames) {
    const auto hasher = Hasher::make("crc32");
    ASSERT_FALSE(hasher.has_value());
    EXPECT_THAT(hasher.error().message, HasSubstr("unknown hash 'crc32'"));
    EXPECT_THAT(hasher.error().message, HasSubstr("xxh3_64"));
}

}  // namespace
}  // namespace tune::loader
