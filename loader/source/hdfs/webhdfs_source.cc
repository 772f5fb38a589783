// The name node knows names, sizes and which data node has which block: it is asked for these, and
// for the address of a data node that gives or takes a file's bytes. Three things differ from other
// services:
//
// - Of several name nodes one is active. The others refuse by a StandbyException, and one that is
//   gone by silence; the next one is asked within the same attempt.
// - A block lies on several data nodes. One that fails is named to the name node with the next
//   attempt, which then chooses another. It is named as the name node itself does, by an address
//   that the redirect does not tell: which node it was is looked up when it has failed.
// - Reading has no condition by version. What a file was is therefore asked after its bytes came: a
//   file that is the same then was the same before, since times of change do not return.

#include "loader/source/hdfs/webhdfs_source.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/id.h"
#include "base/text/percent.h"
#include "base/text/text.h"
#include "base/text/uri.h"
#include "loader/source/cloud/cloud_text.h"
#include "loader/source/hdfs/hdfs_refusal.h"

namespace tune::loader {
namespace {

constexpr std::size_t kJsonBytesMax = std::size_t{64} << 20;

/// Of a FileStatus.
ObjectInfo object_of(const Json& status, std::string path) {
    const std::uint64_t bytes = number_member(status, "length");
    return {std::move(path), bytes,
            std::to_string(number_member(status, "fileId")) + "-" +
                std::to_string(number_member(status, "modificationTime")) + "-" +
                std::to_string(bytes)};
}

/// The object `name` of `json`; null when there is none.
const Json* member_object(const Json& json, const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_object() ? &*found : nullptr;
}

AttemptFailure unexpected(const std::string& name, const std::string& what) {
    return {data_loss("'" + name + "': the name node's answer " + what)};
}

const Json& member_array(const Json& json, const char* name) {
    static const Json kNone = Json::array();
    const auto found = json.find(name);
    return found != json.end() && found->is_array() ? *found : kNone;
}

/// By what the name node knows the data node that answers at `url`, out of its LocatedBlocks: there
/// may be several on one host.
std::vector<std::string> node_names(const Json& located, std::string_view url) {
    const std::string authority = split_uri(url).authority;
    std::vector<std::string> names;
    for (const Json& block : member_array(located, "locatedBlocks"))
        for (const Json& node : member_array(block, "locations"))
            for (const char* const port : {"infoPort", "infoSecurePort"})
                if (equals_ignoring_case(text_member(node, "hostName") + ":" +
                                             std::to_string(number_member(node, port)),
                                         authority))
                    names.push_back(text_member(node, "ipAddr") + ":" +
                                    std::to_string(number_member(node, "xferPort")));
    return names;
}

bool is_standby(const HttpResponse& response) {
    return response.status >= 400 && hdfs_refusal(response).exception == "StandbyException";
}

}  // namespace

WebHdfsSource::WebHdfsSource(HdfsPlace place, const SourceOptions& options)
    : place_(std::move(place)), client_(options) {}

Result<std::shared_ptr<const WebHdfsSource>> WebHdfsSource::open(const std::string& url,
                                                                 const SourceOptions& options) {
    TUNE_TRY(place, hdfs_place(url, options));
    return std::shared_ptr<const WebHdfsSource>(new WebHdfsSource(std::move(place), options));
}

Result<std::string> WebHdfsSource::file_path(std::string_view path) const {
    if (!is_object_path(path))
        return invalid_parameter("the path '" + std::string(path) + "' leads out of '" +
                                 place_.shown + "'");
    return path.empty() ? place_.root : place_.root + "/" + std::string(path);
}

std::string WebHdfsSource::shown_path(std::string_view path) const {
    return place_.shown + (path.empty() ? "" : "/") + std::string(path);
}

WebHdfsSource::Failure WebHdfsSource::ask(HttpRequest request, const Call& call,
                                          HttpResponse& response) const {
    const std::size_t count = place_.name_nodes.size();
    const std::size_t first = active_.load();
    Failure failure;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t node = (first + i) % count;
        request.url = place_.name_nodes[node] + "/webhdfs/v1" +
                      (call.path.empty() ? "/" : percent_encode(call.path)) + "?" + call.operation +
                      (place_.identity.empty() ? "" : "&") + place_.identity;
        failure = client_.send(request, response);
        if (failure) failure = explain_refusal(*std::move(failure), request, response);
        const bool is_silent = failure && response.status == 0 && failure->may_pass;
        if (is_silent || is_standby(response)) continue;
        active_ = node;
        return failure;
    }
    return failure;
}

