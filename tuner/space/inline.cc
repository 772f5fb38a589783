// NAME=SPEC becomes the tree that the same parameter would be in a study file, so that one reader
// checks both; every value keeps its column. Outside brackets and quotes the characters `:`, `?`
// and `@` cut SPEC into segments: the domain first, then flags, conditions and the first value in
// any order. The flags are read before the domain, since they say what kind it is.

#include "tuner/space/inline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/space_check.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kWordBytesMax = 64u << 10;

/// A piece of the word that knows where it stands.
struct Piece {
    std::string_view text;
    std::size_t column = 1;  // 1-based

    Piece sub(std::size_t from, std::size_t count = std::string_view::npos) const {
        return {text.substr(from, count), column + from};
    }
    /// A word of the command line has no line.
    Place place() const { return {0, column}; }
};

Node text_node(const Piece& piece) {
    Node node;
    node.type = Node::Type::kString;
    node.place = piece.place();
    node.text = piece.text;
    return node;
}

Node number_node(const Piece& piece, double number) {
    Node node;
    node.type = Node::Type::kFloat;
    node.place = piece.place();
    node.number = number;
    return node;
}

Node list_node(const Piece& piece, std::vector<Node> items) {
    Node node;
    node.type = Node::Type::kList;
    node.place = piece.place();
    node.items = std::move(items);
    return node;
}

Node true_node(const Piece& piece) {
    Node node;
    node.type = Node::Type::kBool;
    node.place = piece.place();
    node.boolean = true;
    return node;
}

Node map_node(const Piece& piece) {
    Node node;
    node.type = Node::Type::kMap;
    node.place = piece.place();
    return node;
}

/// Lists and maps within each other; 0 for a scalar.
int depth_of(const Node& node) {
    int deepest = 0;
    for (const Node& item : node.items) deepest = std::max(deepest, depth_of(item));
    for (const Entry& entry : node.entries) deepest = std::max(deepest, depth_of(entry.value));
    return node.is_scalar() ? 0 : deepest + 1;
}

/// The value of `key` in a map. Keys stand in their own order, whatever that of the word, so that
/// of several errors the same one is reported.
Node& put(Node& map, std::string_view key, Node value) {
    const auto behind = std::find_if(map.entries.begin(), map.entries.end(),
                                     [&](const Entry& entry) { return entry.key > key; });
    const Place place = value.place;
    return map.entries.insert(behind, Entry{std::string(key), place, std::move(value)})->value;
}

std::optional<double> number_of(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    const std::optional<double> value = number_from_text<double>(text);
    return value && *value == *value ? value : std::nullopt;
}

