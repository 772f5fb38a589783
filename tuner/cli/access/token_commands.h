#pragma once
// `tune open`, `tune token create`, `ls`, `rm`: credentials that the owner gives.

#include <optional>
#include <string>

namespace tune::cli {

struct OpenCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    bool json = false;
};

struct TokenCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string scope = {};  ///< read, agent or user
    std::string name = {};
    std::optional<std::string> expires = {};  ///< a duration
    std::string token_id = {};
    bool json = false;
};

[[nodiscard]] int run_open(const OpenCommand& options);
[[nodiscard]] int run_token_create(const TokenCommand& options);
[[nodiscard]] int run_token_ls(const TokenCommand& options);
[[nodiscard]] int run_token_rm(const TokenCommand& options);

}  // namespace tune::cli
