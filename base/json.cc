#include "base/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/limits.h"

namespace tune {
namespace {

struct Position {
    std::size_t line = 1;
    std::size_t column = 1;
};

Position position_of(std::string_view text, std::size_t byte) {
    Position position;
    for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
        if (text[i] == '\n') {
            ++position.line;
            position.column = 1;
        } else {
            ++position.column;
        }
    }
    return position;
}

/// The byte (1-based) at which nesting passes the limit, or 0. Strings are skipped; comments may
/// hold brackets, which can only make this stricter.
std::size_t too_deep_at(std::string_view text) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
            continue;
        }
        if (c == '"') in_string = true;
        if (c == '[' || c == '{') ++depth;
        if (c == ']' || c == '}') --depth;
        if (depth > kJsonDepthMax) return i + 1;
    }
    return 0;
}

Error error_at(std::string_view text, std::size_t byte, const std::string& what) {
    const Position position = position_of(text, byte);
    return Error{Code::kInvalidParameterValue, "invalid JSON at line " +
                                                   std::to_string(position.line) + ", column " +
                                                   std::to_string(position.column) + ": " + what};
}

std::string reason_in(const std::string& parser_text) {
    // nlohmann writes "[json.exception.parse_error.101] parse error at line 1, column 2: syntax
    // error ... - reason".
    const std::size_t at = parser_text.find(": ");
    return at == std::string::npos ? parser_text : parser_text.substr(at + 2);
}

Result<Json> parse(std::string_view text, bool comments) {
    if (const std::size_t byte = too_deep_at(text); byte != 0)
        return error_at(text, byte,
                        "nested deeper than " + std::to_string(kJsonDepthMax) + " levels");
    // The parser takes it for the end of the text, whatever follows.
    if (const std::size_t at = text.find('\0'); at != std::string_view::npos)
        return error_at(text, at + 1, "a NUL byte");
    try {
        return Json::parse(text, nullptr, true, comments);
    } catch (const Json::parse_error& error) {
        return error_at(text, error.byte, reason_in(error.what()));
    } catch (const Json::exception& error) {
        return Error{Code::kInvalidParameterValue,
                     std::string("invalid JSON: ") + reason_in(error.what())};
    }
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
    return parse(text, false);
}

Result<Json> parse_json_with_comments(std::string_view text) {
    return parse(text, true);
}

std::string to_text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return value;
}

}  // namespace tune
