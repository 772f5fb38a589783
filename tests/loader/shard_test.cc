// Hostile shards: whatever the bytes are, the answer is an error or a sample inside the file.

#include "loader/format/mds/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "loader/format/mds/encoding.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A small shard in a heap block of its exact size, so that the address sanitizer sees every read
/// beyond it.
struct Small {
    std::vector<std::byte> bytes;
    ShardInfo info;

    [[nodiscard]] Result<Shard> open() const {
        ShardInfo stated = info;
        stated.raw_data.bytes = bytes.size();
        return Shard::make(bytes, nullptr, stated);
    }
};

Small small_shard() {
    const Scratch scratch;
    Small small;
    small.info = write_texts(scratch / "d", 6).shards.at(0);
    const std::string file = read_bytes(scratch / "d" / "shard.00000.mds");
    small.bytes.resize(file.size());
    std::memcpy(small.bytes.data(), file.data(), file.size());
    return small;
}

/// Reads every sample of a shard that opened; returns how many were well-formed.
std::size_t read_all(const Shard& shard, const ShardInfo& info) {
    const SampleLayout layout(info.column_sizes);
    std::vector<std::span<const std::byte>> payloads(layout.column_count());
    std::size_t good = 0;
    unsigned sum = 0;
    for (std::size_t i = 0; i < shard.sample_count(); ++i) {
        if (!layout.split(shard.sample(i), payloads)) continue;
        ++good;
        for (const auto payload : payloads)
            for (const std::byte byte : payload) sum += static_cast<unsigned>(byte);
    }
    EXPECT_LT(sum, 1U << 30);  // and keeps the reads from being optimised away
    return good;
}

TEST(Shard, ReadsItsSamples) {
    const Small small = small_shard();
    const Shard shard = small.open().value();
    EXPECT_EQ(shard.sample_count(), 6U);
    EXPECT_EQ(read_all(shard, small.info), 6U);
    EXPECT_EQ(shard.config(), shard_config(small.info));
}

TEST(Shard, EveryTruncationIsAnError) {
    const Small whole = small_shard();
    for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
        Small cut = whole;
        cut.bytes.resize(size);
        cut.bytes.shrink_to_fit();
        EXPECT_EQ(Shard::make(cut.bytes, nullptr, whole.info).error().code, Code::kDataLoss);
        EXPECT_EQ(cut.open().error().code, Code::kDataLoss) << size;  // a size that the index has
    }
}

TEST(Shard, EveryFlippedBitIsAnErrorOrStaysInside) {
    const Small whole = small_shard();
    for (std::size_t at = 0; at < whole.bytes.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            Small flipped = whole;
            flipped.bytes[at] ^= static_cast<std::byte>(1 << bit);
            const auto shard = flipped.open();
            if (shard.has_value()) {
                EXPECT_LE(read_all(*shard, whole.info), 6U);
            }
        }
}

TEST(Shard, RandomDamageIsAnErrorOrStaysInside) {
    const Small whole = small_shard();
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
        Small damaged = whole;
        const int changes = 1 + static_cast<int>(random() % 8);
        for (int change = 0; change < changes; ++change) {
            // Mostly where the offsets stand.
            const std::size_t range = random() % 2 ? 40 : damaged.bytes.size();
            damaged.bytes[random() % range] = static_cast<std::byte>(random());
        }
        const auto shard = damaged.open();
        if (shard.has_value()) {
            EXPECT_LE(read_all(*shard, whole.info), shard->sample_count());
        }
    }
}

TEST(Shard, SaysWhatIsWrong) {
    const Small whole = small_shard();
    const auto message = [&](std::size_t offset_number, std::uint32_t value) {
        Small changed = whole;
        std::memcpy(changed.bytes.data() + 4 * offset_number, &value, sizeof value);
        const auto shard = changed.open();
        return shard ? std::string("no error") : shard.error().message;
    };
    EXPECT_THAT(message(0, 7), HasSubstr("its header states 7 samples, the index 6"));
    EXPECT_THAT(message(0, 0xffffffff), HasSubstr("its header states 4294967295 samples"));
    EXPECT_THAT(message(1, 3), HasSubstr("the offset of sample 0 (3) is out of order"));
    EXPECT_THAT(message(3, 0xffffffff), HasSubstr("the offset of sample 2"));
    EXPECT_THAT(message(3, 40), HasSubstr("out of order"));
    EXPECT_THAT(message(7, static_cast<std::uint32_t>(whole.bytes.size() - 1)),
                HasSubstr("its last sample ends"));
}

TEST(Shard, AbsurdCountsDoNotLeadBeyondTheFile) {
    Small small;
    small.bytes.resize(8);
    std::memset(small.bytes.data(), 0xff, 8);
    small.info.samples = 0xffffffff;
    EXPECT_THAT(small.open().error().message, HasSubstr("too short for its offsets"));
}

TEST(Layout, SplitsSizesThenPayloads) {
    const SampleLayout layout({std::nullopt, 2, std::nullopt});
    std::vector<std::span<const std::byte>> payloads(3);
    const std::string sample("\x01\0\0\0\x02\0\0\0abbcc", 13);
    ASSERT_TRUE(layout.split(std::as_bytes(std::span(sample)), payloads));
    EXPECT_EQ(payloads[0].size(), 1U);
    EXPECT_EQ(payloads[1].size(), 2U);
    EXPECT_EQ(payloads[2].size(), 2U);
    for (std::size_t size = 0; size < sample.size(); ++size)
        EXPECT_FALSE(layout.split(std::as_bytes(std::span(sample)).first(size), payloads));
    const std::string longer = sample + "x";
    EXPECT_FALSE(layout.split(std::as_bytes(std::span(longer)), payloads));
}

TEST(Layout, FixedColumnsLieAtFixedPlaces) {
    const SampleLayout layout({8, 4, 1});
    EXPECT_TRUE(layout.is_fixed());
    EXPECT_EQ(layout.fixed_offset(0), 0U);
    EXPECT_EQ(layout.fixed_offset(2), 12U);
    EXPECT_EQ(layout.bytes_min(), 13U);
}

}  // namespace
}  // namespace tune::loader
