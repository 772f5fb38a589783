// From URLs (https, hf://, dbfs:/Volumes) to addresses, and where each service's own tools keep
// tokens: HF_TOKEN and huggingface_hub's file, DATABRICKS_HOST and ~/.databrickscfg. Who is logged
// in there needs to do nothing here.
//
// A token is sent only to the service it belongs to: plain https URLs get one only if it was given.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/system/file.h"
#include "base/text/percent.h"
#include "base/text/text.h"
#include "loader/source/http/http_source.h"

namespace tune::loader {
namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

std::string first_set(std::initializer_list<const char*> names) {
    for (const char* const name : names)
        if (std::string value = variable(name); !value.empty()) return value;
    return {};
}

std::vector<std::string> bearer(const std::string& token) {
    if (token.empty()) return {};
    return {"Authorization: Bearer " + token};
}

std::string without_slash(std::string text) {
    while (text.ends_with('/')) text.pop_back();
    return text;
}

std::string hugging_face_token() {
    if (std::string token = first_set({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}); !token.empty())
        return token;
    std::string home = variable("HF_HOME");
    if (home.empty()) home = variable("HOME") + "/.cache/huggingface";
    const Result<std::string> text = read_file(home + "/token", 1 << 16);
    return text ? std::string(trimmed(*text)) : std::string();
}

/// host and token of a profile in ~/.databrickscfg.
struct DatabricksLogin {
    std::string host = variable("DATABRICKS_HOST");
    std::string token = variable("DATABRICKS_TOKEN");
};

DatabricksLogin databricks_login() {
    DatabricksLogin login;
    if (!login.host.empty() && !login.token.empty()) return login;
    std::string path = variable("DATABRICKS_CONFIG_FILE");
    if (path.empty()) path = variable("HOME") + "/.databrickscfg";
    std::string wanted = variable("DATABRICKS_CONFIG_PROFILE");
    if (wanted.empty()) wanted = "DEFAULT";
    std::ifstream file(path);
    std::string line;
    bool is_in_profile = false;
    while (std::getline(file, line)) {
        const std::string_view text = trimmed(line);
        if (text.starts_with('[')) is_in_profile = text == "[" + wanted + "]";
        const std::size_t equals = text.find('=');
        if (!is_in_profile || equals == std::string_view::npos) continue;
        const std::string_view name = trimmed(text.substr(0, equals));
        const std::string value(trimmed(text.substr(equals + 1)));
        if (name == "host" && login.host.empty()) login.host = value;
        if (name == "token" && login.token.empty()) login.token = value;
    }
    return login;
}

HttpPlace web_place(const std::string& url, const SourceOptions& options) {
    HttpPlace place{.url = public_url(url), .headers = bearer(options.token)};
    const std::size_t query = url.find('?');
    place.base = without_slash(url.substr(0, query));
    if (query != std::string::npos) place.query = url.substr(query, url.find('#') - query);
    return place;
}

/// hf://datasets/OWNER/NAME[@REVISION][/PATH], also models (hf://OWNER/NAME) and spaces.
Result<HttpPlace> hugging_face_place(const std::string& url, const SourceOptions& options) {
    std::vector<std::string> parts;
    std::string rest = url.substr(std::string_view("hf://").size());
    for (std::size_t slash = 0; slash != std::string::npos && parts.size() < 3;) {
        slash = rest.find('/');
        parts.push_back(rest.substr(0, slash));
        rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
        if (parts.size() == 2 && parts[0] != "datasets" && parts[0] != "spaces") break;
    }
    const bool has_kind = !parts.empty() && (parts[0] == "datasets" || parts[0] == "spaces");
    if (parts.size() < (has_kind ? 3u : 2u) || parts.back().empty())
        return invalid_parameter("'" + url +
                                 "' names no repository; write hf://datasets/OWNER/NAME/FOLDER");
    const std::string kind = has_kind ? parts[0] : "models";
    const std::string owner = has_kind ? parts[1] : parts[0];
    std::string name = parts.back();
    std::string revision = "main";
    if (const std::size_t at = name.find('@'); at != std::string::npos) {
        revision = name.substr(at + 1);
        name.resize(at);
    }
    std::string host = options.endpoint.empty() ? variable("HF_ENDPOINT") : options.endpoint;
    if (host.empty()) host = "https://huggingface.co";
    host = without_slash(host);
    rest = without_slash(rest);
    HttpPlace place{
        .url = without_slash(url),
        .headers = bearer(options.token.empty() ? hugging_face_token() : options.token)};
    const std::string repository = owner + "/" + name;
    place.base = host + "/" + (kind == "models" ? "" : kind + "/") + repository + "/resolve/" +
                 percent_encode(revision, false) + (rest.empty() ? "" : "/" + percent_encode(rest));
    place.list_base = host + "/api/" + kind + "/" + repository + "/tree/" +
                      percent_encode(revision, false) + "?" + rest;
    place.listing = HttpPlace::Listing::kHuggingFace;
    return place;
}

/// dbfs:/Volumes/CATALOG/SCHEMA/VOLUME/PATH by the files API.
Result<HttpPlace> unity_catalog_place(const std::string& url, const SourceOptions& options) {
    std::string path = url.substr(std::string_view("dbfs:").size());
    while (path.starts_with("//")) path.erase(0, 1);
    if (!path.starts_with("/Volumes/"))
        return invalid_parameter(
            "'" + url +
            "' is no volume: dbfs:/Volumes/... is read over the network, other "
            "paths of dbfs where the cluster mounts them under /dbfs");
    DatabricksLogin login = databricks_login();
    if (!options.endpoint.empty()) login.host = options.endpoint;
    if (!options.token.empty()) login.token = options.token;
    if (login.host.empty() || login.token.empty())
        return Error{Code::kUnauthenticated,
                     "'" + url +
                         "' needs DATABRICKS_HOST and DATABRICKS_TOKEN, or a profile in "
                         "~/.databrickscfg"};
    if (login.host.find("://") == std::string::npos) login.host = "https://" + login.host;
    HttpPlace place{.url = without_slash(url), .headers = bearer(login.token)};
    const std::string encoded = percent_encode(without_slash(path));
    place.base = without_slash(login.host) + "/api/2.0/fs/files" + encoded;
    place.list_base = without_slash(login.host) + "/api/2.0/fs/directories" + encoded;
    place.listing = HttpPlace::Listing::kUnityCatalog;
    return place;
}

}  // namespace

Result<HttpPlace> http_place(const std::string& url, const SourceOptions& options) {
    if (url.starts_with("hf:")) return hugging_face_place(url, options);
    if (url.starts_with("dbfs:")) return unity_catalog_place(url, options);
    return web_place(url, options);
}

}  // namespace tune::loader
