#include "tuner/study/journal/python_text.h"

#include <nlohmann/json.hpp>

#include "tracker/search/python_text.h"

namespace tune::tuner {
namespace {

using tracker::search::python_float;
using tracker::search::python_repr;

/// repr(json.loads(value)), appended.
void append_repr(const Json& value, std::string& text) {
    switch (value.type()) {
        case Json::value_t::null: text += "None"; return;
        case Json::value_t::boolean: text += value.get<bool>() ? "True" : "False"; return;
        case Json::value_t::number_float: text += python_float(value.get<double>()); return;
        case Json::value_t::string:
            text += python_repr(value.get_ref<const std::string&>());
            return;
        case Json::value_t::array: {
            const char* separator = "[";
            for (const Json& item : value) {
                text += std::exchange(separator, ", ");
                append_repr(item, text);
            }
            text += value.empty() ? "[]" : "]";
            return;
        }
        case Json::value_t::object: {
            const char* separator = "{";
            for (const auto& [key, item] : value.items()) {
                text += std::exchange(separator, ", ") + python_repr(key) + ": ";
                append_repr(item, text);
            }
            text += value.empty() ? "{}" : "}";
            return;
        }
        default: text += value.dump();
    }
}

}  // namespace

std::string python_text(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    std::string text;
    append_repr(value, text);
    return text;
}

}  // namespace tune::tuner
