// A scanner for the one shape that JSONL rows have. Strings are unescaped only when they hold a
// backslash; nested values are passed over by counting brackets outside of strings and then checked
// as a whole.

#include "loader/format/text/json_row.h"

#include <cstdint>
#include <optional>

#include "base/text/hex.h"
#include "base/text/utf8.h"
#include "loader/format/python_json.h"

namespace tune::loader {
namespace {

void append_utf8(std::uint32_t code, std::string& out) {
    const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

class RowScanner {
public:
    RowScanner(std::string_view line, std::deque<std::string>& unescaped)
        : line_(line), unescaped_(unescaped) {}

    Result<void> run(std::vector<JsonMember>& members) {
        if (!take('{')) return error("an object");
        if (!take('}')) do {
                JsonMember member;
                skip_blanks();
                TUNE_TRY(name, text());
                member.name = name;
                if (!take(':')) return error("a colon");
                TUNE_TRY_VOID(value(member));
                members.push_back(member);
                if (take('}')) break;
                if (!take(',')) return error("a comma or the end of the object");
            } while (true);
        skip_blanks();
        if (at_ != line_.size()) return error("the end of the line");
        return {};
    }

private:
    [[nodiscard]] Error error(const char* expected) const {
        return data_loss("column " + std::to_string(at_ + 1) + ": " + expected +
                         " is missing in the JSON of this line");
    }

    void skip_blanks() {
        while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' ||
                                      line_[at_] == '\r' || line_[at_] == '\n'))
            ++at_;
    }

    bool take(char expected) {
        skip_blanks();
        if (at_ >= line_.size() || line_[at_] != expected) return false;
        ++at_;
        return true;
    }

    std::optional<std::uint32_t> hex4() {
        if (line_.size() - at_ < 4) return std::nullopt;
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) {
            const int digit = hex_value(line_[at_++]);
            if (digit < 0) return std::nullopt;
            value = value << 4 | static_cast<std::uint32_t>(digit);
        }
        return value;
    }

    /// What follows "\u": one code point, of two surrogates if need be. A half of a pair becomes
    /// U+FFFD, which text can hold.
    bool append_code_point(std::string& out) {
        const auto first = hex4();
        if (!first) return false;
        std::uint32_t code = *first;
        const bool is_high = code >= 0xd800 && code < 0xdc00;
        if (is_high && line_.substr(at_, 2) == "\\u") {
            const std::size_t before = at_;
            at_ += 2;
            const auto second = hex4();
            if (!second) return false;
            if (*second >= 0xdc00 && *second < 0xe000)
                code = 0x10000 + ((code - 0xd800) << 10) + (*second - 0xdc00);
            else
                at_ = before;
        }
        append_utf8(code >= 0xd800 && code < 0xe000 ? 0xfffd : code, out);
        return true;
    }

    bool append_escape(std::string& out) {
        if (at_ >= line_.size()) return false;
        switch (line_[at_++]) {
            case '"': out.push_back('"'); return true;
            case '\\': out.push_back('\\'); return true;
            case '/': out.push_back('/'); return true;
            case 'b': out.push_back('\b'); return true;
            case 'f': out.push_back('\f'); return true;
            case 'n': out.push_back('\n'); return true;
            case 'r': out.push_back('\r'); return true;
            case 't': out.push_back('\t'); return true;
            case 'u': return append_code_point(out);
            default: return false;
        }
    }

    Result<std::string_view> text() {
        if (at_ >= line_.size() || line_[at_] != '"') return error("a text in quotes");
        const std::size_t begin = ++at_;
        at_ = std::min(line_.find_first_of("\"\\", at_), line_.size());
        std::string_view found = line_.substr(begin, at_ - begin);
        if (at_ < line_.size() && line_[at_] == '\\') {
            std::string& out = unescaped_.emplace_back(found);
            while (at_ < line_.size() && line_[at_] != '"') {
                const char next = line_[at_++];
                if (next != '\\')
                    out.push_back(next);
                else if (!append_escape(out))
                    return error("a known escape");
            }
            found = out;
        }
        if (at_ >= line_.size()) return error("a closing quote");
        ++at_;
        if (!is_utf8(found)) return error("text in UTF-8");
        return found;
    }

    /// Passes over brackets and braces up to where they are closed.
    bool skip_nested() {
        int depth = 0;
        while (at_ < line_.size()) {
            const char next = line_[at_++];
            if (next == '"') {
                while (at_ < line_.size() && line_[at_] != '"')
                    at_ += line_[at_] == '\\' ? std::size_t{2} : 1;
                if (at_ >= line_.size()) return false;
                ++at_;
            }
            if (next == '{' || next == '[') ++depth;
            if ((next == '}' || next == ']') && --depth == 0) return true;
        }
        return false;
    }

    Result<void> value(JsonMember& member) {
        skip_blanks();
        if (at_ >= line_.size()) return error("a value");
        const std::size_t begin = at_;
        if (line_[at_] == '"') {
            TUNE_TRY(found, text());
            member.kind = JsonKind::kText;
            member.text = found;
            return {};
        }
        if (line_[at_] == '{' || line_[at_] == '[') {
            member.kind = JsonKind::kNested;
            if (!skip_nested()) return error("a closing bracket");
        } else {
            at_ = std::min(line_.find_first_of(",} \t\r\n", at_), line_.size());
        }
        member.text = line_.substr(begin, at_ - begin);
        if (!is_python_json(member.text)) return error("a value");
        if (member.kind != JsonKind::kNested)
            member.kind = member.text == "null"                             ? JsonKind::kNull
                          : member.text == "true" || member.text == "false" ? JsonKind::kBoolean
                                                                            : JsonKind::kNumber;
        return {};
    }

    std::string_view line_;
    std::deque<std::string>& unescaped_;
    std::size_t at_ = 0;
};

}  // namespace

Result<void> parse_json_row(std::string_view line, std::vector<JsonMember>& members,
                            std::deque<std::string>& unescaped) {
    members.clear();
    unescaped.clear();
    return RowScanner(line, unescaped).run(members);
}

}  // namespace tune::loader
