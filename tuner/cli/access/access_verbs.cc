// The verbs about credentials and accounts. One struct holds what a group of verbs takes, since one
// verb of a program runs; a table says for each which words it wants.

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

struct UserVerb {
    const char* name;
    const char* summary;
    int (*call)(const UserCommand&);
    bool has_password = false;
    bool has_resource = false;
    bool is_named = true;
};

constexpr UserVerb kUserVerbs[] = {
    {"add", "make an account; asks for its password", run_user_add, true},
    {"ls", "list the accounts", run_user_ls, false, false, false},
    {"show", "show what was granted to a user by name", run_user_show},
    {"password", "give a user another password", run_user_password, true},
    {"admin", "make a user an administrator, or no longer one", run_user_admin},
    {"rm", "remove an account, with its grants, sessions and tokens", run_user_rm},
    {"grant", "let a user do something with an experiment or registered model", run_user_grant,
     false, true},
    {"revoke", "take a grant away", run_user_revoke, false, true},
};

void add_user(CLI::App& app, UserCommand& user, std::function<int()>& chosen) {
    CLI::App& group =
        *app.add_subcommand("user", "manage the accounts of a server that runs with --auth basic");
    group.require_subcommand(1);
    for (const UserVerb& described : kUserVerbs) {
        CLI::App& verb = *group.add_subcommand(described.name, described.summary);
        const std::string name = described.name;
        if (described.is_named)
            verb.add_option("name", user.username, "the user's name")->required();
        if (described.has_resource) {
            verb.add_option("type", user.type, "experiment or model")
                ->required()
                ->check(CLI::IsMember({"experiment", "model"}));
            verb.add_option("which", user.resource,
                            "the experiment's name or id, the model's name, or '*' for all")
                ->required();
        }
        if (name == "grant")
            verb.add_option("permission", user.permission, "READ, USE, EDIT, MANAGE or DENY")
                ->required()
                ->check(CLI::IsMember({"READ", "USE", "EDIT", "MANAGE", "DENY"}));
        if (name == "admin")
            verb.add_option("on", user.is_on, "on or off")
                ->required()
                ->check(CLI::IsMember({"on", "off"}));
        if (name == "add") verb.add_flag("--admin", user.is_admin, "as an administrator");
        if (described.has_password)
            verb.add_option("--password-file", user.password_file,
                            "its first line is the password (default: asked for, or stdin)");
        add_source(verb, user);
        verb.callback([&user, &chosen, call = described.call] {
            chosen = [&user, call] { return call(user); };
        });
    }
}

}  // namespace

void add_access_verbs(CLI::App& app, AccessArguments& arguments, std::function<int()>& verb) {
    add_open(app, arguments.open, verb);
    add_token(app, arguments.token, verb);
    add_user(app, arguments.user, verb);
}

}  // namespace tune::cli
