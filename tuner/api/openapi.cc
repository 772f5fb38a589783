#include "tracker/api/ops/openapi.h"

#include "tuner/api/routes.h"

namespace tune::tuner {
namespace {

const tracker::OpenApiPart kTuningOpenApi =
#include "openapi.inc"
    ;

}  // namespace

const tracker::OpenApiPart& tuning_openapi() {
    return kTuningOpenApi;
}

}  // namespace tune::tuner
