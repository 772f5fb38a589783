// open, token create, token ls, token rm.

#include "tuner/cli/access/token_commands.h"

#include <nlohmann/json.hpp>

#include "base/text/percent.h"
#include "base/text/time_text.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/config/study_config.h"

namespace tune::cli {
namespace {

constexpr const char* kTokens = "/api/2.0/tune/tokens";

Result<Json> request_of(const TokenCommand& options) {
    Json body = {{"scope", options.scope}, {"name", options.name}};
    if (!options.expires) return body;
    TUNE_TRY(lives_ms, tuner::parse_duration_ms(*options.expires));
    body["lives_ms"] = lives_ms;
    return body;
}

}  // namespace

int run_open(const OpenCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const std::string where = (*backend)->where();
    if (!where.starts_with("http"))
        return fail({Code::kInvalidState, "no server serves the folder " + where +
                                              "; start one with `tune server --data " + where +
                                              "`, which prints the address"},
                    options.json);
    const Result<Json> made = (*backend)->post("/api/2.0/tune/page-codes", Json::object());
    if (!made) return fail(made.error(), options.json);
    const std::string page = where + "/?code=" + made->value("code", "");
    if (options.json)
        print_json({{"page", page}});
    else
        print(page + "\n");
    return kExitOk;
}

int run_token_create(const TokenCommand& options) {
    const Result<Json> body = request_of(options);
    if (!body) return fail(body.error(), options.json);
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->post(kTokens, *body);
    if (!answer) return fail(answer.error(), options.json);
    if (options.json)
        print_json(*answer);
    else
        print(text_of(*answer, "secret") + "\n");
    return kExitOk;
}

int run_token_ls(const TokenCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->get(kTokens);
    if (!answer) return fail(answer.error(), options.json);
    if (options.json) {
        print_json(*answer);
        return kExitOk;
    }
    Table table;
    for (const char* column : {"token", "scope", "name", "expires"}) table.column(column);
    for (const Json& token : (*answer)["tokens"])
        table.row({text_of(token, "token_id"), text_of(token, "scope"),
                   printable(text_of(token, "name")),
                   token.contains("expires_ms")
                       ? local_text(token["expires_ms"].get<std::int64_t>(), "%Y-%m-%d %H:%M")
                       : "never"});
    print((*answer)["tokens"].empty() ? "no tokens in " + (*backend)->where() + "\n"
                                      : table.text());
    return kExitOk;
}

int run_token_rm(const TokenCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer =
        (*backend)->remove(std::string(kTokens) + "/" + percent_encode(options.token_id, false));
    if (!answer) return fail(answer.error(), options.json);
    if (options.json) print_json(*answer);
    return kExitOk;
}

}  // namespace tune::cli
