// Every kind of credentials ends in an access token for reading and writing storage. What the token
// is asked of is always one POST, or one GET of the machine's own metadata service.

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/crypto/rsa.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/text/base64.h"
#include "base/text/text.h"
#include "loader/source/cloud/cloud_text.h"
#include "loader/source/cloud/cloud_token.h"
#include "loader/source/http/http_request.h"

namespace tune::loader {
namespace {

constexpr const char* kGoogleScope = "https://www.googleapis.com/auth/devstorage.read_write";
constexpr const char* kGoogleTokens = "https://oauth2.googleapis.com/token";
constexpr const char* kJwtGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
constexpr const char* kExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange";
constexpr const char* kAccessToken = "urn:ietf:params:oauth:token-type:access_token";
/// Of an account that is acted for, as it is asked for.
constexpr double kActingLife_s = 3600;
/// Credentials that name credentials that name credentials: as deep as anything sensible.
constexpr int kSourcesMax = 3;

std::string member_or(const Json& json, const char* name, const char* otherwise) {
    std::string text = text_member(json, name);
    return text.empty() ? otherwise : text;
}

/// What asks for tokens on behalf of one file of credentials.
class GoogleTokens {
public:
    GoogleTokens(Json credentials, SourceOptions options)
        : credentials_(std::move(credentials)),
          client_(std::make_shared<HttpClient>(std::move(options))) {}

    [[nodiscard]] Result<CloudToken> fetch() const { return token_of(credentials_, 0); }

private:
    [[nodiscard]] Result<CloudToken> token_of(const Json& credentials, int depth) const {
        const std::string type = text_member(credentials, "type");
        if (type == "service_account") return of_service_account(credentials);
        if (type == "authorized_user")
            return post_form(member_or(credentials, "token_uri", kGoogleTokens),
                             {{"grant_type", "refresh_token"},
                              {"client_id", text_member(credentials, "client_id")},
                              {"client_secret", text_member(credentials, "client_secret")},
                              {"refresh_token", text_member(credentials, "refresh_token")}});
        if (type == "external_account") return of_federation(credentials);
        if (type == "impersonated_service_account" && depth < kSourcesMax) {
            TUNE_TRY(source,
                     token_of(credentials.value("source_credentials", Json::object()), depth + 1));
            return act_for(text_member(credentials, "service_account_impersonation_url"), source);
        }
        return Error{Code::kNotImplemented,
                     "Google's credentials of the type '" + type + "' cannot be used"};
    }

    [[nodiscard]] Result<CloudToken> of_service_account(const Json& credentials) const {
        const std::string address = member_or(credentials, "token_uri", kGoogleTokens);
        const auto now = static_cast<std::int64_t>(std::time(nullptr));
        const Json header = {
            {"alg", "RS256"}, {"typ", "JWT"}, {"kid", text_member(credentials, "private_key_id")}};
        const Json claims = {{"iss", text_member(credentials, "client_email")},
                             {"scope", kGoogleScope},
                             {"aud", address},
                             {"iat", now},
                             {"exp", now + 3600}};
        const std::string text = base64_url(to_text(header)) + "." + base64_url(to_text(claims));
        Result<std::string> signature = sign_rs256(text_member(credentials, "private_key"), text);
        if (!signature) return invalid_parameter("its private_key: " + signature.error().message);
        return post_form(address, {{"grant_type", kJwtGrant},
                                   {"assertion", text + "." + base64_url(*signature)}});
    }

    /// A token of somebody else (a cluster, another cloud) exchanged for one of Google's.
    [[nodiscard]] Result<CloudToken> of_federation(const Json& credentials) const {
        const Json source = credentials.value("credential_source", Json::object());
        TUNE_TRY(subject, subject_token(source));
        TUNE_TRY(
            token,
            post_form(text_member(credentials, "token_url"),
                      {{"grant_type", kExchangeGrant},
                       {"audience", text_member(credentials, "audience")},
                       {"scope", "https://www.googleapis.com/auth/cloud-platform"},
                       {"requested_token_type", kAccessToken},
                       {"subject_token", subject},
                       {"subject_token_type", text_member(credentials, "subject_token_type")}}));
        const std::string acting = text_member(credentials, "service_account_impersonation_url");
        return acting.empty() ? Result<CloudToken>(std::move(token)) : act_for(acting, token);
    }

