// JSON (with comments) to Node. nlohmann's SAX events carry no positions; an input iterator that
// counts what the lexer has consumed gives them: when an event fires, the lexer has read exactly
// its last token (a number: one character more), and the token starts where the blanks, comments
// and punctuation after the previous token end.

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "tuner/config/study_config.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"

namespace tune::tuner {
namespace {

/// Walks the text and remembers in `*consumed` how far it has come.
class CountingIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}
    reference operator*() const { return *at_; }
    CountingIterator& operator++() {
        ++at_;
        ++*consumed_;
        return *this;
    }
    CountingIterator operator++(int) {
        CountingIterator old = *this;
        ++*this;
        return old;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

private:
    const char* at_;
    std::size_t* consumed_;
};

class JsonTreeBuilder final : public nlohmann::json_sax<Json> {
public:
    JsonTreeBuilder(std::string_view text, const std::size_t* consumed)
        : text_(text), consumed_(consumed) {}

    bool null() override { return add(node_here(Node::Type::kNull, false)); }
    bool boolean(bool value) override {
        Node node = node_here(Node::Type::kBool, false);
        node.boolean = value;
        return add(std::move(node));
    }
    bool number_integer(number_integer_t value) override {
        Node node = node_here(Node::Type::kInt, true);
        node.integer = value;
        node.number = static_cast<double>(value);
        return add(std::move(node));
    }
    bool number_unsigned(number_unsigned_t value) override {
        if (value <= static_cast<number_unsigned_t>(INT64_MAX))
            return number_integer(static_cast<number_integer_t>(value));
        return number_float(static_cast<double>(value), {});
    }
    bool number_float(number_float_t value, const string_t&) override {
        Node node = node_here(Node::Type::kFloat, true);
        node.number = value;
        return add(std::move(node));
    }
    bool string(string_t& value) override {
        Node node = node_here(Node::Type::kString, false);
        node.text = std::move(value);
        return add(std::move(node));
    }
    bool binary(binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(Node::Type::kMap); }
    bool start_array(std::size_t) override { return open(Node::Type::kList); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(string_t& name) override {
        Open& parent = open_.back();
        parent.key_place = place_here(false);
        if (!parent.keys.insert(name).second) {
            error =
                error_at(parent.key_place, {}, "the key " + in_quotes(name) + " is given twice");
            return false;
        }
        parent.key = std::move(name);
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
        return false;
    }

    Node root;
    Error error{Code::kInvalidParameterValue, "invalid JSON"};

private:
    struct Open {
        Node node;
        std::unordered_set<std::string> keys;
        std::string key;
        Place key_place;
    };

    /// The place of the token just read; moves the line count on, so the whole text is walked once.
    Place place_here(bool is_number) {
        skip_to_token();
        const Place place{line_, at_ - line_start_ + 1};
        std::size_t end = *consumed_;
        if (is_number && end > at_ + 1 && end <= text_.size() && !is_number_char(text_[end - 1]))
            --end;
        at_ = std::max(at_, end);
        return place;
    }

    static bool is_number_char(char c) {
        return std::string_view("0123456789+-.eE").find(c) != std::string_view::npos;
    }

    void skip_to_token() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                ++at_;
                ++line_;
                line_start_ = at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ':') {
                ++at_;
            } else if (c == '/') {
                skip_comment();
            } else {
                return;
            }
        }
    }

    void skip_comment() {
        const bool is_line = text_.substr(at_, 2) == "//";
        const std::size_t end = is_line ? text_.find('\n', at_) : text_.find("*/", at_ + 2);
        const std::size_t stop =
            end == std::string_view::npos ? text_.size() : end + (is_line ? 0 : 2);
        for (; at_ < stop; ++at_) {
            if (text_[at_] != '\n') continue;
            ++line_;
            line_start_ = at_ + 1;
        }
    }

    Node node_here(Node::Type type, bool is_number) {
        Node node;
        node.type = type;
        node.place = place_here(is_number);
        return node;
    }

    bool open(Node::Type type) {
        open_.emplace_back();
        open_.back().node = node_here(type, false);
        return true;
    }

    bool close() {
        (void)place_here(false);
        Node node = std::move(open_.back().node);
        open_.pop_back();
        return add(std::move(node));
    }

    bool add(Node node) {
        if (open_.empty()) {
            root = std::move(node);
        } else if (Open& parent = open_.back(); parent.node.type == Node::Type::kList) {
            parent.node.items.push_back(std::move(node));
        } else {
            parent.node.entries.push_back(
                Entry{std::move(parent.key), parent.key_place, std::move(node)});
        }
        return true;
    }

    std::string_view text_;
    const std::size_t* consumed_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    std::size_t line_start_ = 0;
    std::vector<Open> open_;
};

}  // namespace

Result<Node> read_json(std::string_view text) {
    if (text.size() > kStudyBytesMax)
        return error_at({}, {},
                        "the text has " + std::to_string(text.size()) +
                            " bytes; a study may have at most " + std::to_string(kStudyBytesMax));
    // First the shared parser: it bounds the nesting and words the syntax errors.
    TUNE_TRY_VOID(parse_json_with_comments(text));
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::size_t consumed = 0;
    JsonTreeBuilder builder(text, &consumed);
    const bool ok = Json::sax_parse(CountingIterator(text.data(), &consumed),
                                    CountingIterator(text.data() + text.size(), &consumed),
                                    &builder, Json::input_format_t::json, true, true);
    if (!ok) return std::move(builder.error);
    return std::move(builder.root);
}

}  // namespace tune::tuner
