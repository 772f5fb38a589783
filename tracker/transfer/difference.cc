// Names the first field that differs between what a source reports and what the store holds. Lists
// are compared without regard to order where MLflow gives none; times and numbers exactly.

#include "tracker/transfer/difference.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

/// Compares field by field and keeps the name of the first that differs.
class Comparison {
public:
    template <class Value>
    Comparison& field(const char* name, const Value& a, const Value& b) {
        if (found_.empty() && !(a == b)) found_ = name;
        return *this;
    }
    /// Keys and values in any order; `kind`: "param", "tag".
    template <class Item>
    Comparison& pairs(const std::string& kind, const std::vector<Item>& a,
                      const std::vector<Item>& b) {
        if (!found_.empty()) return *this;
        std::map<std::string_view, std::pair<const Item*, const Item*>> by_key;
        for (const Item& item : a) by_key[item.key].first = &item;
        for (const Item& item : b) by_key[item.key].second = &item;
        for (const auto& [key, both] : by_key) {
            const auto& [one, other] = both;
            if (one != nullptr && other != nullptr && one->value == other->value) continue;
            found_ = kind + " '" + shown(key) + "'";
            return *this;
        }
        return *this;
    }
    Comparison& inside(const std::string& what, const std::string& field) {
        if (found_.empty() && !field.empty()) found_ = what + field;
        return *this;
    }
    [[nodiscard]] std::string take() { return std::move(found_); }

private:
    std::string found_;
};

std::string dataset_difference(const DatasetInput& a, const DatasetInput& b) {
    Comparison compare;
    compare.field("name", a.dataset.name, b.dataset.name);
    compare.field("digest", a.dataset.digest, b.dataset.digest);
    compare.field("source_type", a.dataset.source_type, b.dataset.source_type);
    compare.field("source", a.dataset.source, b.dataset.source);
    compare.field("schema", a.dataset.schema, b.dataset.schema);
    compare.field("profile", a.dataset.profile, b.dataset.profile);
    compare.pairs("tag", a.tags, b.tags);
    return compare.take();
}

/// In one order, whatever the order of the lists.
std::vector<DatasetInput> sorted(std::vector<DatasetInput> inputs) {
    std::sort(inputs.begin(), inputs.end(), [](const DatasetInput& a, const DatasetInput& b) {
        return std::tie(a.dataset.name, a.dataset.digest) <
               std::tie(b.dataset.name, b.dataset.digest);
    });
    return inputs;
}

std::vector<std::pair<std::string, std::int64_t>> links(const Run& run) {
    std::vector<std::pair<std::string, std::int64_t>> all;
    for (const ModelInput& model : run.model_inputs) all.emplace_back("in " + model.model_id, 0);
    for (const ModelOutput& model : run.model_outputs)
        all.emplace_back("out " + model.model_id, model.step);
    std::sort(all.begin(), all.end());
    return all;
}

std::string version_difference(const ModelVersion& a, const ModelVersion& b) {
    Comparison compare;
    compare.field("creation_timestamp", a.creation_time_ms, b.creation_time_ms);
    compare.field("last_updated_timestamp", a.last_updated_time_ms, b.last_updated_time_ms);
    compare.field("description", a.description, b.description);
    compare.field("user_id", a.user_id, b.user_id).field("current_stage", a.stage, b.stage);
    compare.field("source", a.source, b.source);
    compare.field("storage_location", a.storage_location, b.storage_location);
    compare.field("run_id", a.run_id, b.run_id).field("run_link", a.run_link, b.run_link);
    compare.field("status", a.status, b.status);
    compare.field("status_message", a.status_message, b.status_message);
    compare.pairs("tag", a.tags, b.tags);
    return compare.take();
}

}  // namespace

std::string first_difference(const Experiment& a, const Experiment& b) {
    Comparison compare;
    compare.field("name", a.name, b.name);
    compare.field("artifact_location", a.artifact_location, b.artifact_location);
    compare.field("lifecycle_stage", a.lifecycle_stage, b.lifecycle_stage);
    compare.field("creation_time", a.creation_time_ms, b.creation_time_ms);
    compare.field("last_update_time", a.last_update_time_ms, b.last_update_time_ms);
    compare.pairs("tag", a.tags, b.tags);
    return compare.take();
}

