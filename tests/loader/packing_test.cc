// Packing documents into sequences: the plan, and the data set over it, resumed at every token.

#include "loader/packing/packed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Sizes = std::vector<std::int64_t>;

// --- the plan ------------------------------------------------------------------------------------

TEST(PackBestFit, LongestFirstIntoTheFullestThatTakesIt) {
    const std::vector<PackedPiece> pieces = pack_best_fit(Sizes{3, 5, 4, 2}, 8);
    const std::vector<PackedPiece> expected = {
        {.sequence = 0, .begin = 0, .tokens = 3, .document = 0},
        {.sequence = 0, .begin = 3, .tokens = 5, .document = 1},
        {.sequence = 1, .begin = 0, .tokens = 4, .document = 2},
        {.sequence = 1, .begin = 4, .tokens = 2, .document = 3},
    };
    EXPECT_EQ(pieces, expected);
}

TEST(PackBestFit, OfALongDocumentWholeSequencesAreCutOff) {
    const std::vector<PackedPiece> pieces = pack_best_fit(Sizes{9, 3}, 4);
    const std::vector<PackedPiece> expected = {
        {.sequence = 0, .tokens = 4, .document = 0, .offset = 0},
        {.sequence = 1, .tokens = 4, .document = 0, .offset = 4},
        {.sequence = 2, .begin = 0, .tokens = 1, .document = 0, .offset = 8},
        {.sequence = 2, .begin = 1, .tokens = 3, .document = 1, .offset = 0},
    };
    EXPECT_EQ(pieces, expected);
}

TEST(PackBestFit, EmptyDocumentsAreNowhere) {
    EXPECT_THAT(pack_best_fit(Sizes{}, 4), IsEmpty());
    EXPECT_THAT(pack_best_fit(Sizes{0, 0}, 4), IsEmpty());
    EXPECT_THAT(pack_best_fit(Sizes{0, 4, 0}, 4),
                ElementsAre(PackedPiece{.tokens = 4, .document = 1}));
}

/// Every token once, no sequence over its length, no two that would fit into one, and at most 11/9
/// of what is needed at least.
TEST(PackBestFit, HoldsEveryTokenOnceInFewSequences) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const std::int64_t length = 1 + static_cast<std::int64_t>(random() % 40);
        Sizes sizes(random() % 60);
        for (std::int64_t& size : sizes)
            size = static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * length + 1));
        std::map<std::int64_t, std::int64_t> filled;
        std::map<std::int64_t, std::int64_t> taken;
        for (const PackedPiece& piece : pack_best_fit(sizes, length)) {
            EXPECT_EQ(piece.begin, filled[piece.sequence]) << "no gap";
            EXPECT_EQ(piece.offset % length, 0) << "whole, or cut at whole sequences";
            filled[piece.sequence] += piece.tokens;
            taken[piece.document] += piece.tokens;
        }
        std::int64_t tokens = 0;
        std::vector<std::int64_t> loads;
        for (const auto& [sequence, load] : filled) {
            EXPECT_LE(load, length);
            loads.push_back(load);
            tokens += load;
        }
        for (std::size_t i = 0; i < sizes.size(); ++i)
            EXPECT_EQ(taken[static_cast<std::int64_t>(i)], sizes[i]);
        std::sort(loads.begin(), loads.end());
        if (loads.size() > 1) {
            EXPECT_GT(loads[0] + loads[1], length);
        }
        const double least = static_cast<double>((tokens + length - 1) / length);
        EXPECT_LE(static_cast<double>(loads.size()), 2 * least + 1);
    }
}

// --- the data set --------------------------------------------------------------------------------

/// Documents of these sizes: token t of document d is 1000 * d + t.
void write_documents(const std::filesystem::path& directory, const Sizes& sizes) {
    MdsWriterOptions options;
    options.directory = directory;
    options.columns = {{"tokens", "bytes"}};
    options.size_limit = 300;
    MdsWriter writer = MdsWriter::open(options).value();
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(sizes[d]));
        std::iota(tokens.begin(), tokens.end(), static_cast<std::int32_t>(1000 * d));
        writer.write(std::vector<Value>{std::as_bytes(std::span<const std::int32_t>(tokens))})
            .value();
    }
    static_cast<void>(writer.finish().value());
}

class Packed : public testing::TestWithParam<Packing> {
protected:
    static inline const Sizes kSizes = {3, 0, 7, 25, 1, 8, 0, 5, 2, 16, 4, 4, 9, 0, 6, 11, 1};

