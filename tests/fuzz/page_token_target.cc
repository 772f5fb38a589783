// Page tokens: any text is refused or read, and what is made is read back.

#include <cmath>
#include <cstring>

#include "tests/fuzz/fuzz.h"
#include "tracker/search/page_token.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker::search;

bool same(const TokenValue& a, const TokenValue& b) {
    const auto* left = std::get_if<double>(&a);
    const auto* right = std::get_if<double>(&b);
    if (left && right) return *left == *right || (std::isnan(*left) && std::isnan(*right));
    return a == b;
}

/// Values out of the bytes: a kind, then what it holds.
std::vector<TokenValue> values_of(std::string_view bytes) {
    std::vector<TokenValue> values;
    while (bytes.size() >= 9 && values.size() < 8) {
        const char kind = bytes[0];
        std::int64_t number = 0;
        std::memcpy(&number, bytes.data() + 1, sizeof number);
        double real = 0;
        std::memcpy(&real, &number, sizeof real);
        bytes.remove_prefix(9);
        switch (kind & 3) {
            case 0: values.emplace_back(std::monostate()); break;
            case 1: values.emplace_back(number); break;
            case 2: values.emplace_back(std::isfinite(real) ? real : 0.5); break;
            default:
                // Texts are UTF-8 by the time they are in the store.
                values.emplace_back(std::to_string(number));
        }
    }
    return values;
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::tracker::search;
    const std::string_view text = text_of(data, size);
    const std::uint64_t fingerprint = query_fingerprint(text);
    for (std::size_t count = 0; count < 4; ++count) {
        const auto read = read_page_token(1, text, count);
        if (!read) FUZZ_CHECK(read.error().code == tune::Code::kInvalidParameterValue);
        if (read) FUZZ_CHECK(read->size() == count);
    }
    const std::vector<TokenValue> values = values_of(text);
    const auto read =
        read_page_token(fingerprint, make_page_token(fingerprint, values), values.size());
    FUZZ_CHECK(read && read->size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) FUZZ_CHECK(same(values[i], (*read)[i]));
    FUZZ_CHECK(
        !read_page_token(fingerprint + 1, make_page_token(fingerprint, values), values.size()));
    return 0;
}
