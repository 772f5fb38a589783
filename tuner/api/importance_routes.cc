// The importance of parameters over REST.

#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/api/live_importance.h"
#include "tuner/api/routes.h"

namespace tune::tuner {

void add_importance_routes(tracker::Router& router, TuningParts parts) {
    using tracker::Request;
    using tracker::Responder;
    auto live = std::make_shared<LiveImportance>();
    router.add_api(
        2,
        {tracker::Method::kGet,
         {tracker::Access::kRead, tracker::Subject::kStudy},
         "/tune/studies/{name}/importance",
         tracker::Body::kNone,
         "how much each parameter matters so far",
         [parts, live](const std::shared_ptr<Request>& request, const Responder& respond) {
             const auto read = [parts, live, request, respond] {
                 const Result<Json> answer =
                     live->read(parts.studies, request->parameter("name"),
                                std::string(request->query_value("metric").value_or("")));
                 respond(answer ? tracker::json_response(*answer)
                                : tracker::error_response(answer.error()));
             };
             if (!parts.store.post_read(read))
                 respond(tracker::error_response(
                     {Code::kRequestLimitExceeded, "too many reads wait; try again in a moment"}));
         }});
}

}  // namespace tune::tuner
