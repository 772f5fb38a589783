// NAME=SPEC, the inline grammar of inline.h. Outside brackets and quotes the characters `:`, `?`
// and `@` cut SPEC into segments: the domain first, then flags, conditions and the first value in
// any order. Segments are read before the domain, since `:int`, `:log` and `:ord` decide what the
// domain means.
//
// The result is the parameter's object as it would stand in a study file. So the grammar has no
// rules of its own for bounds, steps or conditions: space_reader.cc checks both alike. What can
// only be wrong here (a second step, a list that mixes `,` and `<`) is refused with the column,
// which every piece of the word carries with it.

#include "tuner/space/inline.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tuner/space/node.h"
#include "tuner/space/space_check.h"
#include "tuner/space/wording.h"

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
};

/// A text as JSON where it is a JSON value, else as a string: 3, 0.5, true, [1,2], sgd.
Json value_of(std::string_view text) {
    Result<Json> parsed = parse_json(text);
    return parsed ? std::move(*parsed) : Json(std::string(text));
}

std::optional<double> number_of(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const char* begin = text.data();
    if (text.size() > 1 && *begin == '+' && begin[1] != '-') ++begin;
    const auto [stop, ec] = std::from_chars(begin, end, value);
    if (ec != std::errc() || stop != end || value != value) return std::nullopt;
    return value;
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
            return fault(1, "the word has " + std::to_string(word_.size()) +
                                " bytes; use a study file for spaces this large");
        const std::size_t equals = word_.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return fault(1, "expected NAME=SPEC, such as lr=1e-5..1e-1:log");
        std::string_view name = word_.substr(0, equals);
        if (name.ends_with(':')) {
            name.remove_suffix(1);
            if (const auto wrong = name_fault(name)) return fault(1, *wrong);
            if (equals + 1 == word_.size())
                return fault(equals + 2, "expected an expression after ':='");
            return InlineParameter{std::string(name), true,
                                   to_text(Json(std::string(word_.substr(equals + 1))))};
        }
        if (const auto wrong = name_fault(name)) return fault(1, *wrong);
        Piece rest{word_.substr(equals + 1), equals + 2};
        if (rest.text.starts_with("=")) {
            TUNE_TRY_VOID(read_const(rest.sub(1)));
        } else {
            TUNE_TRY_VOID(read_spec(rest));
        }
        if (!when_.empty()) spec_["when"] = when_;
        return InlineParameter{std::string(name), false, to_text(spec_)};
    }

