#include "tracker/search/page_token.h"

#include <gtest/gtest.h>

#include <limits>

namespace tune::tracker::search {
namespace {

const std::vector<TokenValue> kRow = {std::int64_t{-5},
                                      0.1,
                                      std::string("k\xc3\xa4se \"\xff"),
                                      TokenValue{},
                                      std::numeric_limits<std::int64_t>::max(),
                                      -1.7976931348623157e308,
                                      std::string()};

TEST(PageToken, GivesBackEveryKindOfValue) {
    const std::uint64_t query = query_fingerprint("a");
    const auto values = read_page_token(query, make_page_token(query, kRow), kRow.size());
    ASSERT_TRUE(values) << values.error().message;
    EXPECT_EQ(*values, kRow);
}

TEST(PageToken, IsRefusedForAnotherQuery) {
    const std::string token = make_page_token(query_fingerprint("a"), kRow);
    const auto other = read_page_token(query_fingerprint("b"), token, kRow.size());
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::kInvalidParameterValue);
    EXPECT_EQ(other.error().message, "Invalid page token, it belongs to another search");
    EXPECT_FALSE(read_page_token(query_fingerprint("a"), token, 2));
}

TEST(PageToken, IsRefusedWhenDamaged) {
    const auto plain = read_page_token(1, "not base64!", 1);
    ASSERT_FALSE(plain);
    EXPECT_EQ(plain.error().message, "Invalid page token, could not base64-decode");
    // What MLflow's own tests send.
    EXPECT_EQ(read_page_token(1, "evilhax", 1).error().message,
              "Invalid page token, could not base64-decode");
    EXPECT_EQ(read_page_token(1, "evilhaxx", 1).error().message,
              "Invalid page token, it was damaged");
    const std::string token = make_page_token(1, {std::int64_t{7}});
    for (std::size_t i = 0; i < token.size(); ++i) {
        std::string bad = token;
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        const auto read = read_page_token(1, bad, 1);
        if (read) continue;  // a changed value is still a token
        EXPECT_EQ(read.error().code, Code::kInvalidParameterValue);
    }
    EXPECT_FALSE(read_page_token(1, token.substr(0, token.size() / 2), 1));
}

}  // namespace
}  // namespace tune::tracker::search
