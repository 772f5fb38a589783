#pragma once
// Stored values as MLflow 3.17.2 writes them: what is unset or an empty list is left out.

#include <string>
#include <vector>

#include "tracker/api/http/json_writer.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/store/store.h"

namespace tune::tracker {

// Each appends one JSON object.
void write_experiment(JsonWriter& out, const Experiment& experiment);
/// `with_run_id`: as the bulk routes answer.
void write_metric(JsonWriter& out, const Metric& metric);
void write_logged_model(JsonWriter& out, const LoggedModel& model);

// Whole answers.
[[nodiscard]] std::string experiments_response(const Page<Experiment>& page);
[[nodiscard]] std::string metrics_response(const Page<Metric>& page);
[[nodiscard]] std::string histories_response(const std::vector<RunHistory>& histories,
                                             bool always_list);
[[nodiscard]] std::string logged_models_response(const Page<LoggedModel>& page);
[[nodiscard]] std::string datasets_response(const std::vector<DatasetSummary>& datasets);
/// {"root_uri", "files": [{path, is_dir, file_size}]}; names are prefixed with `folder`. An empty
/// `root_uri` is left out.
[[nodiscard]] std::string files_response(std::string_view root_uri, std::string_view folder,
                                         const std::vector<ArtifactEntry>& entries);

/// "name": [{key, value}, ...], left out when there are none. `Pair`: Tag or Param.
template <class Pair>
void write_pairs(JsonWriter& out, std::string_view name, const std::vector<Pair>& pairs) {
    if (pairs.empty()) return;
    out.key(name).begin_array();
    for (const Pair& pair : pairs)
        out.begin_object().field("key", pair.key).field("value", pair.value).end_object();
    out.end_array();
}

/// {"name": <object>}
template <class Value>
[[nodiscard]] std::string object_response(std::string_view name, const Value& value,
                                          void (*write)(JsonWriter&, const Value&)) {
    JsonWriter out;
    out.begin_object().key(name);
    write(out, value);
    out.end_object();
    return out.take();
}

}  // namespace tune::tracker
