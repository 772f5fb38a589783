#include "tuner/options/chosen.h"

#include <algorithm>

#include "tuner/options/option_table.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"

namespace tune::tuner {

Chosen::Chosen(const KindBase& kind) : kind_(&kind), options_(kind.options.defaults()) {}

void* Chosen::address() {
    return kind_->options.address(options_);
}

const void* Chosen::address() const {
    return kind_->options.address(options_);
}

bool Chosen::operator==(const Chosen& other) const {
    return kind_ == other.kind_ && kind_->options.are_equal(options_, other.options_);
}

const KindBase* find_kind(Kinds kinds, std::string_view name) {
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const KindBase* kind) { return kind->name == name; });
    return found == kinds.end() ? nullptr : *found;
}

std::vector<std::string> names_of(Kinds kinds) {
    std::vector<std::string> names;
    for (const KindBase* kind : kinds) names.emplace_back(kind->name);
    return names;
}

Result<const KindBase*> read_kind(const Node& node, const std::string& path, Kinds kinds) {
    const std::vector<std::string> known = names_of(kinds);
    const Node* type = &node;
    if (node.type == Node::Type::kMap) type = node.find("type");
    if (type == nullptr)
        return error_at(node.place, path, "'type' is missing; expected one of " + listed(known));
    if (type->type == Node::Type::kNull)
        if (const KindBase* none = find_kind(kinds, "none")) return none;
    if (type->type != Node::Type::kString)
        return error_at(type->place, path + ".type",
                        "expected one of " + listed(known) + ", found " + describe(*type));
    if (const KindBase* found = find_kind(kinds, type->text)) return found;
    return error_at(
        type->place, path + ".type",
        "unknown " + path + " " + in_quotes(type->text) + known_words(type->text, known));
}

const Node& section_of(const Node& node, Node& short_form) {
    if (node.type == Node::Type::kMap) return node;
    short_form.type = Node::Type::kMap;
    short_form.place = node.place;
    return short_form;
}

}  // namespace tune::tuner