std::string first_difference(const SourceRun& a, const RunDigest& a_points, const SourceRun& b,
                             const RunDigest& b_points) {
    const RunInfo& one = a.run.info;
    const RunInfo& other = b.run.info;
    Comparison compare;
    compare.field("run_id", one.run_id, other.run_id);
    compare.field("run_name", one.run_name, other.run_name);
    compare.field("user_id", one.user_id, other.user_id).field("status", one.status, other.status);
    compare.field("start_time", one.start_time_ms, other.start_time_ms);
    compare.field("end_time", one.end_time_ms, other.end_time_ms);
    compare.field("lifecycle_stage", one.lifecycle_stage, other.lifecycle_stage);
    compare.field("deleted_time", a.deleted_time_ms, b.deleted_time_ms);
    compare.pairs("param", a.run.params, b.run.params).pairs("tag", a.run.tags, b.run.tags);
    const std::vector<DatasetInput> inputs = sorted(a.run.dataset_inputs);
    const std::vector<DatasetInput> others = sorted(b.run.dataset_inputs);
    compare.field("the number of its dataset inputs", inputs.size(), others.size());
    for (std::size_t i = 0; i < std::min(inputs.size(), others.size()); ++i)
        compare.inside("dataset '" + shown(inputs[i].dataset.name) + "', ",
                       dataset_difference(inputs[i], others[i]));
    compare.field("its model inputs and outputs", links(a.run), links(b.run));
    const std::string key = a_points.first_difference(b_points);
    compare.inside("the history of metric '", key.empty() ? key : shown(key) + "'");
    return compare.take();
}

std::string first_difference(const SourceModel& a, const SourceModel& b) {
    const LoggedModel& one = a.model;
    const LoggedModel& other = b.model;
    Comparison compare;
    compare.field("model_id", one.model_id, other.model_id).field("name", one.name, other.name);
    compare.field("status", one.status, other.status);
    compare.field("status_message", one.status_message, other.status_message);
    compare.field("model_type", one.model_type, other.model_type);
    compare.field("source_run_id", one.source_run_id, other.source_run_id);
    compare.field("creation_timestamp_ms", one.creation_time_ms, other.creation_time_ms);
    compare.field("last_updated_timestamp_ms", one.last_updated_time_ms,
                  other.last_updated_time_ms);
    compare.field("lifecycle_stage", a.life, b.life);
    compare.pairs("param", one.params, other.params).pairs("tag", one.tags, other.tags);
    return compare.take();
}

std::string first_difference(const SourceRegisteredModel& a, const SourceRegisteredModel& b) {
    const RegisteredModel& one = a.model;
    const RegisteredModel& other = b.model;
    Comparison compare;
    compare.field("name", one.name, other.name);
    compare.field("description", one.description, other.description);
    compare.field("creation_timestamp", one.creation_time_ms, other.creation_time_ms);
    compare.field("last_updated_timestamp", one.last_updated_time_ms, other.last_updated_time_ms);
    compare.pairs("tag", one.tags, other.tags);
    const auto aliases = [](const RegisteredModel& model) {
        std::vector<std::pair<std::string, std::int64_t>> all;
        for (const ModelAlias& alias : model.aliases) all.emplace_back(alias.alias, alias.version);
        std::sort(all.begin(), all.end());
        return all;
    };
    compare.field("its aliases", aliases(one), aliases(other));
    std::map<std::int64_t, std::pair<const ModelVersion*, const ModelVersion*>> versions;
    for (const ModelVersion& version : a.versions) versions[version.version].first = &version;
    for (const ModelVersion& version : b.versions) versions[version.version].second = &version;
    for (const auto& [number, both] : versions) {
        const bool is_missing = both.first == nullptr || both.second == nullptr;
        compare.inside("version " + std::to_string(number),
                       is_missing ? std::string(" is missing on one side") : std::string());
        if (!is_missing)
            compare.inside("version " + std::to_string(number) + ", ",
                           version_difference(*both.first, *both.second));
    }
    return compare.take();
}

std::string difference_line(const std::string& what, const std::string& field) {
    return what + " reads back differently" + (field.empty() ? "" : ": " + field);
}

}  // namespace tune::tracker