bool is_integer_text(std::string_view text) {
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class InlineReader {
public:
    explicit InlineReader(std::string_view word) : word_(word) {}

    Result<InlineParameter> read() {
        if (word_.size() > kWordBytesMax)
            return error(1, "the word has " + std::to_string(word_.size()) +
                                " bytes; use a study file for spaces this large");
        const std::size_t equals = word_.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return error(1, "expected NAME=SPEC, such as lr=1e-5..1e-1:log");
        std::string_view name = word_.substr(0, equals);
        if (name.ends_with(':')) {
            name.remove_suffix(1);
            if (const auto wrong = name_error(name)) return error(1, *wrong);
            if (equals + 1 == word_.size())
                return error(equals + 2, "expected an expression after ':='");
            return InlineParameter{std::string(name), true,
                                   text_node({word_.substr(equals + 1), equals + 2})};
        }
        if (const auto wrong = name_error(name)) return error(1, *wrong);
        Piece rest{word_.substr(equals + 1), equals + 2};
        if (rest.text.starts_with("=")) {
            TUNE_TRY_VOID(read_const(rest.sub(1)));
        } else {
            TUNE_TRY_VOID(read_spec(rest));
        }
        if (!when_.entries.empty()) put(spec_, "when", std::move(when_));
        spec_.place = rest.place();
        if (depth_of(spec_) > kNodeDepthMax)
            return error(rest.column, "a value is nested too deeply; a parameter may have " +
                                          std::to_string(kNodeDepthMax) + " levels");
        return InlineParameter{std::string(name), false, std::move(spec_)};
    }

private:
    Error error(std::size_t column, const std::string& message) const {
        return Error{Code::kInvalidParameterValue, "in " + in_quotes(word_) + ", column " +
                                                       std::to_string(column) + ": " + message};
    }

    /// A text as JSON where it is a JSON value, else as a string: 3, 0.5, true, [1,2], sgd.
    Result<Node> value_of(const Piece& piece) const {
        const Result<Json> parsed = parse_json(piece.text);
        if (!parsed) return text_node(piece);
        Result<Node> node = node_from_json(*parsed);
        if (!node) return error(piece.column, node.error().message);
        node->place = piece.place();
        return node;
    }

    /// The first of `wanted` outside brackets and quotes, from `from` on.
    static std::size_t find_outside(std::string_view text, std::string_view wanted,
                                    std::size_t from = 0) {
        int depth = 0;
        bool inside_text = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            if (inside_text) {
                if (c == '\\') ++i;
                if (c == '"') inside_text = false;
                continue;
            }
            if (i >= from && depth == 0 && wanted.find(c) != std::string_view::npos) return i;
            if (c == '"') inside_text = true;
            if (c == '[' || c == '{' || c == '(') ++depth;
            if ((c == ']' || c == '}' || c == ')') && depth > 0) --depth;
        }
        return std::string_view::npos;
    }

    static std::vector<Piece> split_outside(Piece piece, char separator) {
        std::vector<Piece> pieces;
        for (;;) {
            const std::size_t at = find_outside(piece.text, std::string_view(&separator, 1));
            pieces.push_back(piece.sub(0, at));
            if (at == std::string_view::npos) return pieces;
            piece = piece.sub(at + 1);
        }
    }

    /// A const takes everything up to its conditions: `seed==1`, `tag==a:b`, `seed==1?opt=sgd`.
    Result<void> read_const(Piece piece) {
        const std::size_t cut = std::min(find_outside(piece.text, "?"), piece.text.find(":if("));
        const Piece value = piece.sub(0, cut);
        if (value.text.empty()) return error(piece.column, "expected a value after '=='");
        TUNE_TRY(constant, value_of(value));
        put(spec_, "const", std::move(constant));
        return cut == std::string_view::npos ? Result<void>() : read_segments(piece.sub(cut));
    }

    Result<void> read_spec(Piece piece) {
        const std::size_t cut = find_outside(piece.text, ":?@");
        const Piece domain = piece.sub(0, cut);
        if (cut != std::string_view::npos) TUNE_TRY_VOID(read_segments(piece.sub(cut)));
        return read_domain(domain);
    }

    /// `:flag`, `?conditions`, `@init`, each up to the next such character.
    Result<void> read_segments(Piece piece) {
        while (!piece.text.empty()) {
            const std::size_t end = find_outside(piece.text, ":?@", 1);
            const Piece body = piece.sub(1, end == std::string_view::npos ? end : end - 1);
            switch (piece.text[0]) {
                case ':': TUNE_TRY_VOID(read_flag(body)); break;
                case '?': TUNE_TRY_VOID(read_conditions(body)); break;
                default: TUNE_TRY_VOID(read_init(body)); break;
            }
            if (end == std::string_view::npos) break;
            piece = piece.sub(end);
        }
        return {};
    }

    Result<void> read_flag(Piece flag) {
        if (flag.text.starts_with("if(")) {
            if (!flag.text.ends_with(")"))
                return error(flag.column, "':if(' is not closed; expected ':if(name=value)'");
            return read_conditions(flag.sub(3, flag.text.size() - 4));
        }
        for (const std::string_view prior : {"normal", "lognormal", "weights"})
            if (flag.text.starts_with(prior) && flag.text.substr(prior.size()).starts_with("("))
                return read_prior(flag, prior);
        if (const std::optional<double> step = number_of(flag.text)) {
            if (spec_.find("step") != nullptr) return error(flag.column, "a second step");
            // As it is written: `:32` is an integer, `:0.5` is none.
            TUNE_TRY(value, is_integer_text(flag.text) ? value_of(flag) : number_node(flag, *step));
            put(spec_, "step", std::move(value));
            return {};
        }
        bool* const target = flag.text == "log"   ? &log_
                             : flag.text == "int" ? &int_
                             : flag.text == "ord" ? &ordinal_
                                                  : nullptr;
        if (target == nullptr)
            return error(flag.column,
                         "unknown flag " + in_quotes(flag.text) +
                             "; expected log, int, ord, if(name=value), normal(mean,deviation), "
                             "lognormal(median,deviation), weights(a,b) or a number "
                             "(the step)" +
                             did_you_mean(flag.text,
                                          {"log", "int", "ord", "normal", "lognormal", "weights"}));
        *target = true;
        return {};
    }

    /// `normal(0,1)`, `weights(3,1)`: the numbers as a list.
    Result<void> read_prior(Piece flag, std::string_view key) {
        const Piece body = flag.sub(key.size());
        if (!body.text.ends_with(")"))
            return error(body.column, "expected '" + std::string(key) + "(a,b)'");
        if (spec_.find(key) != nullptr)
            return error(flag.column, "a second '" + std::string(key) + "'");
        std::vector<Node> list;
        for (const Piece& item : split_outside(body.sub(1, body.text.size() - 2), ',')) {
            const std::optional<double> number = number_of(item.text);
            if (!number) return error(item.column, "expected a number");
            list.push_back(number_node(item, *number));
        }
        put(spec_, key, list_node(flag, std::move(list)));
        return {};
    }

    Result<void> read_init(Piece piece) {
        if (piece.text.empty()) return error(piece.column, "expected the first value after '@'");
        if (spec_.find("init") != nullptr) return error(piece.column, "a second first value");
        TUNE_TRY(init, value_of(piece));
        put(spec_, "init", std::move(init));
        return {};
    }

    Result<void> read_conditions(Piece piece) {
        for (const Piece& condition : split_outside(piece, '&'))
            TUNE_TRY_VOID(read_condition(condition));
        return {};
    }

    Result<void> read_condition(Piece piece) {
        const std::size_t at = piece.text.find_first_of("<>=");
        if (at == std::string_view::npos || at == 0)
            return error(piece.column, "expected a condition such as opt=sgd or depth>=3");
        const std::string name(piece.text.substr(0, at));
        const bool is_equality = piece.text[at] == '=';
        std::size_t width = is_equality ? 1 : piece.text.substr(at, 2).ends_with('=') ? 2 : 1;
        if (is_equality && piece.text.substr(at, 2) == "==") width = 2;
        const std::string op(piece.text.substr(at, width));
        const Piece values = piece.sub(at + width);
        if (values.text.empty()) return error(values.column, "expected a value after '" + op + "'");
        Node* const known = find_condition(name);
        if (is_equality) {
            if (known != nullptr)
                return error(piece.column, "a second condition on " + in_quotes(name) +
                                               "; expected name=value|other for any of several");
            std::vector<Node> list;
            for (const Piece& each : split_outside(values, '|')) {
                if (each.text.empty()) return error(each.column, "expected a value");
                TUNE_TRY(value, value_of(each));
                list.push_back(std::move(value));
            }
            // A lone list or map stays wrapped, so that it means itself and not its members.
            const bool unwrap = list.size() == 1 && list[0].is_scalar();
            put(when_, name, unwrap ? std::move(list[0]) : list_node(values, std::move(list)));
            return {};
        }
        Node& comparison = known != nullptr ? *known : put(when_, name, map_node(piece));
        if (comparison.type != Node::Type::kMap)
            return error(piece.column, "a second condition on " + in_quotes(name));
        if (comparison.find(op) != nullptr)
            return error(piece.column, "a second '" + op + "' on " + in_quotes(name));
        TUNE_TRY(value, value_of(values));
        put(comparison, op, std::move(value));
        return {};
    }

    Node* find_condition(std::string_view name) {
        for (Entry& entry : when_.entries)
            if (entry.key == name) return &entry.value;
        return nullptr;
    }

    Result<void> read_domain(Piece domain) {
        if (domain.text.empty())
            return error(domain.column,
                         "expected a range a..b, a list a,b,c, an ordered list "
                         "a<b<c or, after '==', a constant");
        for (const std::string_view prior : {"normal", "lognormal"})
            if (domain.text.starts_with(prior) && domain.text.substr(prior.size()).starts_with("("))
                return read_prior(domain, prior);
        const bool has_comma = find_outside(domain.text, ",") != std::string_view::npos;
        const bool has_less = find_outside(domain.text, "<") != std::string_view::npos;
        if (has_comma && has_less)
            return error(domain.column, "',' and '<' are mixed; a list is a,b,c or a<b<c");
        if (has_comma || has_less) {
            const bool ordered = has_less || ordinal_;
            TUNE_TRY_VOID(refuse_range_flags(domain));
            return read_list(domain, has_less ? '<' : ',', ordered ? "ordinal" : "choice");
        }
        if (domain.text.find("..") != std::string_view::npos) return read_range(domain);
        return error(domain.column, "a single value; expected a range a..b, a list a,b,c, or '==" +
                                        shortened(domain.text) + "' for a constant");
    }

    Result<void> refuse_range_flags(Piece domain) const {
        if (log_ || int_ || spec_.find("step") != nullptr)
            return error(domain.column,
                         "log, int and a step belong to a range a..b, not to a list");
        return {};
    }

    Result<void> read_list(Piece domain, char separator, const char* key) {
        std::vector<Node> list;
        for (const Piece& item : split_outside(domain, separator)) {
            if (item.text.empty()) return error(item.column, "a value of the list is empty");
            TUNE_TRY(value, value_of(item));
            list.push_back(std::move(value));
        }
        put(spec_, key, list_node(domain, std::move(list)));
        return {};
    }

    Result<void> read_range(Piece domain) {
        if (ordinal_) return error(domain.column, "':ord' belongs to a list a,b,c, not to a range");
        // "0...5" holds ".." twice; the first cut that leaves two numbers counts.
        for (std::size_t at = domain.text.find(".."); at != std::string_view::npos;
             at = domain.text.find("..", at + 1)) {
            const Piece low = domain.sub(0, at);
            const Piece high = domain.sub(at + 2);
            const std::optional<double> low_number = number_of(low.text);
            const std::optional<double> high_number = number_of(high.text);
            if (!low_number || !high_number) continue;
            if (int_ && (!is_integer_text(low.text) || !is_integer_text(high.text)))
                return error(domain.column,
                             "':int' needs integer ends, found " + in_quotes(domain.text));
            put(spec_, int_ ? "int" : "float",
                list_node(domain,
                          {number_node(low, *low_number), number_node(high, *high_number)}));
            if (log_) put(spec_, "log", true_node(domain));
            return {};
        }
        return error(domain.column, "expected a range of two numbers such as 1e-5..1e-1, found " +
                                        in_quotes(domain.text));
    }

    std::string_view word_;
    Node spec_ = map_node({});
    Node when_ = map_node({});
    bool log_ = false;
    bool int_ = false;
    bool ordinal_ = false;
};

}  // namespace

Result<InlineParameter> parse_inline_parameter(std::string_view word) {
    return InlineReader(word).read();
}

}  // namespace tune::tuner
