#include "tuner/cli/access/access_verbs.h"

#include <CLI/CLI.hpp>
#include <string>

#include "tuner/cli/options.h"
#include "tuner/cli/source_flags.h"

namespace tune::cli {
namespace {

void add_open(CLI::App& app, OpenCommand& open, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand(
        "open", "print an address that opens the page with the right to change what runs");
    verb.add_option("--server", open.server,
                    "address of the server (default: the one that serves the folder)");
    verb.add_option("--data", open.data, std::string("the folder (default: ") + kDefaultData + ")");
    verb.add_flag("--json", open.json, "print JSON");
    verb.callback([&] { chosen = [&open] { return run_open(open); }; });
}

struct TokenVerb {
    const char* name;
    const char* summary;
    int (*call)(const TokenCommand&);
};

CLI::App& add_token_verb(CLI::App& group, const TokenVerb& described, TokenCommand& token,
                         std::function<int()>& chosen) {
    CLI::App& verb = *group.add_subcommand(described.name, described.summary);
    add_source(verb, token);
    verb.callback([&token, &chosen, call = described.call] {
        chosen = [&token, call] { return call(token); };
    });
    return verb;
}

void add_token(CLI::App& app, TokenCommand& token, std::function<int()>& chosen) {
    CLI::App& group = *app.add_subcommand(
        "token", "manage tokens for agents on other machines, notebooks and dashboards");
    group.require_subcommand(1);
    CLI::App& create = add_token_verb(
        group, {"create", "make a token and print it, this once", run_token_create}, token, chosen);
    create
        .add_option("--scope", token.scope,
                    "read: look; agent: also log and take trials; user: also start, stop and "
                    "change studies")
        ->required()
        ->check(CLI::IsMember({"read", "agent", "user"}));
    create.add_option("--expires", token.expires,
                      "how long it works, e.g. 30d (default: for ever)");
    create.add_option("--name", token.name, "what it is for");
    add_token_verb(group, {"ls", "list the tokens", run_token_ls}, token, chosen);
    add_token_verb(group, {"rm", "revoke a token", run_token_rm}, token, chosen)
        .add_option("id", token.token_id, "the token's id")
        ->required();
}

}  // namespace

void add_access_verbs(CLI::App& app, AccessArguments& arguments, std::function<int()>& verb) {
    add_open(app, arguments.open, verb);
    add_token(app, arguments.token, verb);
}

}  // namespace tune::cli