WebHdfsSource::Failure WebHdfsSource::ask_for_json(HttpRequest request, const Call& call,
                                                   Json& answer) const {
    std::string text;
    request.accept = [&text](const HttpResponse&) {
        text.clear();  // of a name node that was asked before
        return true;
    };
    request.body = [&text](std::span<const std::byte> piece) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return text.size() <= kJsonBytesMax;
    };
    HttpResponse response;
    if (Failure failure = ask(request, call, response)) return failure;
    if (text.size() > kJsonBytesMax)
        return AttemptFailure{
            {Code::kResourceExhausted, "'" + request.name + "' gave an answer of more than " +
                                           std::to_string(kJsonBytesMax) + " bytes"}};
    answer = Json::object();
    if (text.empty()) return {};
    Result<Json> json = parse_json(text);
    if (!json || !json->is_object()) return unexpected(request.name, "is none of WebHDFS");
    answer = *std::move(json);
    return {};
}

Result<Json> WebHdfsSource::json_of(const HttpRequest& request, const Call& call) const {
    Json answer;
    TUNE_TRY_VOID(
        with_retries(client_.options(), [&] { return ask_for_json(request, call, answer); }));
    return answer;
}

Result<ObjectInfo> WebHdfsSource::stat(std::string_view path) const {
    TUNE_TRY(file, file_path(path));
    const std::string name = shown_path(path);
    TUNE_TRY(json, json_of({.name = name}, {file, "op=GETFILESTATUS"}));
    const Json* const status = member_object(json, "FileStatus");
    if (!status) return unexpected(name, "does not describe a file").error;
    if (text_member(*status, "type") == "DIRECTORY")
        return Error{Code::kResourceDoesNotExist, "'" + name + "' is a folder, not a file"};
    return object_of(*status, std::string(path));
}

Result<std::vector<ObjectInfo>> WebHdfsSource::list(std::string_view folder) const {
    std::vector<ObjectInfo> objects;
    std::vector<std::string> folders = {std::string(folder)};
    while (!folders.empty()) {
        const std::string path = std::move(folders.back());
        folders.pop_back();
        TUNE_TRY_VOID(list_folder(path, objects, folders));
    }
    std::ranges::sort(objects, {}, &ObjectInfo::path);
    return objects;
}

Result<void> WebHdfsSource::list_folder(const std::string& folder, std::vector<ObjectInfo>& objects,
                                        std::vector<std::string>& folders) const {
    TUNE_TRY(file, file_path(folder));
    const std::string name = shown_path(folder);
    std::string last;
    for (;;) {
        const std::string from = last.empty() ? "" : "&startAfter=" + percent_encode(last, false);
        TUNE_TRY(json, json_of({.name = name}, {file, "op=LISTSTATUS_BATCH" + from}));
        const Json* const listing = member_object(json, "DirectoryListing");
        const Json* const part = listing ? member_object(*listing, "partialListing") : nullptr;
        const Json* const statuses = part ? member_object(*part, "FileStatuses") : nullptr;
        if (!statuses) return unexpected(name, "holds no list of files").error;
        const Json& entries = member_array(*statuses, "FileStatus");
        for (const Json& status : entries) {
            last = text_member(status, "pathSuffix");
            std::string path = last;  // a file is a list of itself, without a name
            if (last.empty()) {
                path = folder;
            } else if (!folder.empty()) {
                path = folder + "/" + last;
            }
            if (!is_object_path(path) || last.find('/') != std::string::npos)
                return unexpected(name, "lists the name '" + last + "'").error;
            const std::string type = text_member(status, "type");
            if (type == "FILE") objects.push_back(object_of(status, std::move(path)));
            if (type == "DIRECTORY") folders.push_back(std::move(path));
        }
        if (last.empty() || entries.empty() || number_member(*listing, "remainingEntries") == 0)
            return {};
    }
}

WebHdfsSource::Failure WebHdfsSource::transfer(const HttpRequest& request, const Call& call) const {
    HttpResponse response;
    HttpRequest first = request;
    first.follows_redirects = false;
    first.sent = {};
    std::string excluded = failed_nodes_.parameter();
    Failure failure = ask(first, {call.path, call.operation + excluded}, response);
    if (failure && !excluded.empty() && hdfs_refusal(response).exception == "IOException") {
        // Nobody else has the block: those that failed may be back.
        failed_nodes_.clear();
        failure = ask(first, call, response);
    }
    if (failure) return failure;
    HttpRequest second = request;
    second.url = response.header("location");
    const bool is_sent = !request.method.empty();
    // A gateway (HttpFS) gives bytes without sending readers elsewhere.
    if (second.url.empty() && !is_sent) return {};
    if (second.url.empty()) return unexpected(request.name, "names no data node");
    failure = client_.send(second, response);
    if (!failure) return {};
    if (response.status == 0 || response.status >= 500) leave_out(second.url, call, request.name);
    return explain_refusal(*std::move(failure), second, response);
}

