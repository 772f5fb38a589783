// Completion from the same description as --help. The arguments before the cursor are parsed as far
// as they go: which command, which option waits for a value, how many positional arguments were
// given. The candidates follow from that alone, except names of studies, which a callback supplies.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/cli/backend.h"
#include "tuner/cli/completion/verb_text.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/options/option_table.h"
#include "tuner/pruner/pruner_config.h"

namespace tune::cli {
namespace {

constexpr const char* kBash = R"(_tune() {
    local IFS=$'\n'
    COMPREPLY=($(tune __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=$(printf '%q' "${COMPREPLY[i]}"); done
}
complete -o default -F _tune tune
)";

constexpr const char* kZsh = R"(#compdef tune
_tune() {
    local -a found
    local line
    while IFS=$'\t' read -r word about; do
        found+=("${word//:/\\:}:$about")
    done < <(tune __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#found} )); then _describe tune found; else _files; fi
}
if [ "$funcstack[1]" = _tune ]; then _tune "$@"; else compdef _tune tune; fi
)";

constexpr const char* kFish = R"(function __tune_complete
    set -l words (commandline -opc) (commandline -ct)
    tune __complete $words[2..-1] 2>/dev/null
end
complete -c tune -a '(__tune_complete)'
)";

bool has_name(const OptionText& option, const std::string& name) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
}

const OptionText* find_option(const VerbText& verb, const std::string& word) {
    for (const OptionText& option : verb.options)
        if (!option.is_positional && has_name(option, word)) return &option;
    return nullptr;
}

/// The innermost verb that `words` name, and the number of positional words given to it. `waits`:
/// the option whose value the next word is.
struct CursorPlace {
    const VerbText* verb;
    std::size_t positionals = 0;
    const OptionText* waits = nullptr;
    bool in_command = false;  // after "--"
};

CursorPlace place_of(const VerbText& program, const std::vector<std::string>& before) {
    CursorPlace place{.verb = &program};
    for (const std::string& word : before) {
        if (word == "--") place.in_command = true;
        if (place.waits != nullptr) {
            place.waits = nullptr;
            continue;
        }
        if (word.starts_with("-")) {
            const OptionText* option = find_option(*place.verb, word);
            if (option != nullptr && !option->value.empty()) place.waits = option;
            continue;
        }
        const auto inner = std::find_if(place.verb->verbs.begin(), place.verb->verbs.end(),
                                        [&](const VerbText& verb) { return verb.name == word; });
        if (inner != place.verb->verbs.end())
            place.verb = &*inner;
        else
            ++place.positionals;
    }
    return place;
}

/// What is typed, by words as the parser sees them: `--pruner=as`, which bash hands over as three,
/// is an option and its value.
struct Typed {
    std::vector<std::string> before;
    std::string last;
    std::string prefix;  ///< stands before each candidate
};

Typed typed_words(const std::vector<std::string>& words) {
    Typed typed;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const bool is_last = i + 1 == words.size();
        const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
        if (word == "=" && i > 0 && words[i - 1].starts_with("--")) continue;
        if (equals == std::string::npos) {
            (is_last ? typed.last : typed.before.emplace_back()) = word;
            continue;
        }
        typed.before.push_back(word.substr(0, equals));
        (is_last ? typed.last : typed.before.emplace_back()) = word.substr(equals + 1);
        if (is_last) typed.prefix = word.substr(0, equals + 1);
    }
    return typed;
}

const OptionText* positional_at(const VerbText& verb, std::size_t index) {
    for (const OptionText& option : verb.options) {
        if (!option.is_positional) continue;
        if (index == 0 || option.is_repeated) return &option;
        --index;
    }
    return nullptr;
}

/// After "asha,min=1,": "asha,min=1,max=" and so on, without the keys that are there.
std::vector<Candidate> keys_after(const OptionText& option, const std::string& typed) {
    const std::size_t last = typed.rfind(',');
    const auto keys = option.keys.find(typed.substr(0, typed.find(',')));
    if (last == std::string::npos || keys == option.keys.end()) return {};
    const std::string given = typed.substr(0, last + 1);
    std::vector<Candidate> found;
    for (const Candidate& key : keys->second)
        if (given.find("," + key.word + "=") == std::string::npos)
            found.push_back({given + key.word + "=", key.summary});
    return found;
}

}  // namespace

VerbText with_keys(VerbText verb) {
    for (OptionText& option : verb.options) {
        if (std::find(option.names.begin(), option.names.end(), "--pruner") == option.names.end())
            continue;
        for (const tuner::KindBase* kind : tuner::pruner_kinds())
            for (const tuner::Option& row : kind->options.rows())
                option.keys[std::string(kind->name)].push_back({row.name, row.help});
    }
    for (VerbText& inner : verb.verbs) inner = with_keys(std::move(inner));
    return verb;
}

std::string completion_script(const std::string& shell) {
    if (shell == "bash") return kBash;
    if (shell == "zsh") return kZsh;
    if (shell == "fish") return kFish;
    return {};
}

std::vector<Candidate> completions(
    const VerbText& program, const std::vector<std::string>& words,
    const std::function<std::vector<std::string>(const std::vector<std::string>&)>& studies) {
    if (words.empty()) return {};
    const Typed split = typed_words(words);
    const std::string& typed = split.last;
    const std::vector<std::string>& before = split.before;
    const CursorPlace place = place_of(program, before);
    std::vector<Candidate> found;
    const auto offer = [&](const std::string& word, const std::string& summary) {
        if (word.starts_with(typed)) found.push_back({split.prefix + word, summary});
    };
    if (place.in_command) return found;
    const auto offer_value = [&](const OptionText& option) {
        for (const std::string& choice : option.choices) offer(choice, "");
        for (const Candidate& key : keys_after(option, typed)) offer(key.word, key.summary);
        for (const char* one : {"study", "--study", "--warm-start", "--optuna"})
            if (has_name(option, one))
                for (const std::string& name : studies(before)) offer(name, "study");
    };
    if (place.waits != nullptr) {
        offer_value(*place.waits);
        return found;
    }
    if (typed.starts_with("-")) {
        for (const OptionText& option : place.verb->options)
            for (const std::string& name : option.names)
                if (name.starts_with("-")) offer(name, option.summary);
        return found;
    }
    for (const VerbText& verb : place.verb->verbs) offer(verb.name, verb.summary);
    if (const OptionText* next = positional_at(*place.verb, place.positionals)) offer_value(*next);
    return found;
}

std::vector<std::string> study_names(const std::vector<std::string>& words) {
    std::optional<std::string> server;
    std::optional<std::string> data;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] == "--server") server = words[i + 1];
        if (words[i] == "--data") data = words[i + 1];
    }
    const auto backend = find_backend(server, data);
    if (!backend) return {};
    const Result<Json> answer = (*backend)->get("/api/2.0/tune/studies");
    if (!answer) return {};
    std::vector<std::string> names;
    for (const Json& study : (*answer)["studies"])
        names.push_back(printable(text_of(study, "name")));
    return names;
}

}  // namespace tune::cli
