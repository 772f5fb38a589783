#include "tracker/api/mlflow/withheld.h"

namespace tune::tracker {

void withhold(ModelVersion& version, const std::optional<Viewer>& viewer) {
    if (!viewer || !viewer->is_denied(ResourceType::kRun)) return;
    version.run_id.reset();
    version.run_link.reset();
}

void withhold(RegisteredModel& model, const std::optional<Viewer>& viewer) {
    if (!viewer) return;
    const bool hides_versions =
        viewer->is_denied(is_prompt(model.tags) ? ResourceType::kPromptVersion
                                                : ResourceType::kRegisteredModelVersion);
    if (hides_versions) model.latest_versions.clear();
    withhold_each(model.latest_versions, viewer);
}

void withhold(LoggedModel& model, const std::optional<Viewer>& viewer) {
    if (!viewer || !viewer->is_denied(ResourceType::kRun)) return;
    model.source_run_id.clear();
    for (Metric& metric : model.metrics) metric.run_id.clear();
}

Result<void> check_filter(search::Subject subject, std::string_view filter,
                          const std::optional<Viewer>& viewer) {
    if (!viewer || !viewer->is_denied(ResourceType::kRun)) return {};
    TUNE_TRY(condition, search::parse_filter(subject, filter));
    bool names_runs = false;
    search::for_each_clause(condition, [&](const search::Clause& clause) {
        names_runs |= clause.entity == search::Entity::kAttribute &&
                      (clause.key == "run_id" || clause.key == "source_run_id");
    });
    if (names_runs) return Error{Code::kPermissionDenied, "Permission denied"};
    return {};
}

void withhold(RunFields& fields, const std::optional<Viewer>& viewer) {
    if (viewer && viewer->is_denied(ResourceType::kLoggedModel)) fields.model_links = false;
}

}  // namespace tune::tracker
