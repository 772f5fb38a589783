#include "loader/source/hdfs/hdfs_refusal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/uri.h"
#include "loader/source/cloud/cloud_text.h"

namespace tune::loader {
namespace {

constexpr std::size_t kMessageBytesMax = 500;

struct Meaning {
    std::string_view exception;
    Code code;
};
/// What stays as it is however often it is asked for. All others may pass: name nodes that change
/// places, safe mode after a start, blocks whose data nodes have not reported yet.
constexpr Meaning kFinal[] = {
    {"FileNotFoundException", Code::kResourceDoesNotExist},
    {"AccessControlException", Code::kPermissionDenied},
    {"AuthorizationException", Code::kPermissionDenied},
    {"SecurityException", Code::kUnauthenticated},
    {"AuthenticationException", Code::kUnauthenticated},
    {"InvalidToken", Code::kUnauthenticated},
    {"FileAlreadyExistsException", Code::kResourceAlreadyExists},
    {"IllegalArgumentException", Code::kInvalidParameterValue},
    {"InvalidPathException", Code::kInvalidParameterValue},
    {"ParentNotDirectoryException", Code::kInvalidParameterValue},
    {"UnsupportedOperationException", Code::kNotImplemented},
    {"DSQuotaExceededException", Code::kResourceExhausted},
    {"NSQuotaExceededException", Code::kResourceExhausted},
};

/// Of an answer that is none of WebHDFS.
AttemptFailure explain_other(AttemptFailure failure, const HttpRequest& request,
                             const HttpResponse& response) {
    const std::string asked = split_uri(request.url).authority;
    failure.error.message += " (asked " + asked + ")";
    if (response.status == 401)
        failure.error.message +=
            "; of a cluster with Kerberos, fetch a token with hdfs fetchdt --webservice URL FILE "
            "and name the file in HADOOP_TOKEN_FILE_LOCATION";
    if (response.status != 404) return failure;
    // Not of the file: a port of another protocol, or a server that is no name node.
    failure.error.code = Code::kBadRequest;
    failure.error.message = "'" + request.name + "' cannot be found: WebHDFS does not answer at " +
                            asked +
                            " (HTTP status 404); it is the name node's web port, 9870 unless "
                            "dfs.namenode.http-address says otherwise";
    return failure;
}

}  // namespace

HdfsRefusal hdfs_refusal(const HttpResponse& response) {
    const Result<Json> json = parse_json(response.refusal);
    if (!json || !json->is_object()) return {};
    const auto remote = json->find("RemoteException");
    if (remote == json->end()) return {};
    HdfsRefusal refusal{text_member(*remote, "exception"), text_member(*remote, "message")};
    refusal.exception.erase(0, refusal.exception.rfind('.') + 1);
    refusal.message.resize(
        std::min({refusal.message.find('\n'), refusal.message.size(), kMessageBytesMax}));
    return refusal;
}

AttemptFailure explain_refusal(AttemptFailure failure, const HttpRequest& request,
                               const HttpResponse& response) {
    const HdfsRefusal refusal = hdfs_refusal(response);
    if (refusal.exception.empty()) return explain_other(std::move(failure), request, response);
    const auto* const known = std::ranges::find(kFinal, refusal.exception, &Meaning::exception);
    failure.may_pass = known == std::end(kFinal);
    failure.error.code = failure.may_pass ? Code::kTemporarilyUnavailable : known->code;
    // HDFS has no permission for it, in its words, where a folder of the path is a file.
    if (request.method.empty() && refusal.message.find("is not a directory") != std::string::npos)
        failure.error.code = Code::kResourceDoesNotExist;
    const bool is_missing = failure.error.code == Code::kResourceDoesNotExist;
    failure.error.message = "'" + request.name + "' " +
                            (is_missing               ? "does not exist"
                             : request.method.empty() ? "cannot be read"
                                                      : "cannot be written") +
                            ": " + refusal.message + " (" + refusal.exception + " of HDFS)";
    return failure;
}

}  // namespace tune::loader
