#pragma once
// The command line as plain data, read from the parser itself, so that the man page and the shell's
// completion cannot say anything else than --help.

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tune::cli {

struct Candidate {
    std::string word = {};
    std::string summary = {};
};

struct OptionText {
    std::vector<std::string> names = {};  // "-n", "--trials"; a positional one: its name
    std::string value = {};               // "INT", "TEXT"; empty: a flag
    std::string summary = {};
    std::string fallback = {};  // what counts when it is not given, if the parser knows it
    std::vector<std::string> choices = {};
    /// By choice: the keys of "choice,key=value,...".
    std::map<std::string, std::vector<Candidate>> keys = {};
    bool is_positional = false;
    bool is_required = false;
    bool is_repeated = false;
};

struct VerbText {
    std::string name = {};
    std::string summary = {};
    std::string footer = {};
    std::vector<OptionText> options = {};
    std::vector<VerbText> verbs = {};
};

/// The page in troff's man macros. `version`: "0.1.0".
[[nodiscard]] std::string man_page(const VerbText& program, const std::string& version);

/// The script that a shell reads once; `shell`: "bash", "zsh" or "fish", empty for others. It asks
/// `tune __complete WORD...` at each press of Tab.
[[nodiscard]] std::string completion_script(const std::string& shell);

/// The program with the keys that may follow a pruner's name.
[[nodiscard]] VerbText with_keys(VerbText verb);

/// What may stand in place of the last of `words` (the words after the program's name, the last one
/// possibly empty or half typed). Nothing: the shell offers file names. `studies` is called only
/// where a study's name is expected, with the words before.
[[nodiscard]] std::vector<Candidate> completions(
    const VerbText& program, const std::vector<std::string>& words,
    const std::function<std::vector<std::string>(const std::vector<std::string>&)>& studies);

/// The names of the studies that --server and --data among `words` lead to, or the usual places;
/// none when nothing answers. Never prints.
[[nodiscard]] std::vector<std::string> study_names(const std::vector<std::string>& words);

}  // namespace tune::cli
