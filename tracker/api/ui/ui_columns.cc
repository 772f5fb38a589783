// One column per key instead of one object per run: names are written once, and a run without a
// value costs a null. Memory is bounded by what is written, since values become text at once.

#include "tracker/api/ui/ui_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/number_text.h"
#include "base/text/utf8.h"

namespace tune::tracker {
namespace {

bool is_plain(char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

std::string json_string(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 2);
    append_json_string(out, text);
    return out;
}

std::string json_integer(std::int64_t value) {
    return std::to_string(value);
}

std::string json_metric(double value) {
    std::string out;
    append_json_number(out, value, "\"NaN\"");
    return out;
}

/// MLflow's own tags that no table shows: JSON documents and what attributes repeat.
bool is_shown(std::string_view tag) {
    return tag != "mlflow.log-model.history" && tag != "mlflow.runName" && tag != "mlflow.user" &&
           tag != "mlflow.loggedArtifacts" && tag != "mlflow.autologging";
}

template <class T>
void append_list(std::string& out, const std::vector<T>& texts) {
    out += '[';
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) out += ',';
        if constexpr (std::is_integral_v<T>) {
            out += std::to_string(texts[i]);
        } else {
            out += texts[i];
        }
    }
    out += ']';
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    if (!std::all_of(text.begin(), text.end(), is_plain)) {
        out += to_text(Json(std::string(text)));
        return;
    }
    out += '"';
    out += text;
    out += '"';
}

void append_json_number(std::string& out, double value, std::string_view if_nan) {
    if (!std::isfinite(value)) {
        out += if_nan;
        return;
    }
    append_shortest(out, value);
}

void RunColumns::put(Columns& columns, std::string_view key, std::string json) {
    auto found = columns.find(key);
    if (found == columns.end()) found = columns.emplace(std::string(key), Column{}).first;
    Column& column = found->second;
    column.rows.push_back(static_cast<std::uint32_t>(run_ids_.size() - 1));
    column.values.push_back(std::move(json));
}

void RunColumns::add(const Run& run) {
    run_ids_.push_back(json_string(run.info.run_id));
    names_.push_back(json_string(run.info.run_name));
    users_.push_back(json_string(run.info.user_id));
    statuses_.push_back(json_integer(static_cast<int>(run.info.status)));
    starts_.push_back(json_integer(run.info.start_time_ms));
    ends_.push_back(run.info.end_time_ms ? json_integer(*run.info.end_time_ms) : "null");
    uris_.push_back(json_string(run.info.artifact_uri));
    if (run.info.lifecycle_stage == LifecycleStage::kDeleted)
        deleted_.push_back(std::to_string(run_ids_.size() - 1));
    for (const Param& param : run.params) put(params_, param.key, json_string(param.value));
    for (const Metric& metric : run.metrics) put(metrics_, metric.key, json_metric(metric.value));
    for (const Tag& tag : run.tags)
        if (is_shown(tag.key))
            put(tags_, tag.key, json_string(cut_to_bytes(tag.value, kUiTagBytesMax)));
}

void RunColumns::write_columns(std::string& out, const Columns& columns) const {
    out += '{';
    const char* comma = "";
    for (const auto& [key, column] : columns) {
        out += comma;
        comma = ",";
        append_json_string(out, key);
        out += ':';
        if (column.rows.size() * 2 < run_ids_.size()) {
            out += "{\"rows\":";
            append_list(out, column.rows);
            out += ",\"values\":";
            append_list(out, column.values);
            out += '}';
            continue;
        }
        std::vector<std::string_view> dense(run_ids_.size(), "null");
        for (std::size_t i = 0; i < column.rows.size(); ++i)
            dense[column.rows[i]] = column.values[i];
        append_list(out, dense);
    }
    out += '}';
}

std::string RunColumns::to_json_fields() const {
    std::string out = "\"count\":" + std::to_string(run_ids_.size()) + ",\"attributes\":{";
    const auto field = [&](std::string_view name, const std::vector<std::string>& values) {
        append_json_string(out, name);
        out += ':';
        append_list(out, values);
        out += ',';
    };
    field("run_id", run_ids_);
    field("name", names_);
    field("user", users_);
    field("status", statuses_);
    field("start_ms", starts_);
    field("end_ms", ends_);
    field("artifact_uri", uris_);
    out += "\"deleted\":";
    append_list(out, deleted_);
    out += "},\"params\":";
    write_columns(out, params_);
    out += ",\"metrics\":";
    write_columns(out, metrics_);
    out += ",\"tags\":";
    write_columns(out, tags_);
    return out;
}

}  // namespace tune::tracker
