// A password never stands on the command line, where every process of the machine could read it: it
// comes from a file, from the terminal without being shown, or from what is piped in.

#include "tuner/cli/access/user_commands.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text/percent.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

constexpr const char* kUsers = "/api/2.0/mlflow/users/";
constexpr const char* kGrants = "/api/3.0/mlflow/users/permissions/";

/// What is typed on the terminal `fd` is not shown while this lives.
class Unseen {
public:
    explicit Unseen(int fd) : fd_(fd), is_set_(tcgetattr(fd, &before_) == 0) {
        if (!is_set_) return;
        termios unseen = before_;
        unseen.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        tcsetattr(fd_, TCSAFLUSH, &unseen);
    }
    ~Unseen() {
        if (is_set_) tcsetattr(fd_, TCSAFLUSH, &before_);
    }
    Unseen(const Unseen&) = delete;
    Unseen& operator=(const Unseen&) = delete;

private:
    int fd_;
    termios before_ = {};
    bool is_set_;
};

std::string typed(const std::string& prompt) {
    std::cerr << prompt << std::flush;
    std::string line;
    {
        const Unseen unseen(STDIN_FILENO);
        std::getline(std::cin, line);
    }
    std::cerr << "\n";
    return line;
}

Result<std::string> password_of(const UserCommand& options) {
    std::string password;
    if (!options.password_file.empty()) {
        std::ifstream file(options.password_file);
        if (!std::getline(file, password))
            return Error{Code::kInvalidParameterValue,
                         "there is no password in the first line of " + options.password_file};
        return password;
    }
    if (!is_terminal(STDIN_FILENO)) {
        if (std::getline(std::cin, password)) return password;
        return Error{Code::kInvalidParameterValue,
                     "no password: pipe one in, or give --password-file"};
    }
    password = typed("Password of " + printable(options.username) + ": ");
    if (typed("The same again: ") != password)
        return Error{Code::kInvalidParameterValue, "the two passwords differ"};
    return password;
}

std::string by_name(const char* path, const std::string& username) {
    return path + ("?username=" + percent_encode(username, false));
}

/// The one experiment or model, or all of them, as the routes name it.
Result<Json> resource_of(Backend& backend, const UserCommand& options) {
    if (options.type == "model" || options.resource == "*")
        return Json{{"resource_type", options.type == "model" ? "registered_model" : "experiment"},
                    {"resource_id", options.resource}};
    const bool is_id =
        !options.resource.empty() && std::all_of(options.resource.begin(), options.resource.end(),
                                                 [](char c) { return c >= '0' && c <= '9'; });
    std::string id = options.resource;
    const Result<Json> named =
        backend.get("/api/2.0/mlflow/experiments/get-by-name?experiment_name=" +
                    percent_encode(options.resource, false));
    if (named)
        id = text_of((*named)["experiment"], "experiment_id");
    else if (!is_id)
        return named.error();
    return Json{{"resource_type", "experiment"}, {"resource_id", id}};
}

std::string roles_text(const Json& user) {
    std::string text;
    for (const Json& role : user.value("roles", Json::array())) {
        const std::string name = text_of(role, "name");
        if (!name.starts_with("__")) text += (text.empty() ? "" : ", ") + printable(name);
    }
    return text;
}

using Work = Result<Json> (*)(Backend&, const UserCommand&);

/// Runs `work`; its answer is printed only as JSON, else `done`.
int run(const UserCommand& options, Work work, const std::string& done) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = work(**backend, options);
    if (!answer) return fail(answer.error(), options.json);
    if (options.json)
        print_json(*answer);
    else
        print(done + "\n");
    return kExitOk;
}

Result<Json> add(Backend& backend, const UserCommand& options) {
    TUNE_TRY(password, password_of(options));
    TUNE_TRY(made, backend.post(kUsers + std::string("create"),
                                {{"username", options.username}, {"password", password}}));
    if (options.is_admin)
        TUNE_TRY_VOID(backend.patch(kUsers + std::string("update-admin"),
                                    {{"username", options.username}, {"is_admin", true}}));
    return made;
}

Result<Json> set_password(Backend& backend, const UserCommand& options) {
    TUNE_TRY(password, password_of(options));
    return backend.patch(kUsers + std::string("update-password"),
                         {{"username", options.username}, {"password", password}});
}

Result<Json> set_admin(Backend& backend, const UserCommand& options) {
    return backend.patch(kUsers + std::string("update-admin"),
                         {{"username", options.username}, {"is_admin", options.is_on == "on"}});
}

Result<Json> remove(Backend& backend, const UserCommand& options) {
    return backend.remove(kUsers + std::string("delete"), {{"username", options.username}});
}

Result<Json> grant(Backend& backend, const UserCommand& options) {
    TUNE_TRY(body, resource_of(backend, options));
    body["username"] = options.username;
    body["permission"] = options.permission;
    return backend.post(kGrants + std::string("grant"), body);
}

Result<Json> revoke(Backend& backend, const UserCommand& options) {
    TUNE_TRY(body, resource_of(backend, options));
    body["username"] = options.username;
    return backend.post(kGrants + std::string("revoke"), body);
}

}  // namespace

int run_user_add(const UserCommand& options) {
    return run(options, add,
               printable(options.username) + " may log in" +
                   (options.is_admin ? ", as an administrator" : ""));
}

int run_user_password(const UserCommand& options) {
    return run(options, set_password, printable(options.username) + " has a new password");
}

int run_user_admin(const UserCommand& options) {
    return run(options, set_admin,
               printable(options.username) + (options.is_on == "on" ? " is" : " is not") +
                   " an administrator");
}

int run_user_rm(const UserCommand& options) {
    return run(options, remove,
               printable(options.username) + " is removed, with grants, sessions and tokens");
}

int run_user_grant(const UserCommand& options) {
    return run(options, grant,
               printable(options.username) + " has " + options.permission + " on " + options.type +
                   " " + printable(options.resource));
}

int run_user_revoke(const UserCommand& options) {
    return run(options, revoke,
               "what " + printable(options.username) + " was granted on " + options.type + " " +
                   printable(options.resource) + " is taken away");
}

int run_user_ls(const UserCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->get(kUsers + std::string("list"));
    if (!answer) return fail(answer.error(), options.json);
    if (options.json) {
        print_json(*answer);
        return kExitOk;
    }
    Table table;
    for (const char* column : {"user", "administrator", "roles"}) table.column(column);
    for (const Json& user : (*answer)["users"])
        table.row({printable(text_of(user, "username")), user.value("is_admin", false) ? "yes" : "",
                   roles_text(user)});
    print((*answer)["users"].empty()
              ? "no users in " + (*backend)->where() + "; `tune user add NAME` makes one\n"
              : table.text());
    return kExitOk;
}

int run_user_show(const UserCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->get(kGrants + by_name("list", options.username));
    if (!answer) return fail(answer.error(), options.json);
    if (options.json) {
        print_json(*answer);
        return kExitOk;
    }
    if (answer->value("is_admin", false))
        print(printable(options.username) + " is an administrator: everything is allowed\n");
    Table table;
    for (const char* column : {"on", "", "permission"}) table.column(column);
    for (const Json& one : (*answer)["permissions"])
        table.row({text_of(one, "resource_type"), printable(text_of(one, "resource_pattern")),
                   text_of(one, "permission")});
    print((*answer)["permissions"].empty()
              ? "nothing was granted to " + printable(options.username) + " by name\n"
              : table.text());
    return kExitOk;
}

}  // namespace tune::cli
