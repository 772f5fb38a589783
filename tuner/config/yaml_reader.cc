// YAML to Node through yaml-cpp's event interface. Events, not YAML::Load: Load would share the
// nodes of aliases, and walking a chain of aliases ("billion laughs") grows without bound; here an
// anchor is refused the moment it is seen.

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <unordered_set>

#include "tuner/config/study_config.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"

namespace tune::tuner {
namespace {

/// Thrown out of the handler, caught in read_yaml.
struct Refusal {
    Place place;
    std::string message;
};

Place place_of(const YAML::Mark& mark) {
    if (mark.is_null()) return {1, 1};
    return {static_cast<std::size_t>(mark.line) + 1, static_cast<std::size_t>(mark.column) + 1};
}

/// What a plain (unquoted) scalar means in YAML 1.2's core schema; `on` and `yes` are text. Numbers
/// such as 1e-5, which the schema's grammar wants with a dot, are numbers here as in JSON.
void resolve_plain(const std::string& text, Node& node) {
    if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
        text == "FALSE") {
        node.type = Node::Type::kBool;
        node.boolean = text[0] == 't' || text[0] == 'T';
        return;
    }
    const char* begin = text.data();
    const char* end = begin + text.size();
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++begin;
    const bool may_be_number =
        begin != end && (std::string_view("0123456789.-").find(*begin) != std::string_view::npos);
    if (may_be_number) {
        if (auto [p, ec] = std::from_chars(begin, end, node.integer);
            ec == std::errc() && p == end) {
            node.type = Node::Type::kInt;
            node.number = static_cast<double>(node.integer);
            return;
        }
        auto [p, ec] = std::from_chars(begin, end, node.number);
        const bool is_word =
            begin[*begin == '-' ? 1 : 0] == 'i' || begin[*begin == '-' ? 1 : 0] == 'n';
        if (ec == std::errc() && p == end && !is_word) {
            node.type = Node::Type::kFloat;
            return;
        }
    }
    const std::string_view rest(begin, static_cast<std::size_t>(end - begin));
    if (rest == ".inf" || rest == "-.inf" || rest == ".nan") {
        const double infinity = std::numeric_limits<double>::infinity();
        node.type = Node::Type::kFloat;
        node.number = rest == ".nan" ? std::nan("") : rest[0] == '-' ? -infinity : infinity;
        return;
    }
    node.type = Node::Type::kString;
    node.text = text;
}

class YamlTreeBuilder final : public YAML::EventHandler {
public:
    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}

    void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
        throw Refusal{place_of(mark), "anchor " + in_quotes("&" + name) +
                                          " is not supported; write the value out in each place"};
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        throw Refusal{place_of(mark), "aliases ('*name') are not supported; write the value out"};
    }

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        Node node;
        node.place = place_of(mark);
        refuse_anchor(anchor, node.place);
        add(std::move(node), true);
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        Node node;
        node.place = place_of(mark);
        refuse_anchor(anchor, node.place);
        refuse_tag(tag, node.place);
        const bool is_key = !open_.empty() && open_.back().wants_key();
        if (tag == "?" && !is_key) {
            resolve_plain(value, node);
        } else {
            node.type = Node::Type::kString;
            node.text = value;
        }
        add(std::move(node), true);
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(Node::Type::kList, mark, tag, anchor);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(Node::Type::kMap, mark, tag, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

    Node root;

private:
    struct Open {
        Node node;
        std::unordered_set<std::string> keys;
        bool has_key = false;
        std::string key;
        Place key_place;

        bool wants_key() const { return node.type == Node::Type::kMap && !has_key; }
    };

    static void refuse_anchor(YAML::anchor_t anchor, Place place) {
        if (anchor != 0)
            throw Refusal{place, "anchors ('&name') are not supported; write the value out"};
    }

    static void refuse_tag(const std::string& tag, Place place) {
        if (tag.size() > 1)
            throw Refusal{place, "tag " + in_quotes(tag) +
                                     " is not supported; quote the value to make it a text"};
    }

    void open(Node::Type type, const YAML::Mark& mark, const std::string& tag,
              YAML::anchor_t anchor) {
        const Place place = place_of(mark);
        refuse_anchor(anchor, place);
        refuse_tag(tag, place);
        if (!open_.empty() && open_.back().wants_key())
            throw Refusal{place, "a list or map cannot be a key; expected a name"};
        if (open_.size() >= static_cast<std::size_t>(kNodeDepthMax))
            throw Refusal{place, "nested deeper than " + std::to_string(kNodeDepthMax) + " levels"};
        open_.emplace_back();
        open_.back().node.type = type;
        open_.back().node.place = place;
    }

    void close() {
        Node node = std::move(open_.back().node);
        open_.pop_back();
        add(std::move(node), false);
    }

    void add(Node node, bool is_scalar) {
        if (open_.empty()) {
            root = std::move(node);
            return;
        }
        Open& parent = open_.back();
        if (parent.node.type == Node::Type::kList) {
            parent.node.items.push_back(std::move(node));
        } else if (!parent.has_key) {
            if (!is_scalar || node.type != Node::Type::kString)
                throw Refusal{node.place, "a key is missing before ':'"};
            if (!parent.keys.insert(node.text).second)
                throw Refusal{node.place, "the key " + in_quotes(node.text) + " is given twice"};
            parent.key = std::move(node.text);
            parent.key_place = node.place;
            parent.has_key = true;
        } else {
            parent.node.entries.push_back(
                Entry{std::move(parent.key), parent.key_place, std::move(node)});
            parent.has_key = false;
        }
    }

    std::vector<Open> open_;
};

/// What is most often meant by a syntax error in this line.
std::string hint_for(std::string_view text, Place place) {
    for (std::size_t line = 1; line < place.line; ++line) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + 1);
    }
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos)
        return " (the line is indented with a tab; YAML wants spaces)";
    if (line.find(":{") != std::string_view::npos || line.find(":[") != std::string_view::npos)
        return " (a blank is missing after ':')";
    return {};
}

}  // namespace

Result<Node> read_yaml(std::string_view text) {
    if (text.size() > kStudyBytesMax)
        return error_at({}, {},
                        "the text has " + std::to_string(text.size()) +
                            " bytes; a study may have at most " + std::to_string(kStudyBytesMax));
    if (text.find('\0') != std::string_view::npos)
        return error_at({}, {}, "the text holds a NUL byte; expected UTF-8 text");
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        YamlTreeBuilder builder;
        if (!parser.HandleNextDocument(builder)) return Node{};
        YamlTreeBuilder second;
        if (parser.HandleNextDocument(second))
            return error_at(second.root.place, {},
                            "a second document starts here; expected one study per file");
        return std::move(builder.root);
    } catch (const Refusal& refusal) {
        return error_at(refusal.place, {}, refusal.message);
    } catch (const YAML::Exception& error) {
        const Place place = place_of(error.mark);
        return error_at(place, {}, "invalid YAML: " + error.msg + hint_for(text, place));
    }
}

}  // namespace tune::tuner
