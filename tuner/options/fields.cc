// Reading one level of a study file: each key once, known keys only, and every error with the place
// where the reader of the file has to look.

#include "tuner/options/fields.h"

#include <cmath>

#include "base/text/number_text.h"
#include "tuner/options/duration.h"
#include "tuner/space/error_text.h"
#include "tuner/space/space.h"
#include "tuner/space/space_reader.h"

namespace tune::tuner {

Result<std::int64_t> duration_of(const Node& node, std::string_view path) {
    std::int64_t duration_ms = 0;
    if (node.is_number()) {
        if (!(node.number >= 0) || node.number * 1000 > static_cast<double>(kDurationMax_ms))
            return error_at(node.place, path,
                            "expected a duration of 0 to 3650 days, found " + describe(node));
        return static_cast<std::int64_t>(std::llround(node.number * 1000));
    }
    if (node.type != Node::Type::kString)
        return error_at(node.place, path,
                        "expected a duration such as 90s or 1h30m, found " + describe(node));
    Result<std::int64_t> parsed = parse_duration_ms(node.text);
    if (!parsed) return error_at(node.place, path, parsed.error().message);
    duration_ms = *parsed;
    return duration_ms;
}

Result<void> check_text(const Node& node, std::string_view path, std::size_t chars_max) {
    if (node.type != Node::Type::kString)
        return error_at(node.place, path, "expected a text, found " + describe(node));
    if (node.text.size() > chars_max)
        return error_at(node.place, path,
                        "the text has " + std::to_string(node.text.size()) + " bytes; at most " +
                            std::to_string(chars_max) + " are allowed");
    for (const char c : node.text)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\t')
            return error_at(node.place, path, "the text holds a control character");
    return {};
}

Result<Fields> Fields::open(const Node& node, std::string path,
                            const std::vector<std::string>& known, int depth) {
    if (node.type != Node::Type::kMap)
        return error_at(
            node.place, path,
            "expected a map with the keys " + listed(known) + ", found " + describe(node));
    TUNE_TRY_VOID(expect_keys(node, path, known));
    return Fields(node, std::move(path), depth);
}

Result<void> Fields::integer(std::string_view key, std::int64_t& out, std::int64_t low,
                             std::int64_t high) const {
    const Node* value = find(key);
    if (value == nullptr) return {};
    if (value->type != Node::Type::kInt || value->integer < low || value->integer > high) {
        const std::string range =
            high == std::numeric_limits<std::int64_t>::max()
                ? "of at least " + std::to_string(low)
                : "from " + std::to_string(low) + " to " + std::to_string(high);
        return error_at(value->place, path_of(key),
                        "expected an integer " + range + ", found " + describe(*value));
    }
    out = value->integer;
    return {};
}

Result<void> Fields::integer(std::string_view key, int& out, int low, int high) const {
    std::int64_t wide = out;
    TUNE_TRY_VOID(integer(key, wide, low, high));
    out = static_cast<int>(wide);
    return {};
}

Result<void> Fields::number(std::string_view key, double& out, double low, double high) const {
    const Node* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_number() || !(value->number >= low && value->number <= high))
        return error_at(value->place, path_of(key),
                        "expected a number from " + number_text(low) + " to " + number_text(high) +
                            ", found " + describe(*value));
    out = value->number;
    return {};
}

Result<void> Fields::text(std::string_view key, std::string& out, std::size_t chars_max) const {
    const Node* value = find(key);
    if (value == nullptr) return {};
    TUNE_TRY_VOID(check_text(*value, path_of(key), chars_max));
    out = value->text;
    return {};
}

Result<void> Fields::duration(std::string_view key, std::int64_t& out_ms) const {
    const Node* value = find(key);
    if (value == nullptr) return {};
    TUNE_TRY(duration_ms, duration_of(*value, path_of(key)));
    out_ms = duration_ms;
    return {};
}

}  // namespace tune::tuner
