#pragma once
// A value with its place in the text it came from. YAML, JSON and REST bodies become the same tree,
// so that one reader checks them all and every error can say where. Private to tuner/space.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tune::tuner {

/// Nesting of a study file; deeper than any choice value needs, far below the stack.
inline constexpr int kNodeDepthMax = 64;

/// 1-based; line 0 when the value did not come from a text.
struct Place {
    std::size_t line = 0;
    std::size_t column = 0;
};

struct Entry;

struct Node {
    enum class Type { kNull, kBool, kInt, kFloat, kString, kList, kMap };

    Type type = Type::kNull;
    Place place;
    bool boolean = false;
    std::int64_t integer = 0;
    double number = 0;  // kFloat, and kInt as a double
    std::string text;   // kString
    std::vector<Node> items;
    std::vector<Entry> entries;  // in order of the text; keys are distinct

    /// The value of `key` in a map; null if there is none.
    [[nodiscard]] const Node* find(std::string_view key) const;

    [[nodiscard]] bool is_number() const { return type == Type::kInt || type == Type::kFloat; }
    [[nodiscard]] bool is_scalar() const { return type != Type::kList && type != Type::kMap; }
};

struct Entry {
    std::string key;
    Place place;  // of the key
    Node value;
};

/// Both refuse: a text over `kStudyBytesMax`, nesting over kNodeDepthMax, keys given twice, and
/// syntax errors; YAML also anchors, aliases, tags and a second document. Errors:
/// kInvalidParameterValue, "line 3, column 7: ...".
[[nodiscard]] Result<Node> read_yaml(std::string_view text);
[[nodiscard]] Result<Node> read_json(std::string_view text);

/// A tree without places. Errors: kInvalidParameterValue for nesting over kNodeDepthMax.
[[nodiscard]] Result<Node> node_from_json(const Json& value);

[[nodiscard]] Json to_json(const Node& node);

/// "a string", "the list [1, 2]", "the number 3": how errors call a value.
[[nodiscard]] std::string describe(const Node& node);

/// kInvalidParameterValue, "line 3, column 7: space.lr: message"; parts that are empty are left
/// out.
[[nodiscard]] Error error_at(Place place, std::string_view path, std::string_view message);

/// "line 3, column 7: " or nothing.
[[nodiscard]] std::string place_prefix(Place place);

}  // namespace tune::tuner
