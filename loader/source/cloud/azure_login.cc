// In the order of Azure's own DefaultAzureCredential: what the environment says, a workload's
// federated token, what `az login` knows, the identity of the machine. The first that there is
// counts; when it fails, its reason is told.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text/percent.h"
#include "base/text/text.h"
#include "loader/source/cloud/cloud_text.h"
#include "loader/source/cloud/cloud_token.h"
#include "loader/source/http/http_request.h"

namespace tune::loader {
namespace {

constexpr const char* kStorage = "https://storage.azure.com/";
constexpr const char* kAssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Of a token whose life the answer does not state.
constexpr double kShortLife_s = 600;
/// Attempts for the machine's identity, which most machines have not.
constexpr int kIdentityRetries = 1;
constexpr double kIdentityTimeout_s = 3;

/// `expires_in` is a number of one service and a text of another.
Result<CloudToken> token_in(const std::string& text) {
    TUNE_TRY(json, parse_json(text));
    CloudToken token{text_member(json, "access_token"), kShortLife_s};
    if (token.text.empty()) token.text = text_member(json, "accessToken");  // of `az`
    if (const auto lives = json.find("expires_in"); lives != json.end()) {
        if (lives->is_number()) token.lives_s = lives->get<double>();
        if (lives->is_string())
            token.lives_s = std::strtod(lives->get_ref<const std::string&>().c_str(), nullptr);
    }
    return token;
}

/// A client's secret, or what a cluster wrote into a file for it.
Result<CloudToken> client_token(HttpClient& client) {
    std::string host = cloud_setting({"AZURE_AUTHORITY_HOST"});
    if (host.empty()) host = "https://login.microsoftonline.com";
    while (host.ends_with('/')) host.pop_back();
    std::vector<std::pair<std::string, std::string>> fields = {
        {"grant_type", "client_credentials"},
        {"client_id", cloud_setting({"AZURE_CLIENT_ID"})},
        {"scope", std::string(kStorage) + ".default"}};
    if (const std::string secret = cloud_setting({"AZURE_CLIENT_SECRET"}); !secret.empty()) {
        fields.emplace_back("client_secret", secret);
    } else {
        TUNE_TRY(assertion, read_file(cloud_setting({"AZURE_FEDERATED_TOKEN_FILE"}), 1 << 20));
        fields.emplace_back("client_assertion_type", kAssertionType);
        fields.emplace_back("client_assertion", std::string(trimmed(assertion)));
    }
    const std::string body = form_text(fields);
    HttpResponse response;
    TUNE_TRY(text, send_for_text(client,
                                 {.url = host + "/" + cloud_setting({"AZURE_TENANT_ID"}) +
                                         "/oauth2/v2.0/token",
                                  .headers = {"Content-Type: application/x-www-form-urlencoded"},
                                  .method = "POST",
                                  .sent = std::as_bytes(std::span(body))},
                                 response));
    return token_in(text);
}

/// Of a service of Azure's, or of a virtual machine by the address that all have.
Result<CloudToken> identity_token(HttpClient& client) {
    std::string where = cloud_setting({"IDENTITY_ENDPOINT"});
    HttpRequest request;
    if (!where.empty()) {
        where += "?api-version=2019-08-01";
        request.headers.push_back("X-IDENTITY-HEADER: " + cloud_setting({"IDENTITY_HEADER"}));
    } else {
        where = cloud_setting({"AZURE_POD_IDENTITY_AUTHORITY_HOST"});
        if (where.empty()) where = "http://169.254.169.254";
        where += "/metadata/identity/oauth2/token?api-version=2018-02-01";
        request.headers.push_back("Metadata: true");
    }
    request.url = where + "&resource=" + percent_encode(kStorage, false);
    if (const std::string id = cloud_setting({"AZURE_CLIENT_ID"}); !id.empty())
        request.url += "&client_id=" + percent_encode(id, false);
    HttpResponse response;
    TUNE_TRY(text, send_for_text(client, std::move(request), response));
    return token_in(text);
}

/// What `az login` knows; nothing when there is no `az`, or nobody is logged in.
std::optional<CloudToken> az_token() {
    std::FILE* const pipe = ::popen(
        "az account get-access-token --resource https://storage.azure.com/ --output json"
        " 2>/dev/null </dev/null",
        "re");
    if (!pipe) return {};
    std::string text;
    std::array<char, 4096> piece{};
    for (std::size_t count = 0; (count = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
        text.append(piece.data(), count);
    const int status = ::pclose(pipe);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
    Result<CloudToken> token = token_in(text);
    if (!token || token->text.empty()) return {};
    return *std::move(token);
}

Result<CloudToken> any_azure_token(HttpClient& client, HttpClient& impatient) {
    const bool is_client =
        !cloud_setting({"AZURE_CLIENT_ID"}).empty() &&
        !cloud_setting({"AZURE_TENANT_ID"}).empty() &&
        !cloud_setting({"AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"}).empty();
    if (is_client) return client_token(client);
    if (!cloud_setting({"IDENTITY_ENDPOINT"}).empty()) return identity_token(client);
    if (std::optional<CloudToken> token = az_token()) return *std::move(token);
    Result<CloudToken> token = identity_token(impatient);
    if (token) return token;
    return Error{Code::kUnauthenticated,
                 "no login of Azure was found: set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or "
                 "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run 'az login' "
                 "(and this machine has no identity: " +
                     token.error().message + ")"};
}

}  // namespace

std::shared_ptr<TokenKeeper> azure_login(const SourceOptions& options) {
    if (!options.token.empty())
        return std::make_shared<TokenKeeper>([token = options.token] {
            return Result<CloudToken>(CloudToken{token, 1e9});
        });
    auto client = std::make_shared<HttpClient>(options);
    SourceOptions less = options;
    less.download_retry = std::min(less.download_retry, kIdentityRetries);
    less.download_timeout_s = std::min(less.download_timeout_s, kIdentityTimeout_s);
    auto impatient = std::make_shared<HttpClient>(less);
    return std::make_shared<TokenKeeper>(
        [client, impatient] { return any_azure_token(*client, *impatient); });
}

}  // namespace tune::loader
