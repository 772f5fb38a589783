// From a URL to the addresses of its name nodes, by what Hadoop's own settings say of them. The
// port of hdfs:// is never the one that answers here: it is Hadoop's own protocol, which wants
// Java. A setting counts for a URL only if it names the same host, because a machine's settings
// describe its own cluster and the URL may mean another.

#include "loader/source/hdfs/hdfs_place.h"

#include <algorithm>

#include "base/system/file.h"
#include "base/system/user_name.h"
#include "base/text/percent.h"
#include "base/text/text.h"
#include "base/text/uri.h"
#include "loader/source/cloud/cloud_text.h"
#include "loader/source/hdfs/hadoop_settings.h"
#include "loader/source/hdfs/hadoop_token.h"

namespace tune::loader {
namespace {

constexpr std::size_t kTokenFileBytesMax = std::size_t{16} << 20;

std::string setting(const HadoopSettings& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
}

std::vector<std::string> names_in(const std::string& list) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at < list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        const std::string name(trimmed(std::string_view(list).substr(at, end - at)));
        if (!name.empty()) names.push_back(name);
        at = end + 1;
    }
    return names;
}

/// "host:port" of "scheme://host:port/path", in the letters that it has: names of name services
/// differ by case.
std::string authority_of(const std::string& url) {
    const std::size_t begin = url.find("://");
    if (begin == std::string::npos) return {};
    return url.substr(begin + 3, url.find('/', begin + 3) - begin - 3);
}

std::string host_text(const Authority& authority) {
    const std::string host(authority.host);
    return authority.is_bracketed ? "[" + host + "]" : host;
}

/// Where the name nodes of `authority` answer: names of settings, and what stands for what they do
/// not say.
struct WebAddresses {
    std::string protocol;
    std::string name;  // "dfs.namenode.http-address"
    std::string port;

    WebAddresses(const std::string& scheme, const HadoopSettings& settings) {
        const bool has_tls =
            scheme == "swebhdfs" ||
            (scheme == "hdfs" && setting(settings, "dfs.http.policy") == "HTTPS_ONLY");
        protocol = has_tls ? "https://" : "http://";
        name = has_tls ? "dfs.namenode.https-address" : "dfs.namenode.http-address";
        port = has_tls ? "9871" : "9870";
    }

    /// `stated` is a setting "HOST:PORT"; one that listens at every address answers at `host`.
    [[nodiscard]] std::string of(const std::string& stated, const std::string& host) const {
        const Authority parts = split_authority(stated);
        const bool has_host = !parts.host.empty() && parts.host != "0.0.0.0";
        return protocol + (has_host ? host_text(parts) : host) + ":" +
               (parts.has_port ? std::string(parts.port) : port);
    }
};

std::vector<std::string> find_name_nodes(const std::string& scheme, const Authority& authority,
                                         const HadoopSettings& settings) {
    const WebAddresses web(scheme, settings);
    const std::string host = host_text(authority);
    std::vector<std::string> found;
    if (!authority.has_port)
        for (const std::string& node : names_in(setting(settings, "dfs.ha.namenodes." + host))) {
            const std::string which = "." + host + "." + node;
            const std::string rpc = setting(settings, "dfs.namenode.rpc-address" + which);
            found.push_back(
                web.of(setting(settings, web.name + which), host_text(split_authority(rpc))));
        }
    if (!found.empty()) return found;
    if (scheme != "hdfs")
        return {web.protocol + host + ":" +
                (authority.has_port ? std::string(authority.port) : web.port)};
    // Settings may describe another cluster than the one that the URL names.
    std::string stated = setting(settings, web.name + "." + host);
    if (stated.empty()) {
        stated = setting(settings, web.name);
        const Authority parts = split_authority(stated);
        const std::string cluster = authority_of(setting(settings, "fs.defaultFS"));
        if (parts.host != authority.host && split_authority(cluster).host != authority.host)
            stated.clear();
    }
    return {web.of(stated, host)};
}

/// "host:port" of each name node, and what the URL calls the cluster.
std::vector<std::string> service_names(const HdfsPlace& place, const std::string& authority) {
    std::vector<std::string> names = {authority};
    for (const std::string& node : place.name_nodes) names.push_back(authority_of(node));
    return names;
}

Result<std::string> find_token(const HdfsPlace& place, const std::string& authority,
                               const SourceOptions& options) {
    if (!options.token.empty()) return options.token;
    if (std::string token = cloud_setting({"HADOOP_TOKEN"}); !token.empty()) return token;
    const std::string file = cloud_setting({"HADOOP_TOKEN_FILE_LOCATION"});
    if (file.empty()) return std::string();
    Result<std::string> bytes = read_file(file, kTokenFileBytesMax);
    if (!bytes) return invalid_parameter("HADOOP_TOKEN_FILE_LOCATION: " + bytes.error().message);
    Result<std::string> token = hadoop_token(*bytes, service_names(place, authority));
    if (token) return token;
    return Error{token.error().code, "HADOOP_TOKEN_FILE_LOCATION names '" + file +
                                         "', which does not open '" + place.shown +
                                         "': " + token.error().message};
}

Result<std::string> find_identity(const HdfsPlace& place, const std::string& authority,
                                  const SourceOptions& options) {
    TUNE_TRY(token, find_token(place, authority, options));
    if (!token.empty()) return "delegation=" + percent_encode(token, false);
    std::string user(split_authority(authority).user);
    if (user.empty()) user = cloud_setting({"HADOOP_USER_NAME"});
    if (user.empty()) user = user_name();
    // Nobody's name: HDFS gives what everybody may read.
    return user.empty() ? std::string() : "user.name=" + percent_encode(user, false);
}

}  // namespace

Result<HdfsPlace> hdfs_place(const std::string& url, const SourceOptions& options) {
    HdfsPlace place{.shown = url};
    const std::string scheme = url_scheme(url);
    const std::size_t begin = scheme.size() + 1;  // behind the colon
    while (place.shown.size() > begin && place.shown.ends_with('/')) place.shown.pop_back();
    // Names of files may hold any character but ':', percent signs too.
    std::string rest = place.shown.substr(begin);
    std::string authority;
    if (rest.starts_with("//")) {
        const std::size_t slash = std::min(rest.find('/', 2), rest.size());
        authority = rest.substr(2, slash - 2);
        rest.erase(0, slash);
    }
    place.root = rest;
    const HadoopSettings settings = hadoop_settings();
    if (authority.empty()) authority = authority_of(setting(settings, "fs.defaultFS"));
    const Authority parts = split_authority(authority);
    const bool has_port_text =
        std::ranges::all_of(parts.port, [](char c) { return c >= '0' && c <= '9'; });
    if (parts.host.empty() && options.endpoint.empty())
        return invalid_parameter("'" + url +
                                 "' names no name node, and there is no fs.defaultFS in the "
                                 "core-site.xml of HADOOP_CONF_DIR");
    if (parts.flaw != Authority::Flaw::kNone || !has_port_text ||
        (parts.has_port && parts.port.empty()))
        return invalid_parameter("'" + url + "' does not name a host, or a host and a port");
    if (!options.endpoint.empty()) {
        place.name_nodes = {options.endpoint};
        while (place.name_nodes[0].ends_with('/')) place.name_nodes[0].pop_back();
    } else {
        place.name_nodes = find_name_nodes(scheme, parts, settings);
    }
    TUNE_TRY(identity, find_identity(place, authority, options));
    place.identity = std::move(identity);
    return place;
}

}  // namespace tune::loader
