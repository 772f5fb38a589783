#pragma once
// `tune user add`, `ls`, `show`, `password`, `admin`, `rm`, `grant`, `revoke`: accounts of a server
// with --auth basic, and what they may do.

#include <optional>
#include <string>

namespace tune::cli {

struct UserCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string username = {};
    /// A file with the password in its first line; empty: the terminal, or stdin.
    std::string password_file = {};
    bool is_admin = false;
    std::string is_on = {};  ///< admin: on or off
    /// Of what is granted: experiment or model; an experiment's name or id, a model's name, or "*".
    std::string type = {};
    std::string resource = {};
    std::string permission = {};
    bool json = false;
};

[[nodiscard]] int run_user_add(const UserCommand& options);
[[nodiscard]] int run_user_ls(const UserCommand& options);
[[nodiscard]] int run_user_show(const UserCommand& options);
[[nodiscard]] int run_user_password(const UserCommand& options);
[[nodiscard]] int run_user_admin(const UserCommand& options);
[[nodiscard]] int run_user_rm(const UserCommand& options);
[[nodiscard]] int run_user_grant(const UserCommand& options);
[[nodiscard]] int run_user_revoke(const UserCommand& options);

}  // namespace tune::cli