    void SetUp() override { write_documents(scratch_ / "d", kSizes); }

    [[nodiscard]] std::unique_ptr<PackedDataset> open(std::int64_t rank = 0,
                                                      std::int64_t ranks = 1) const {
        DatasetOptions options{.directory = scratch_ / "d", .shuffle = true, .threads = 2};
        options.world = {.rank = rank, .size = ranks};
        auto opened = PackedDataset::open(options, packing_);
        EXPECT_TRUE(opened.has_value()) << opened.error().text();
        return std::move(opened).value();
    }
    static Json shown(const PackedBatch& batch) {
        Json pieces = Json::array();
        for (const PackedPiece& piece : batch.pieces)
            pieces.push_back(
                {piece.sequence, piece.begin, piece.tokens, piece.document, piece.offset});
        return {batch.count, batch.tokens, batch.segments, batch.positions, pieces, batch.epoch};
    }
    static std::vector<Json> rest_of(PackedDataset& data) {
        std::vector<Json> batches;
        PackedBatch batch;
        while (data.next(batch).value()) batches.push_back(shown(batch));
        return batches;
    }
    [[nodiscard]] std::string load_fault(const Json& json) const {
        const auto state = PackedState::from_json(json);
        if (!state) return state.error().text();
        const auto data = open();
        if (const auto loaded = data->load_state(*state); !loaded) return loaded.error().text();
        PackedBatch batch;
        const auto next = data->next(batch);
        return next ? "no error" : next.error().text();
    }

    Scratch scratch_;
    TokenPackOptions packing_{.column = "tokens",
                              .length = 8,
                              .packing = GetParam(),
                              .batch_size = 2,
                              .bytes_as = Dtype::kInt32,
                              .pad_token = -1,
                              .window = 5};
};

INSTANTIATE_TEST_SUITE_P(Ways, Packed, testing::Values(Packing::kConcat, Packing::kBestFit));

TEST_P(Packed, EveryTokenComesOnceAndNamesItsPlace) {
    const auto data = open();
    std::set<std::pair<std::int64_t, std::int64_t>> seen;  // (document, offset)
    PackedBatch batch;
    while (data->next(batch).value()) {
        ASSERT_EQ(batch.tokens.size(), static_cast<std::size_t>(batch.count * 8));
        std::vector<bool> is_token(batch.tokens.size(), false);
        for (const PackedPiece& piece : batch.pieces)
            for (std::int64_t i = 0; i < piece.tokens; ++i) {
                const auto at = static_cast<std::size_t>(piece.sequence * 8 + piece.begin + i);
                EXPECT_EQ(batch.tokens[at], 1000 * piece.document + piece.offset + i);
                EXPECT_EQ(batch.positions[at], i);
                EXPECT_GT(batch.segments[at], 0);
                EXPECT_TRUE(seen.insert({piece.document, piece.offset + i}).second);
                is_token[at] = true;
            }
        for (std::size_t at = 0; at < is_token.size(); ++at)
            if (!is_token[at]) {
                EXPECT_EQ(batch.tokens[at], -1);
                EXPECT_EQ(batch.segments[at], 0);
            }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()),
              std::accumulate(kSizes.begin(), kSizes.end(), std::int64_t{0}));
}

TEST_P(Packed, ResumesInTheMiddleOfASequence) {
    const auto whole = open();
    const std::vector<Json> first = rest_of(*whole);
    const std::vector<Json> second = rest_of(*whole);  // the next epoch
    for (std::size_t given = 0; given <= first.size(); ++given) {
        const auto data = open();
        PackedBatch batch;
        for (std::size_t i = 0; i < given; ++i) ASSERT_TRUE(data->next(batch).value());
        const auto state =
            PackedState::from_json(parse_json(to_text(data->state().to_json())).value());
        ASSERT_TRUE(state.has_value()) << state.error().text();
        const auto resumed = open();
        ASSERT_TRUE(resumed->load_state(*state).has_value());
        const std::vector<Json> rest = rest_of(*resumed);
        EXPECT_EQ(rest, std::vector<Json>(first.begin() + static_cast<std::ptrdiff_t>(given),
                                          first.end()))
            << "after " << given;
        EXPECT_EQ(rest_of(*resumed), second);
    }
}