void WebHdfsSource::leave_out(const std::string& node_url, const Call& call,
                              const std::string& name) const {
    constexpr std::string_view kOpen = "op=OPEN";
    std::vector<std::string> names;
    if (call.operation.starts_with(kOpen)) {
        const Call where{call.path, "op=GET_BLOCK_LOCATIONS" + call.operation.substr(kOpen.size())};
        Json answer;
        if (!ask_for_json({.name = name}, where, answer))
            if (const Json* const located = member_object(answer, "LocatedBlocks"))
                names = node_names(*located, node_url);
    }
    failed_nodes_.add(names.empty() ? host_names(node_url) : names);
}

WebHdfsSource::Failure WebHdfsSource::check_version(const ObjectInfo& object,
                                                    const Call& call) const {
    if (object.version.empty()) return {};
    const std::string name = shown_path(object.path);
    Json answer;
    if (Failure failure = ask_for_json({.name = name}, {call.path, "op=GETFILESTATUS"}, answer))
        return failure;
    const Json* const status = member_object(answer, "FileStatus");
    if (status && object_of(*status, object.path).version == object.version) return {};
    return AttemptFailure{data_loss("'" + name + "' was changed while it was read")};
}

Result<void> WebHdfsSource::read(const ObjectInfo& object, std::uint64_t offset,
                                 std::span<std::byte> bytes) const {
    if (bytes.empty()) return {};
    TUNE_TRY(file, file_path(object.path));
    const std::string name = shown_path(object.path);
    const Call call{file, "op=OPEN&offset=" + std::to_string(offset) +
                              "&length=" + std::to_string(bytes.size())};
    return with_retries(client_.options(), [&]() -> Failure {
        std::size_t filled = 0;
        bool is_longer = false;
        HttpRequest request{.name = name};
        request.accept = [&filled](const HttpResponse&) {
            filled = 0;
            return true;
        };
        request.body = [&](std::span<const std::byte> piece) {
            is_longer = piece.size() > bytes.size() - filled;
            if (is_longer) return false;
            std::memcpy(bytes.data() + filled, piece.data(), piece.size());
            filled += piece.size();
            return true;
        };
        Failure failure = transfer(request, call);
        if (failure && !failure->may_pass) return failure;
        const Failure changed = check_version(object, call);
        if (changed && (!failure || changed->error.code == Code::kDataLoss)) return changed;
        if (failure) return failure;
        if (is_longer)
            return AttemptFailure{
                data_loss("'" + name + "' gave more bytes than it was asked for")};
        if (filled == bytes.size()) return {};
        return AttemptFailure{
            data_loss("'" + name + "' ends at byte " + std::to_string(offset + filled) + ", " +
                      std::to_string(bytes.size() - filled) + " bytes too early")};
    });
}

Result<void> WebHdfsSource::write(std::string_view path, std::span<const std::byte> bytes) const {
    TUNE_TRY(file, file_path(path));
    // Under a name of its own, hidden from readers: a file of HDFS is there while it grows.
    const std::size_t base = file.rfind('/') + 1;
    const std::string part = file.substr(0, base) + "." + file.substr(base) + "." + random_hex(8);
    const HttpRequest request{.name = shown_path(path),
                              .headers = {"Content-Type: application/octet-stream"},
                              .method = "PUT",
                              .sent = bytes};
    const Call create{part, "op=CREATE&overwrite=true"};
    Result<void> done = with_retries(client_.options(), [&] { return transfer(request, create); });
    if (done) done = put_in_place(part, file, request.name);
    if (done) return {};
    // As far as that goes: the error above is the one that counts.
    HttpResponse ignored;
    static_cast<void>(ask({.name = part, .method = "DELETE"}, {part, "op=DELETE"}, ignored));
    return done;
}

Result<void> WebHdfsSource::put_in_place(const std::string& part, const std::string& path,
                                         const std::string& name) const {
    const Call rename{part,
                      "op=RENAME&renameoptions=OVERWRITE&destination=" + percent_encode(path)};
    bool is_first = true;
    return with_retries(client_.options(), [&]() -> Failure {
        Json answer;
        Failure failure = ask_for_json({.name = name, .method = "PUT"}, rename, answer);
        const bool may_be_done = !std::exchange(is_first, false);
        // The answer to an earlier attempt was lost on its way.
        if (failure && may_be_done && failure->error.code == Code::kResourceDoesNotExist) return {};
        const auto done = answer.find("boolean");  // of a gateway, which knows no such option
        if (failure || done == answer.end() || *done == true) return failure;
        return AttemptFailure{{Code::kResourceAlreadyExists,
                               "'" + name + "' is there, and this service cannot replace it"}};
    });
}

}  // namespace tune::loader
