#include "tuner/cli/transfer/server_job.h"

#include <nlohmann/json.hpp>

namespace tune::cli {

Result<Json> run_server_job(Backend& backend, const char* path, const Json& body,
                            const std::function<void(const std::string& phase, std::int64_t done,
                                                     std::int64_t total)>& show,
                            const std::function<bool()>& is_cancelled) {
    TUNE_TRY(answer, backend.post(path, body));
    while (answer["job"].value("is_running", false)) {
        if (is_cancelled())
            return Error{Code::kCancelled, "interrupted; the job continues on the server"};
        const Json& job = answer["job"];
        show(job.value("phase", ""), job.value("done", std::int64_t{0}),
             job.value("total", std::int64_t{0}));
        TUNE_TRY(next, backend.get("/api/2.0/tune/job?after=" +
                                   std::to_string(job.value("version", std::int64_t{0}))));
        answer = std::move(next);
    }
    const Json& job = answer["job"];
    if (job.contains("error"))
        return Error{code_from_name(job["error"].value("error_code", "")),
                     job["error"].value("message", "")};
    return job.value("result", Json::object());
}

}  // namespace tune::cli
