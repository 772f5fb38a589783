#include "tuner/cli/study_reading.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tuner/cli/terminal/study_text.h"

namespace tune::cli {
namespace {

constexpr std::size_t kNamesShown = 10;

}  // namespace

Result<std::string> named_or_only_study(Backend& backend, const std::string& name) {
    if (!name.empty()) return name;
    TUNE_TRY(answer, backend.get("/api/2.0/tune/studies"));
    const Json& studies = answer["studies"];
    if (studies.size() == 1) return text_of(studies[0], "name");
    if (studies.empty())
        return Error{Code::kInvalidParameterValue, "there are no studies in " + backend.where()};
    std::string names;
    for (std::size_t i = 0; i < studies.size() && i < kNamesShown; ++i)
        names += (i == 0 ? "" : ", ") + printable(text_of(studies[i], "name"));
    if (studies.size() > kNamesShown) names += ", ...";
    return Error{Code::kInvalidParameterValue, "there are " + std::to_string(studies.size()) +
                                                   " studies; name one of them: " + names};
}

Result<Json> read_trials(Backend& backend, const std::string& study, std::string_view fields) {
    Json trials = Json::array();
    std::string token;
    // Curves are long: fewer trials an answer, so that it stays far below the client's limit.
    const std::string query = fields.empty()
                                  ? "/trials?max_results=10000"
                                  : "/trials?max_results=1000&fields=" + std::string(fields);
    do {
        TUNE_TRY(page, backend.get(study_path(study, query + "&page_token=" + token)));
        for (Json& trial : page["trials"]) trials.push_back(std::move(trial));
        token = text_of(page, "next_page_token");
    } while (!token.empty());
    return trials;
}

Result<tuner::StudyData> read_study_data(Backend& backend, const std::string& study,
                                         bool with_curves) {
    TUNE_TRY(head, backend.get(study_path(study)));
    TUNE_TRY(trials, read_trials(backend, study, with_curves ? "intermediate" : ""));
    return tuner::study_data(head, trials);
}

Result<void> write_whole_file(const std::string& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (file) return {};
    return Error{Code::kPermissionDenied, "cannot write " + path + ": " + std::strerror(errno)};
}

}  // namespace tune::cli
