// The tree that YAML, JSON and request bodies become, its way to JSON and back, and the beginnings
// of all sentences about it. Integers keep their own type beside doubles, so that 1 and 1.0 can be
// told apart; one beyond 64 bits becomes a double. Depth is bounded, since all readers of a tree
// recurse.

#include "tuner/space/node.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/space.h"

namespace tune::tuner {

const Node* Node::find(std::string_view key) const {
    for (const Entry& entry : entries)
        if (entry.key == key) return &entry.value;
    return nullptr;
}

std::string place_prefix(Place place) {
    if (place.line == 0) return {};
    return "line " + std::to_string(place.line) + ", column " + std::to_string(place.column) + ": ";
}

Error error_at(Place place, std::string_view path, std::string_view message) {
    std::string text = place_prefix(place);
    if (!path.empty()) text.append(path).append(": ");
    return Error{Code::kInvalidParameterValue, text.append(message)};
}

Json to_json(const Node& node) {
    switch (node.type) {
        case Node::Type::kNull: return nullptr;
        case Node::Type::kBool: return node.boolean;
        case Node::Type::kInt: return node.integer;
        case Node::Type::kFloat: return node.number;
        case Node::Type::kString: return node.text;
        case Node::Type::kList: {
            Json list = Json::array();
            for (const Node& item : node.items) list.push_back(to_json(item));
            return list;
        }
        case Node::Type::kMap: break;
    }
    Json map = Json::object();
    for (const Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
    return map;
}

std::string describe(const Node& node) {
    switch (node.type) {
        case Node::Type::kNull: return "nothing";
        case Node::Type::kBool: return node.boolean ? "true" : "false";
        case Node::Type::kInt: return "the number " + std::to_string(node.integer);
        case Node::Type::kFloat: return "the number " + number_text(node.number);
        case Node::Type::kString: return "the text " + in_quotes(node.text);
        case Node::Type::kList: return "the list " + shortened(to_text(to_json(node)));
        case Node::Type::kMap: return "the map " + shortened(to_text(to_json(node)));
    }
    return {};
}

namespace {

Result<Node> convert(const Json& value, int depth) {
    if (depth > kNodeDepthMax)
        return error_at({}, {}, "nested deeper than " + std::to_string(kNodeDepthMax) + " levels");
    Node node;
    switch (value.type()) {
        case Json::value_t::boolean:
            node.type = Node::Type::kBool;
            node.boolean = value.get<bool>();
            break;
        case Json::value_t::number_unsigned:
            if (value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
                node.type = Node::Type::kFloat;
                node.number = value.get<double>();
                break;
            }
            [[fallthrough]];
        case Json::value_t::number_integer:
            node.type = Node::Type::kInt;
            node.integer = value.get<std::int64_t>();
            node.number = static_cast<double>(node.integer);
            break;
        case Json::value_t::number_float:
            node.type = Node::Type::kFloat;
            node.number = value.get<double>();
            break;
        case Json::value_t::string:
            node.type = Node::Type::kString;
            node.text = value.get_ref<const std::string&>();
            break;
        case Json::value_t::array:
            node.type = Node::Type::kList;
            for (const Json& item : value) {
                TUNE_TRY(child, convert(item, depth + 1));
                node.items.push_back(std::move(child));
            }
            break;
        case Json::value_t::object:
            node.type = Node::Type::kMap;
            for (const auto& [key, item] : value.items()) {
                TUNE_TRY(child, convert(item, depth + 1));
                node.entries.push_back(Entry{key, {}, std::move(child)});
            }
            break;
        default: break;
    }
    return node;
}

}  // namespace

Result<Node> node_from_json(const Json& value) {
    return convert(value, 1);
}

}  // namespace tune::tuner
