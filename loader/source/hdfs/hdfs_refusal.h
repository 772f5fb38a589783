#pragma once
// What HDFS means when it refuses: exceptions of Java as JSON.

#include <string>

#include "loader/source/http/http_request.h"

namespace tune::loader {

/// {"RemoteException": {"exception": ..., "message": ...}} of an answer.
struct HdfsRefusal {
    std::string exception = {};  ///< without its package; empty: the answer holds none
    std::string message = {};    ///< its first line
};
[[nodiscard]] HdfsRefusal hdfs_refusal(const HttpResponse& response);

/// `failure` of a request for `name` in the words of the service that refused it. Where it is none
/// of HDFS, says which address was asked.
[[nodiscard]] AttemptFailure explain_refusal(AttemptFailure failure, const HttpRequest& request,
                                             const HttpResponse& response);

}  // namespace tune::loader
