// A token holds what the last row of the page was sorted by, so the next page begins behind it
// however many rows come or go meanwhile; and what it was made for, so that another query's token
// is refused.

#include "tracker/search/page_token.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/utf8.h"
#include "tracker/search/grammar/identifier.h"

namespace tune::tracker::search {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The largest token holds 52 values, of which texts are at most 32 kB (tags and params to sort
/// by).
constexpr std::size_t kTokenBytesMax = 4u << 20;

std::string encode_base64(std::string_view bytes) {
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char byte : bytes) {
        bits = (bits << 8) | static_cast<unsigned char>(byte);
        for (count += 8; count >= 6; count -= 6) text += kAlphabet[(bits >> (count - 6)) & 63];
    }
    if (count > 0) text += kAlphabet[(bits << (6 - count)) & 63];
    return text;
}

Result<std::string> decode_base64(std::string_view text) {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const std::size_t digit = kAlphabet.find(c);
        if (digit == std::string_view::npos || text.size() > kTokenBytesMax)
            return invalid_parameter("Invalid page token, could not base64-decode");
        bits = (bits << 6) | static_cast<std::uint32_t>(digit);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>((bits >> count) & 0xff);
    }
    return bytes;
}

/// Texts that are not UTF-8 cannot stand in JSON; keys and ids are checked, values of tags may be
/// anything, so they travel as base64.
Json to_json(const TokenValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* text = std::get_if<std::string>(&value)) return encode_base64(*text);
    return nullptr;
}

Result<TokenValue> from_json(const Json& value) {
    if (value.is_null()) return TokenValue{};
    if (value.is_number_integer()) return TokenValue{value.get<std::int64_t>()};
    if (value.is_number_float()) return TokenValue{value.get<double>()};
    if (!value.is_string()) return invalid_parameter("Invalid page token, unknown value");
    TUNE_TRY(text, decode_base64(value.get_ref<const std::string&>()));
    return TokenValue{std::move(text)};
}

}  // namespace

std::uint64_t query_fingerprint(std::string_view canonical_query) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: guards against mix-ups, not against malice
    for (const char c : canonical_query)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::string make_page_token(std::uint64_t fingerprint, const std::vector<TokenValue>& last_row) {
    Json values = Json::array();
    for (const TokenValue& value : last_row) values.push_back(to_json(value));
    return encode_base64(to_text(Json{{"q", std::to_string(fingerprint)}, {"row", values}}));
}

Result<std::vector<TokenValue>> read_page_token(std::uint64_t fingerprint, std::string_view token,
                                                std::size_t value_count) {
    TUNE_TRY(text, decode_base64(token));
    const Result<Json> parsed = parse_json(text);
    const bool is_token = parsed && parsed->is_object() && parsed->contains("q") &&
                          parsed->contains("row") && (*parsed)["row"].is_array();
    // Python's decoder, whose message clients know, wants whole groups of four.
    if (!is_token && token.size() % 4 != 0)
        return invalid_parameter("Invalid page token, could not base64-decode");
    if (!is_token) return invalid_parameter("Invalid page token, it was damaged");
    if ((*parsed)["q"] != std::to_string(fingerprint))
        return invalid_parameter("Invalid page token, it belongs to another search");
    std::vector<TokenValue> values;
    for (const Json& value : (*parsed)["row"]) {
        TUNE_TRY(one, from_json(value));
        values.push_back(std::move(one));
    }
    if (values.size() != value_count)
        return invalid_parameter("Invalid page token, it belongs to another search");
    return values;
}

std::string make_scoped_token(const ScopedToken& scoped) {
    return encode_base64(to_text(Json{{"for", scoped.scope}, {"page", scoped.token}}));
}

Result<ScopedToken> read_scoped_token(std::string_view text) {
    constexpr std::size_t kQuotedBytesMax = 500;
    const Result<std::string> bytes = decode_base64(text);
    const Result<Json> parsed = bytes ? parse_json(*bytes) : bytes.error();
    if (!parsed || !parsed->is_object() || !parsed->contains("for") ||
        !(*parsed)["for"].is_string() || !parsed->contains("page") ||
        !(*parsed)["page"].is_string())
        return invalid_parameter(
            "Invalid page token: " + std::string(cut_to_bytes(text, kQuotedBytesMax)) +
            ". It is none of this server's.");
    return ScopedToken{(*parsed)["for"].get<std::string>(), (*parsed)["page"].get<std::string>()};
}

}  // namespace tune::tracker::search