TEST_P(Packed, RanksShareTheDocuments) {
    std::map<std::int64_t, std::int64_t> tokens;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
        const auto data = open(rank, 3);
        PackedBatch batch;
        std::vector<Json> all;
        std::optional<PackedState> middle;
        while (data->next(batch).value()) {
            all.push_back(shown(batch));
            if (all.size() == 1) middle = data->state();
            for (const PackedPiece& piece : batch.pieces) tokens[piece.document] += piece.tokens;
        }
        ASSERT_TRUE(middle.has_value());
        const auto resumed = open(rank, 3);
        ASSERT_TRUE(resumed->load_state(*middle).has_value());
        EXPECT_EQ(rest_of(*resumed), std::vector<Json>(all.begin() + 1, all.end()));
        const auto other = open((rank + 1) % 3, 3);
        const auto refused = other->load_state(*middle);
        ASSERT_FALSE(refused.has_value());
        EXPECT_THAT(refused.error().message, HasSubstr("rank=" + std::to_string(rank) + "/3"));
    }
    // As Mosaic's, ranks get equally many samples: some come twice, none is left out.
    for (std::size_t d = 0; d < kSizes.size(); ++d)
        EXPECT_EQ(tokens[static_cast<std::int64_t>(d)] % std::max<std::int64_t>(kSizes[d], 1), 0)
            << d;
    for (std::size_t d = 0; d < kSizes.size(); ++d)
        if (kSizes[d] > 0) {
            EXPECT_GE(tokens[static_cast<std::int64_t>(d)], kSizes[d]) << d;
        }
}

TEST_P(Packed, ADamagedStateIsRefused) {
    const auto data = open();
    PackedBatch batch;
    ASSERT_TRUE(data->next(batch).value());
    const Json good = data->state().to_json();
    EXPECT_EQ(load_fault(good), "no error");
    const auto with = [&](const char* name, const Json& value) {
        Json json = good;
        json[name] = value;
        return load_fault(json);
    };
    EXPECT_THAT(load_fault(Json::array()), HasSubstr("must be a JSON object"));
    for (const char* name : {"documents", "sequences", "offset"})
        for (const Json& value : {Json(-1), Json("1"), Json(0.5), Json(nullptr), Json(1ULL << 63)})
            EXPECT_THAT(with(name, value), HasSubstr(std::string("whole number '") + name + "'"));
    EXPECT_THAT(with("packing", 5), HasSubstr("no text 'packing'"));
    EXPECT_THAT(with("packing", "concat"), HasSubstr("is of the packing 'concat'"));
    EXPECT_THAT(with("dataset", 5), testing::Not("no error"));
    if (GetParam() == Packing::kConcat) {
        EXPECT_THAT(with("documents", 6), HasSubstr("beyond"));
        EXPECT_THAT(with("offset", 1000), HasSubstr("beyond"));
    } else {
        EXPECT_THAT(with("sequences", 100), HasSubstr("beyond"));
    }
}

TEST_P(Packed, NothingButEmptyDocumentsIsAnEpochWithoutBatches) {
    write_documents(scratch_ / "empty", {0, 0, 0});
    auto data = PackedDataset::open({.directory = scratch_ / "empty"}, packing_).value();
    PackedBatch batch;
    EXPECT_FALSE(data->next(batch).value());
    EXPECT_EQ(data->epoch(), 1);
    packing_.end_token = 5;
    data = PackedDataset::open({.directory = scratch_ / "empty"}, packing_).value();
    ASSERT_TRUE(data->next(batch).value());
    EXPECT_THAT(batch.tokens, ElementsAre(5, 5, 5, -1, -1, -1, -1, -1)) << "their end tokens";
    EXPECT_THAT(batch.segments, ElementsAre(1, 2, 3, 0, 0, 0, 0, 0));
}

TEST_P(Packed, OptionsOutOfRangeAreNamed) {
    const auto fault = [&](TokenPackOptions options) {
        const auto opened = PackedDataset::open({.directory = scratch_ / "d"}, options);
        return opened ? "no error" : opened.error().text();
    };
    TokenPackOptions bad = packing_;
    bad.length = 0;
    EXPECT_THAT(fault(bad), HasSubstr("length must lie in"));
    bad = packing_;
    bad.window = 0;
    EXPECT_THAT(fault(bad), HasSubstr("window must lie in"));
    bad = packing_;
    bad.batch_size = std::int64_t{1} << 40;
    EXPECT_THAT(fault(bad), HasSubstr("batch_size must lie in"));
    bad = packing_;
    bad.column = "";
    EXPECT_THAT(fault(bad), HasSubstr("name the column"));
    bad = packing_;
    bad.bytes_as = {};
    EXPECT_THAT(fault(bad), HasSubstr("bytes_as"));
}

}  // namespace
}  // namespace tune::loader
