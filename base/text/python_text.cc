#include "base/text/python_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/number_text.h"

#include "base/text/hex.h"

namespace tune {
namespace {

/// repr(json.loads(value)), appended.
void append_repr(const Json& value, std::string& text) {
    switch (value.type()) {
        case Json::value_t::null: text += "None"; return;
        case Json::value_t::boolean: text += value.get<bool>() ? "True" : "False"; return;
        case Json::value_t::number_float: text += number_text(value.get<double>()); return;
        case Json::value_t::string:
            text += python_repr(value.get_ref<const std::string&>());
            return;
        case Json::value_t::array: {
            const char* separator = "";
            text += '[';
            for (const Json& item : value) {
                text += std::exchange(separator, ", ");
                append_repr(item, text);
            }
            text += ']';
            return;
        }
        case Json::value_t::object: {
            const char* separator = "";
            text += '{';
            for (const auto& [key, item] : value.items()) {
                text += std::exchange(separator, ", ");
                text += python_repr(key) + ": ";
                append_repr(item, text);
            }
            text += '}';
            return;
        }
        default: text += value.dump();
    }
}

}  // namespace

std::string python_repr(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const bool has_double = text.find('"') != std::string_view::npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    std::string out(1, quote);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == quote || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (c == '\r') {
            out += "\\r";
        } else if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            append_hex(out, c);
        } else {
            out += c;
        }
    }
    return out + quote;
}

std::string python_text(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    std::string text;
    append_repr(value, text);
    return text;
}

}  // namespace tune