private:
    Error fault(std::size_t column, const std::string& message) const {
        return Error{Code::kInvalidParameterValue, "in " + in_quotes(word_) + ", column " +
                                                       std::to_string(column) + ": " + message};
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
        if (value.text.empty()) return fault(piece.column, "expected a value after '=='");
        spec_["const"] = value_of(value.text);
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
                return fault(flag.column, "':if(' is not closed; expected ':if(name=value)'");
            return read_conditions(flag.sub(3, flag.text.size() - 4));
        }
        for (const std::string_view prior : {"normal", "lognormal", "weights"})
            if (flag.text.starts_with(prior) && flag.text.substr(prior.size()).starts_with("("))
                return read_prior(flag, prior);
        if (const std::optional<double> step = number_of(flag.text)) {
            if (spec_.contains("step")) return fault(flag.column, "a second step");
            if (is_integer_text(flag.text)) {
                spec_["step"] = value_of(flag.text);
            } else {
                spec_["step"] = *step;
            }
            return {};
        }
        bool* const target = flag.text == "log"   ? &log_
                             : flag.text == "int" ? &int_
                             : flag.text == "ord" ? &ordinal_
                                                  : nullptr;
        if (target == nullptr)
            return fault(flag.column,
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
            return fault(body.column, "expected '" + std::string(key) + "(a,b)'");
        if (spec_.contains(key)) return fault(flag.column, "a second '" + std::string(key) + "'");
        Json list = Json::array();
        for (const Piece& item : split_outside(body.sub(1, body.text.size() - 2), ',')) {
            const std::optional<double> number = number_of(item.text);
            if (!number) return fault(item.column, "expected a number");
            list.push_back(*number);
        }
        spec_[std::string(key)] = std::move(list);
        return {};
    }

    Result<void> read_init(Piece piece) {
        if (piece.text.empty()) return fault(piece.column, "expected the first value after '@'");
        if (spec_.contains("init")) return fault(piece.column, "a second first value");
        spec_["init"] = value_of(piece.text);
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
            return fault(piece.column, "expected a condition such as opt=sgd or depth>=3");
        const std::string name(piece.text.substr(0, at));
        const bool is_equality = piece.text[at] == '=';
        std::size_t width = is_equality ? 1 : piece.text.substr(at, 2).ends_with('=') ? 2 : 1;
        if (is_equality && piece.text.substr(at, 2) == "==") width = 2;
        const std::string op(piece.text.substr(at, width));
        const Piece values = piece.sub(at + width);
        if (values.text.empty()) return fault(values.column, "expected a value after '" + op + "'");
        if (is_equality) {
            if (when_.contains(name))
                return fault(piece.column, "a second condition on " + in_quotes(name) +
                                               "; expected name=value|other for any of several");
            Json list = Json::array();
            for (const Piece& value : split_outside(values, '|')) {
                if (value.text.empty()) return fault(value.column, "expected a value");
                list.push_back(value_of(value.text));
            }
            // A lone list or map stays wrapped, so that it means itself and not its members.
            const bool unwrap = list.size() == 1 && !list[0].is_structured();
            when_[name] = unwrap ? list[0] : list;
            return {};
        }
        Json& comparison = when_[name];
        if (!comparison.is_null() && !comparison.is_object())
            return fault(piece.column, "a second condition on " + in_quotes(name));
        if (comparison.contains(op))
            return fault(piece.column, "a second '" + op + "' on " + in_quotes(name));
        comparison[op] = value_of(values.text);
        return {};
    }

    Result<void> read_domain(Piece domain) {
        if (domain.text.empty())
            return fault(domain.column,
                         "expected a range a..b, a list a,b,c, an ordered list "
                         "a<b<c or, after '==', a constant");
        for (const std::string_view prior : {"normal", "lognormal"})
            if (domain.text.starts_with(prior) && domain.text.substr(prior.size()).starts_with("("))
                return read_prior(domain, prior);
        const bool has_comma = find_outside(domain.text, ",") != std::string_view::npos;
        const bool has_less = find_outside(domain.text, "<") != std::string_view::npos;
        if (has_comma && has_less)
            return fault(domain.column, "',' and '<' are mixed; a list is a,b,c or a<b<c");
        if (has_comma || has_less) {
            const bool ordered = has_less || ordinal_;
            TUNE_TRY_VOID(refuse_range_flags(domain));
            return read_list(domain, has_less ? '<' : ',', ordered ? "ordinal" : "choice");
        }
        if (domain.text.find("..") != std::string_view::npos) return read_range(domain);
        return fault(domain.column, "a single value; expected a range a..b, a list a,b,c, or '==" +
                                        shortened(domain.text) + "' for a constant");
    }

    Result<void> refuse_range_flags(Piece domain) const {
        if (log_ || int_ || spec_.contains("step"))
            return fault(domain.column,
                         "log, int and a step belong to a range a..b, not to a list");
        return {};
    }

    Result<void> read_list(Piece domain, char separator, const char* key) {
        Json list = Json::array();
        for (const Piece& item : split_outside(domain, separator)) {
            if (item.text.empty()) return fault(item.column, "a value of the list is empty");
            list.push_back(value_of(item.text));
        }
        spec_[key] = std::move(list);
        return {};
    }

    Result<void> read_range(Piece domain) {
        if (ordinal_) return fault(domain.column, "':ord' belongs to a list a,b,c, not to a range");
        // "0...5" holds ".." twice; the first cut that leaves two numbers counts.
        for (std::size_t at = domain.text.find(".."); at != std::string_view::npos;
             at = domain.text.find("..", at + 1)) {
            const std::string_view low = domain.text.substr(0, at);
            const std::string_view high = domain.text.substr(at + 2);
            const std::optional<double> low_number = number_of(low);
            const std::optional<double> high_number = number_of(high);
            if (!low_number || !high_number) continue;
            if (int_ && (!is_integer_text(low) || !is_integer_text(high)))
                return fault(domain.column,
                             "':int' needs integer ends, found " + in_quotes(domain.text));
            Json& bounds = spec_[int_ ? "int" : "float"];
            bounds = Json::array({*low_number, *high_number});
            if (log_) spec_["log"] = true;
            return {};
        }
        return fault(domain.column, "expected a range of two numbers such as 1e-5..1e-1, found " +
                                        in_quotes(domain.text));
    }

    std::string_view word_;
    Json spec_ = Json::object();
    Json when_ = Json::object();
    bool log_ = false;
    bool int_ = false;
    bool ordinal_ = false;
};

}  // namespace

Result<InlineParameter> parse_inline_parameter(std::string_view word) {
    return InlineReader(word).read();
}

}  // namespace tune::tuner
