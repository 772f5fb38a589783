// Which account of Azure a URL means and what opens it, looked for where Azure's own tools look: a
// connection string, a key, a shared access signature, else a login (azure_login.h). The first that
// is set is used and no other, so that a wrong one is an error and not another account.

#include "loader/source/cloud/azure_account.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/crypto/digest.h"
#include "base/text/base64.h"
#include "base/text/percent.h"
#include "base/text/text.h"
#include "base/text/time_text.h"
#include "base/text/uri.h"
#include "loader/source/cloud/cloud_token.h"

namespace tune::loader {
namespace {

/// Blobs of up to 5,000 MiB in one request.
constexpr const char* kAzureVersion = "2021-08-06";

/// "AccountName=a;AccountKey=b==;BlobEndpoint=c", as Azure's own tools take and show it.
AzureAccount account_of(const std::string& connection) {
    std::map<std::string, std::string> fields;
    for (std::size_t at = 0; at < connection.size();) {
        const std::size_t end = std::min(connection.find(';', at), connection.size());
        const std::size_t equals = connection.find('=', at);
        if (equals < end)
            fields[connection.substr(at, equals - at)] =
                connection.substr(equals + 1, end - equals - 1);
        at = end + 1;
    }
    // Azurite's account is the same everywhere, and no secret.
    if (fields["UseDevelopmentStorage"] == "true")
        return {"devstoreaccount1",
                "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
                "K1SZFPTOtr/KBHBeksoGMGw==",
                "", "http://127.0.0.1:10000/devstoreaccount1"};
    AzureAccount account{fields["AccountName"], fields["AccountKey"],
                         fields["SharedAccessSignature"], fields["BlobEndpoint"]};
    const std::string protocol = fields["DefaultEndpointsProtocol"];
    if (account.endpoint.empty() && !fields["EndpointSuffix"].empty())
        account.endpoint = (protocol.empty() ? "https" : protocol) + "://" + account.name +
                           ".blob." + fields["EndpointSuffix"];
    return account;
}

/// Of the account that the URL names, or else the environment.
AzureAccount find_account(const std::string& named) {
    AzureAccount account = account_of(cloud_setting({"AZURE_STORAGE_CONNECTION_STRING"}));
    if (!account.name.empty() && (named.empty() || named == account.name)) return account;
    account = {named};
    if (named.empty())
        account.name = cloud_setting(
            {"AZURE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"});
    account.key = cloud_setting(
        {"AZURE_ACCOUNT_ACCESS_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"});
    account.sas = cloud_setting({"AZURE_STORAGE_SAS_TOKEN"});
    return account;
}

/// The account stands in front of its cloud's host, or behind any other one as a folder, as
/// emulators have it.
Result<void> complete_endpoint(AzureAccount& account) {
    while (account.endpoint.ends_with('/')) account.endpoint.pop_back();
    if (account.endpoint.empty())
        account.endpoint = "https://" + account.name + ".blob.core.windows.net";
    const UriParts parts = split_uri(account.endpoint);
    if (parts.authority.starts_with(account.name + ".") || parts.path == "/" + account.name)
        return {};
    if (!parts.path.empty())
        return invalid_parameter("the address of Azure's blobs '" + account.endpoint +
                                 "' is neither of the account '" + account.name +
                                 "' nor of a host that has it as a folder");
    account.endpoint += "/" + account.name;
    return {};
}

std::string header_value(const HttpRequest& request, std::string_view name) {
    for (const std::string& header : request.headers)
        if (header.size() > name.size() && header[name.size()] == ':' && header.starts_with(name))
            return std::string(trimmed(std::string_view(header).substr(name.size() + 1)));
    return {};
}

/// "/ACCOUNT/PATH" of the address as it is sent, then each part of the query by its name.
std::string canonical_resource(const std::string& account, const std::string& url) {
    const std::size_t host = url.find("://") + 3;
    const std::size_t query = std::min(url.find('?'), url.size());
    const std::size_t path = std::min(url.find('/', host), query);
    std::string text = "/" + account + url.substr(path, query - path);
    std::map<std::string, std::string> fields;
    for (std::size_t at = query + 1; at < url.size();) {
        const std::size_t end = std::min(url.find('&', at), url.size());
        const std::size_t equals = std::min(url.find('=', at), end);
        fields[lower_ascii(url.substr(at, equals - at))] =
            percent_decode(url.substr(std::min(equals + 1, end), end - std::min(equals + 1, end)));
        at = end + 1;
    }
    for (const auto& [name, value] : fields) text += "\n" + name + ":" + value;
    return text;
}

/// Shared Key of version 2015-02-21 and later.
void sign_request(const AzureAccount& account, const std::string& key, HttpRequest& request) {
    const std::string verb =
        !request.method.empty() ? request.method : (request.is_head ? "HEAD" : "GET");
    std::map<std::string, std::string> named;
    for (const std::string& header : request.headers)
        if (header.starts_with("x-ms-")) {
            const std::size_t colon = header.find(':');
            named[header.substr(0, colon)] = std::string(trimmed(header.substr(colon + 1)));
        }
    std::string text = verb + "\n\n\n";
    text += (request.sent.empty() ? "" : std::to_string(request.sent.size())) + "\n\n";
    text += header_value(request, "Content-Type") + "\n\n\n";
    text += header_value(request, "If-Match") + "\n\n\n" + header_value(request, "Range") + "\n";
    for (const auto& [name, value] : named) {
        text += name;
        text += ":" + value + "\n";
    }
    text += canonical_resource(account.name, request.url);
    const Sha256Bytes digest = hmac_sha256(key, text);
    request.headers.push_back(
        "Authorization: SharedKey " + account.name + ":" +
        base64({reinterpret_cast<const char*>(digest.data()), digest.size()}));
}

}  // namespace

Result<AzurePlace> azure_place(const std::string& url, const SourceOptions& options) {
    AzurePlace azure;
    TUNE_TRY(place, cloud_place(url));
    azure.place = std::move(place);
    std::string host;  // "ACCOUNT.dfs.core.windows.net"
    if (const std::size_t at = azure.place.bucket.find('@'); at != std::string::npos) {
        host = azure.place.bucket.substr(at + 1);
        azure.place.bucket.resize(at);
    }
    AzureAccount& account = azure.account;
    account = find_account(host.substr(0, host.find('.')));
    if (account.name.empty())
        return invalid_parameter("'" + url +
                                 "' names no account: set AZURE_STORAGE_CONNECTION_STRING or "
                                 "AZURE_STORAGE_ACCOUNT, or write "
                                 "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER");
    if (!options.endpoint.empty()) account.endpoint = options.endpoint;
    if (const std::size_t kind = host.find(".dfs.");
        account.endpoint.empty() && kind != std::string::npos)
        account.endpoint = "https://" + host.replace(kind, 5, ".blob.");
    if (account.sas.starts_with('?')) account.sas.erase(0, 1);
    if (!account.key.empty() && !base64_decode(account.key))
        return invalid_parameter("the key of Azure's account '" + account.name + "' is not base64");
    TUNE_TRY_VOID(complete_endpoint(account));
    return azure;
}

HttpLogin azure_requests(const AzureAccount& account, const SourceOptions& options) {
    std::shared_ptr<TokenKeeper> keeper;
    if (account.key.empty() && account.sas.empty()) keeper = azure_login(options);
    const std::string key = base64_decode(account.key).value_or("");
    return [account, key, keeper](HttpRequest& request) -> Result<void> {
        request.headers.push_back("x-ms-version: " + std::string(kAzureVersion));
        if (keeper) {
            TUNE_TRY(token, keeper->token());
            request.headers.push_back("Authorization: Bearer " + token);
        } else if (!key.empty()) {
            request.headers.push_back("x-ms-date: " + http_date(SystemClock().now_ms()));
            sign_request(account, key, request);
        } else {
            request.url += (request.url.find('?') == std::string::npos ? "?" : "&") + account.sas;
        }
        return {};
    };
}

}  // namespace tune::loader