    [[nodiscard]] Result<std::string> subject_token(const Json& source) const {
        std::string text;
        if (const std::string file = text_member(source, "file"); !file.empty()) {
            TUNE_TRY(content, read_file(file, 1 << 20));
            text = std::move(content);
        } else if (const std::string url = text_member(source, "url"); !url.empty()) {
            HttpRequest request{.url = url};
            const Json headers = source.value("headers", Json::object());
            for (const auto& [name, value] : headers.items())
                if (value.is_string())
                    request.headers.push_back(name + ": " + value.get<std::string>());
            HttpResponse response;
            TUNE_TRY(content, send_for_text(*client_, std::move(request), response));
            text = std::move(content);
        } else {
            return Error{Code::kNotImplemented,
                         "Google's credentials take their token neither from a file nor from a "
                         "URL, which is what can be used"};
        }
        const Json format = source.value("format", Json::object());
        if (text_member(format, "type") != "json") return std::string(trimmed(text));
        TUNE_TRY(json, parse_json(text));
        return text_member(json, text_member(format, "subject_token_field_name").c_str());
    }

    [[nodiscard]] Result<CloudToken> act_for(const std::string& address,
                                             const CloudToken& source) const {
        const std::string body =
            to_text({{"scope", Json::array({kGoogleScope})},
                     {"lifetime", std::to_string(static_cast<int>(kActingLife_s)) + "s"}});
        TUNE_TRY(json, post(address, body, "application/json", source.text));
        return CloudToken{text_member(json, "accessToken"), kActingLife_s};
    }

    [[nodiscard]] Result<CloudToken> post_form(
        const std::string& address,
        const std::vector<std::pair<std::string, std::string>>& fields) const {
        TUNE_TRY(json, post(address, form_text(fields), "application/x-www-form-urlencoded", ""));
        const auto lives = json.find("expires_in");
        return CloudToken{text_member(json, "access_token"),
                          lives != json.end() && lives->is_number() ? lives->get<double>() : 0};
    }

    [[nodiscard]] Result<Json> post(const std::string& address, const std::string& body,
                                    const std::string& type, const std::string& bearer) const {
        HttpRequest request{.url = address,
                            .headers = {"Content-Type: " + type},
                            .method = "POST",
                            .sent = std::as_bytes(std::span(body))};
        if (!bearer.empty()) request.headers.push_back("Authorization: Bearer " + bearer);
        HttpResponse response;
        TUNE_TRY(text, send_for_text(*client_, std::move(request), response));
        return parse_json(text);
    }

    const Json credentials_;
    const std::shared_ptr<HttpClient> client_;
};

/// What the machine itself, or the pod, runs as.
Result<CloudToken> metadata_token(HttpClient& client) {
    std::string host = cloud_setting({"GCE_METADATA_HOST"});
    if (host.empty()) host = "metadata.google.internal";
    HttpResponse response;
    TUNE_TRY(text, send_for_text(client,
                                 {.url = "http://" + host +
                                         "/computeMetadata/v1/instance/service-accounts/default/"
                                         "token",
                                  .headers = {"Metadata-Flavor: Google"}},
                                 response));
    TUNE_TRY(json, parse_json(text));
    return CloudToken{text_member(json, "access_token"), json.value("expires_in", 0.0)};
}

}  // namespace

Result<std::shared_ptr<TokenKeeper>> google_login(const SourceOptions& options) {
    if (!options.token.empty())
        return std::make_shared<TokenKeeper>([token = options.token] {
            return Result<CloudToken>(CloudToken{token, 1e9});
        });
    std::string file = cloud_setting({"GOOGLE_APPLICATION_CREDENTIALS"});
    const bool is_named = !file.empty();
    if (!is_named) {
        std::string folder = cloud_setting({"CLOUDSDK_CONFIG"});
        if (folder.empty()) folder = cloud_setting({"HOME"}) + "/.config/gcloud";
        file = folder + "/application_default_credentials.json";
    }
    Result<std::string> text = read_file(file, 1 << 20);
    if (text) {
        Result<Json> json = parse_json(*text);
        if (!json || !json->is_object())
            return invalid_parameter("Google's credentials in '" + file + "' are not JSON");
        auto tokens = std::make_shared<GoogleTokens>(*std::move(json), options);
        return std::make_shared<TokenKeeper>([tokens, file] {
            Result<CloudToken> token = tokens->fetch();
            if (token) return token;
            Error error = std::move(token).error();
            error.message = "with the credentials in '" + file + "': " + error.message;
            return Result<CloudToken>(std::move(error));
        });
    }
    if (is_named)
        return invalid_parameter("GOOGLE_APPLICATION_CREDENTIALS: " + text.error().message);
    if (cloud_setting({"GCE_METADATA_HOST", "KUBERNETES_SERVICE_HOST"}).empty())
        return std::shared_ptr<TokenKeeper>();
    auto client = std::make_shared<HttpClient>(options);
    return std::make_shared<TokenKeeper>([client] { return metadata_token(*client); });
}

}  // namespace tune::loader
