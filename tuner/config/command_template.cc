// The command of a trial: a string to words, words to argv.
//
// split_command is a shell's splitting without its expansions: `*`, `$` and `|` are plain text. No
// shell ever reads the result, so no character of a parameter's value can mean more than itself.
// Placeholders are found on the template, never on what was filled in: a value that looks like
// {name} stays as it is. check_command refuses unknown names when the study is read, so filling
// cannot fail.
//
// An argument that names an inactive parameter disappears, and with it the option before it if the
// argument was that placeholder alone: `--momentum {momentum}` leaves nothing behind.

#include "tuner/config/command_template.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tuner/space/error_text.h"
#include "tuner/space/expression/rules.h"
#include "tuner/space/node.h"

namespace tune::tuner {
namespace {

const std::vector<std::string> kFacts = {"study", "trial", "attempt", "run_id", "seed"};

/// A stretch of an argument: plain text, or the name of a placeholder.
struct Part {
    bool is_placeholder = false;
    std::string text;
};

bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool continues_name(char c) {
    return starts_name(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/';
}

/// The length of "{name}" at the start of `text`, or 0.
std::size_t placeholder_length(std::string_view text) {
    if (text.size() < 3 || text[0] != '{' || !starts_name(text[1])) return 0;
    std::size_t end = 2;
    while (end < text.size() && continues_name(text[end])) ++end;
    return end < text.size() && text[end] == '}' ? end + 1 : 0;
}

std::vector<Part> parts_of(std::string_view argument) {
    std::vector<Part> parts;
    std::string plain;
    const auto flush = [&] {
        if (!plain.empty()) parts.push_back(Part{false, std::move(plain)});
        plain.clear();
    };
    for (std::size_t i = 0; i < argument.size();) {
        const std::string_view rest = argument.substr(i);
        const std::size_t escaped = rest[0] == '{' ? placeholder_length(rest.substr(1)) : 0;
        if (escaped != 0 && rest.size() > escaped + 1 && rest[escaped + 1] == '}') {
            plain.append(rest.substr(1, escaped));
            i += escaped + 2;
        } else if (const std::size_t length = placeholder_length(rest); length != 0) {
            flush();
            parts.push_back(Part{true, std::string(rest.substr(1, length - 2))});
            i += length;
        } else {
            plain += argument[i++];
        }
    }
    flush();
    return parts;
}

std::optional<std::string> fact(const TrialFacts& facts, const std::string& name) {
    if (name == "study") return facts.study;
    if (name == "trial") return std::to_string(facts.trial);
    if (name == "attempt") return std::to_string(facts.attempt);
    if (name == "run_id") return facts.run_id;
    if (name == "seed") return std::to_string(facts.seed);
    return std::nullopt;
}

using Texts = std::unordered_map<std::string, std::string>;

bool is_value(const Space& space, const std::string& name) {
    return space.find(name) || (space.rules() != nullptr && space.rules()->has_derived(name));
}

/// The argument with its values; nullopt if it names one that does not exist in this trial.
std::optional<std::string> filled(const std::vector<Part>& parts, const Space& space,
                                  const Texts& values, const TrialFacts& facts) {
    std::string text;
    for (const Part& part : parts) {
        if (!part.is_placeholder) {
            text += part.text;
        } else if (is_value(space, part.text)) {
            const auto value = values.find(part.text);
            if (value == values.end()) return std::nullopt;
            text += value->second;
        } else {
            text += fact(facts, part.text).value_or("");
        }
    }
    return text;
}

bool is_option(std::string_view word) {
    return word.size() > 1 && word[0] == '-' && word.find('=') == std::string_view::npos &&
           word.find('{') == std::string_view::npos;
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    std::size_t quote_column = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool escapes = c == '\\' && quote != '\'' && i + 1 < text.size() &&
                             (quote == 0 || text[i + 1] == '"' || text[i + 1] == '\\');
        if (escapes) {
            word += text[++i];
            in_word = true;
        } else if (quote != 0) {
            if (c == quote) {
                quote = 0;
            } else {
                word += c;
            }
        } else if (c == '\'' || c == '"') {
            quote = c;
            quote_column = i + 1;
            in_word = true;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            if (in_word) words.push_back(std::move(word));
            word.clear();
            in_word = false;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (quote != 0)
        return error_at({}, "command",
                        std::string("the quote ") + quote + " at character " +
                            std::to_string(quote_column) + " is never closed");
    if (in_word) words.push_back(std::move(word));
    return words;
}

Result<void> check_command(const std::vector<std::string>& command, const Space& space) {
    for (const std::string& argument : command) {
        if (argument.find('\0') != std::string::npos)
            return error_at({}, "command", "an argument holds a NUL byte");
        for (const Part& part : parts_of(argument)) {
            if (!part.is_placeholder || is_value(space, part.text)) continue;
            if (part.text == "args") {
                if (argument == "{args}") continue;
                return error_at(
                    {}, "command",
                    "{args} must be an argument of its own, found " + in_quotes(argument));
            }
            if (fact(TrialFacts{}, part.text)) continue;
            std::vector<std::string> known;
            for (const Parameter& parameter : space.parameters()) known.push_back(parameter.name);
            if (space.rules() != nullptr)
                for (const auto& [name, expression] : space.rules()->texts().derive)
                    known.push_back(name);
            known.push_back("args");
            known.insert(known.end(), kFacts.begin(), kFacts.end());
            return error_at({}, "command",
                            "unknown placeholder {" + shortened(part.text) + "} in " +
                                in_quotes(argument) + known_words(part.text, known) +
                                " (to have the text itself, write {{" + shortened(part.text) +
                                "}})");
        }
    }
    return {};
}

bool passes_parameters(const std::vector<std::string>& command, const Space& space) {
    for (const std::string& argument : command)
        for (const Part& part : parts_of(argument))
            if (part.is_placeholder && (part.text == "args" || is_value(space, part.text)))
                return true;
    return false;
}

std::vector<std::string> fill_command(const std::vector<std::string>& command, const Space& space,
                                      const Point& point, const TrialFacts& facts) {
    std::vector<std::vector<Part>> arguments;
    std::unordered_set<std::string> named;
    for (const std::string& argument : command) {
        arguments.push_back(parts_of(argument));
        for (const Part& part : arguments.back())
            if (part.is_placeholder) named.insert(part.text);
    }
    const std::vector<std::pair<std::string, std::string>> texts = space.texts(point);
    const Texts values(texts.begin(), texts.end());
    std::vector<std::string> argv;
    for (std::size_t i = 0; i < command.size(); ++i) {
        if (command[i] == "{args}") {
            for (const auto& [name, text] : texts)
                if (!named.contains(name)) argv.push_back("--" + name + "=" + text);
            continue;
        }
        if (std::optional<std::string> text = filled(arguments[i], space, values, facts)) {
            argv.push_back(std::move(*text));
            continue;
        }
        const bool is_alone = arguments[i].size() == 1;
        if (is_alone && i > 0 && !argv.empty() && is_option(command[i - 1])) argv.pop_back();
    }
    return argv;
}

}  // namespace tune::tuner
