// A page in the format of man(7): what the parser knows of verbs and options, then what it cannot
// know, the exit codes and the environment. Text is escaped where roff would read it as a request.

#include "tuner/cli/completion/verb_text.h"

namespace tune::cli {
namespace {

/// Text for troff: no line begins a request, no character is an escape.
std::string escaped(const std::string& text) {
    std::string out;
    bool at_line_start = true;
    for (const char c : text) {
        if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
        at_line_start = c == '\n';
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

std::string names_of(const OptionText& option) {
    std::string text;
    for (const std::string& name : option.names)
        text += (text.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
    if (!option.is_positional && !option.value.empty())
        text += " \\fI" + escaped(option.value) + "\\fR";
    return text;
}

std::string summary_of(const OptionText& option) {
    std::string text = escaped(option.summary);
    if (!option.choices.empty()) {
        std::string list;
        for (const std::string& choice : option.choices)
            list += (list.empty() ? "" : ", ") + choice;
        text += " (" + escaped(list) + ")";
    }
    if (!option.fallback.empty()) text += " [" + escaped(option.fallback) + "]";
    return text;
}

std::string synopsis_of(const VerbText& verb, const std::string& path) {
    std::string text = "\\fB" + escaped(path) + "\\fR";
    for (const OptionText& option : verb.options) {
        if (!option.is_positional) continue;
        const std::string name = "\\fI" + escaped(option.names[0]) + "\\fR";
        text += option.is_required ? " " + name : " [" + name + "]";
        if (option.is_repeated) text += "...";
    }
    return text + " [\\fIoptions\\fR]";
}

std::string options_text(const VerbText& verb) {
    std::string text;
    for (const bool is_positional : {true, false})
        for (const OptionText& option : verb.options)
            if (option.is_positional == is_positional)
                text += ".TP\n" + names_of(option) + "\n" + summary_of(option) + "\n";
    return text;
}

/// `common`: the footer that verbs without their own inherit, which the page has once.
std::string verb_part(const VerbText& verb, const std::string& path, const std::string& common) {
    std::string text = ".SS " + escaped(path) + "\n" + escaped(verb.summary) + "\n.PP\n" +
                       synopsis_of(verb, path) + "\n" + options_text(verb);
    if (!verb.footer.empty() && verb.footer != common)
        text += ".PP\n.nf\n" + escaped(verb.footer) + "\n.fi\n";
    for (const VerbText& inner : verb.verbs)
        text += verb_part(inner, path + " " + inner.name, common);
    return text;
}

}  // namespace

std::string man_page(const VerbText& program, const std::string& version) {
    std::string text = ".TH TUNE 1 \"\" \"tune " + escaped(version) + "\" \"User Commands\"\n";
    text += ".SH NAME\ntune \\- hyperparameter tuning and experiment tracking in one program\n";
    text += ".SH SYNOPSIS\n\\fBtune\\fR \\fIverb\\fR [\\fIoptions\\fR]\n";
    text += ".SH DESCRIPTION\n" + escaped(program.summary) + "\n.PP\nThe verbs are\n";
    for (const VerbText& verb : program.verbs)
        text += ".TP\n\\fB" + escaped(verb.name) + "\\fR\n" + escaped(verb.summary) + "\n";
    text += ".SH OPTIONS\n" + options_text(program);
    text += ".SH VERBS\n";
    for (const VerbText& verb : program.verbs)
        text += verb_part(verb, "tune " + verb.name, program.footer);
    text += ".SH EXIT STATUS\n.nf\n" + escaped(program.footer) + "\n.fi\n";
    text +=
        ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nno colours\n.TP\n\\fBTERM\\fR\n\"dumb\": nothing "
        "is redrawn, no colours\n.TP\n\\fBTUNE_TOKEN\\fR\nthe token for the server\n.TP\n"
        "\\fBTUNE_TOKEN_FILE\\fR\na file with it that only its owner can read\n.TP\n"
        "\\fBTUNE_CA_FILE\\fR, \\fBTUNE_CLIENT_CERT\\fR\nas --ca and --client-cert\n"
        ".PP\nWhat the command of a trial finds in its environment: "
        "\\fBMLFLOW_TRACKING_URI\\fR, \\fBMLFLOW_RUN_ID\\fR, \\fBTUNE_PARAMS\\fR, "
        "\\fBTUNE_TRIAL\\fR, \\fBTUNE_ATTEMPT\\fR, \\fBTUNE_SEED\\fR, "
        "\\fBTUNE_CHECKPOINT_DIR\\fR; in population based training also \\fBTUNE_RESUME_FROM\\fR, "
        "\\fBTUNE_STEP_FROM\\fR, \\fBTUNE_STEP_TO\\fR, \\fBTUNE_PARENT\\fR.\n";
    return text;
}

}  // namespace tune::cli
