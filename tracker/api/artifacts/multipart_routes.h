#pragma once
// Files in parts: MLflow's multipart calls with part URLs of our own, and the calls by which a
// client that broke off resumes.

#include "tracker/api/app.h"

namespace tune::tracker {

/// mlflow-artifacts/mpu/{create,complete,abort}, mlflow-artifacts/presigned, tune/uploads.
/// `static_prefix` stands in the URLs that are given out.
void add_multipart_routes(Router& router, TrackingParts parts, const std::string& static_prefix);

}  // namespace tune::tracker
