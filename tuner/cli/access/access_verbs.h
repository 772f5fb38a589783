#pragma once
// The commands about who may do what: their options, for the parser.

#include <functional>

#include "tuner/cli/access/token_commands.h"
#include "tuner/cli/access/user_commands.h"

namespace CLI {
class App;
}

namespace tune::cli {

/// What the parser fills.
struct AccessArguments {
    OpenCommand open = {};
    TokenCommand token = {};
    UserCommand user = {};
};

/// Adds open, token and user. Once one is parsed, `verb` runs it; both references are kept.
void add_access_verbs(CLI::App& app, AccessArguments& arguments, std::function<int()>& verb);

}  // namespace tune::cli
