// The order in a batch is MLflow's: all checks before the first write, so that a refused batch
// changes nothing. Params are write-once; a repeat of the same value is no error, which makes a
// client's retry safe. Events carry only what is new.

#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/limits.h"
#include "base/text/python_text.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/writer/apply.h"
#include "tracker/store/writer/run_name.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kModelHistoryTag = "mlflow.log-model.history";

/// The value of a param or tag ("params", "tags") of a run.
Result<std::optional<std::string>> find_value(WriteContext& context, const char* sql,
                                              std::int64_t run_row, std::string_view key) {
    TUNE_TRY(key_id, context.keys.find(key));
    if (key_id == 0) return std::optional<std::string>();
    TUNE_TRY(select, context.connection.prepare(sql));
    TUNE_TRY(has_row, select.with(run_row, key_id).step());
    if (!has_row) return std::optional<std::string>();
    return std::optional<std::string>(std::string(select.text(0)));
}

Result<std::optional<std::string>> find_param(WriteContext& context, std::int64_t run_row,
                                              std::string_view key) {
    return find_value(context, "SELECT value FROM params WHERE run_row = ? AND key_id = ?", run_row,
                      key);
}

Result<void> insert_param(WriteContext& context, std::int64_t run_row, const Param& param) {
    TUNE_TRY(key_id, context.keys.id_of(param.key));
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO params VALUES (?, ?, ?)"));
    return insert.with(run_row, key_id, param.value).run();
}

Result<bool> is_suggested_param(WriteContext& context, std::int64_t run_row, std::string_view key) {
    TUNE_TRY(key_id, context.keys.find(key));
    TUNE_TRY(select, context.connection.prepare("SELECT 1 FROM suggested_params WHERE run_row = ? "
                                                "AND key_id = ?"));
    return select.with(run_row, key_id).step();
}

/// Gives a param that was only suggested its own program's value, once.
Result<void> replace_suggested(WriteContext& context, std::int64_t run_row, const Param& param) {
    TUNE_TRY(key_id, context.keys.find(param.key));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM suggested_params WHERE run_row = ? "
                                               "AND key_id = ?"));
    TUNE_TRY_VOID(erase.with(run_row, key_id).run());
    TUNE_TRY(update, context.connection.prepare("UPDATE params SET value = ?3 WHERE run_row = ?1 "
                                                "AND key_id = ?2"));
    return update.with(run_row, key_id, param.value).run();
}

struct SortedParams {
    std::vector<Param> fresh;             ///< the run does not have them
    std::vector<Param> changed;           ///< the run has them with another value
    std::vector<std::string> old_values;  ///< one for each of `changed`
};

Result<SortedParams> sort_params(WriteContext& context, const std::vector<Param>& params,
                                 std::int64_t run_row) {
    SortedParams sorted;
    for (const Param& param : params) {
        TUNE_TRY(old, find_param(context, run_row, param.key));
        if (!old) {
            sorted.fresh.push_back(param);
        } else if (*old != param.value) {
            sorted.changed.push_back(param);
            sorted.old_values.push_back(std::move(*old));
        }
    }
    return sorted;
}

/// The params that are new or were only suggested. Errors: kInvalidParameterValue naming all others
/// that would change.
Result<SortedParams> check_params(WriteContext& context, const LogBatch& command,
                                  std::int64_t run_row) {
    TUNE_TRY(sorted, sort_params(context, command.params, run_row));
    std::string refused;
    for (std::size_t i = 0; i < sorted.changed.size(); ++i) {
        const Param& param = sorted.changed[i];
        TUNE_TRY(is_suggested, is_suggested_param(context, run_row, param.key));
        if (is_suggested) continue;
        refused += (refused.empty() ? "{'key': " : ", {'key': ") + python_repr(param.key) +
                   ", 'old_value': " + python_repr(sorted.old_values[i]) +
                   ", 'new_value': " + python_repr(param.value) + "}";
    }
    if (!refused.empty())
        return Error{Code::kInvalidParameterValue,
                     "Changing param values is not allowed. Params were already logged='[" +
                         refused + "]' for run ID='" + command.run_id + "'."};
    return sorted;
}

/// Writes them all and answers what it wrote.
Result<std::vector<Param>> write_params(WriteContext& context, std::int64_t run_row,
                                        SortedParams sorted) {
    for (const Param& param : sorted.fresh) TUNE_TRY_VOID(insert_param(context, run_row, param));
    for (Param& param : sorted.changed) {
        TUNE_TRY_VOID(replace_suggested(context, run_row, param));
        sorted.fresh.push_back(std::move(param));
    }
    return std::move(sorted.fresh);
}

/// The mark that they came under.
Result<std::optional<std::int64_t>> add_metrics(WriteContext& context, const RunRow& run,
                                                std::vector<Metric>& metrics,
                                                std::vector<std::uint32_t>& dropped) {
    std::optional<std::int64_t> mark;
    std::string_view key;
    std::int64_t key_id = 0;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        Metric& metric = metrics[i];
        metric.value = clamp_metric_value(metric.value);
        if (key_id == 0 || metric.key != key) {
            TUNE_TRY(id, context.keys.id_of(metric.key));
            key_id = id;
            key = metric.key;
        }
        const Point point{metric.timestamp_ms, metric.step, metric.value};
        TUNE_TRY(is_new, context.metrics.add({run.run_row, key_id}, point));
        if (!is_new) {
            dropped.push_back(static_cast<std::uint32_t>(i));
            continue;
        }
        TUNE_TRY(came_under, context.marks.note({run.run_row, key_id}, point));
        if (came_under) mark = came_under;
    }
    return mark;
}

Result<void> log_metrics(WriteContext& context, const RunRow& run, std::string_view run_id,
                         std::vector<Metric>& metrics) {
    if (metrics.empty()) return {};
    DeferredMetrics deferred;
    TUNE_TRY(mark, add_metrics(context, run, metrics, deferred.dropped));
    TUNE_TRY_VOID(log_model_metrics(context, run_id, metrics));
    if (deferred.dropped.size() == metrics.size()) return {};
    deferred.event = context.events.size();
    deferred.metrics = &metrics;
    context.events.push_back(MetricsLogged{std::string(run_id), run.experiment_id, {}, mark});
    context.deferred.push_back(std::move(deferred));
    return {};
}

Error malformed_model(const std::string& text) {
    return {Code::kInvalidParameterValue,
            "Malformed model info. \n " + text + " \n is not a valid JSON."};
}

/// What MLflow's Model.get_tags_dict keeps of a model's JSON.
Json model_history_entry(const Json& model) {
    Json entry = Json::object();
    for (const char* key : {"run_id", "utc_time_created", "artifact_path"}) entry[key] = model[key];
    entry["model_uuid"] = model.value("model_uuid", Json());
    Json flavors = model["flavors"];
    if (flavors.is_object())
        for (auto& flavor : flavors)
            if (flavor.is_object()) flavor.erase("config");
    entry["flavors"] = std::move(flavors);
    return entry;
}

Result<Json> parse_model(const std::string& text) {
    Result<Json> model = parse_json(text);
    if (!model || !model->is_object()) return malformed_model(text);
    std::string missing;
    for (const char* key : {"artifact_path", "flavors", "run_id", "utc_time_created"})
        if (!model->contains(key))
            missing += (missing.empty() ? "'" : ", '") + std::string(key) + "'";
    if (!missing.empty())
        return Error{Code::kInvalidParameterValue,
                     "Model json is missing mandatory fields: {" + missing + "}"};
    return model;
}

}  // namespace

Result<void> put_tags(WriteContext& context, const RunRow& run, std::string_view run_id,
                      const std::vector<Tag>& tags) {
    for (const Tag& tag : tags) {
        // MLflow ignores an empty name.
        const bool is_name = tag.key == kRunNameTag;
        if (is_name && tag.value.empty()) continue;
        TUNE_TRY(key_id, context.keys.id_of(tag.key));
        TUNE_TRY(put, context.connection.prepare("INSERT INTO tags VALUES (?, ?, ?) "
                                                 "ON CONFLICT DO UPDATE SET "
                                                 "value = excluded.value"));
        TUNE_TRY_VOID(put.with(run.run_row, key_id, tag.value).run());
        if (!is_name) continue;
        TUNE_TRY(rename, context.connection.prepare("UPDATE runs SET name = ?2 "
                                                    "WHERE run_row = ?1"));
        TUNE_TRY_VOID(rename.with(run.run_row, tag.value).run());
    }
    context.events.push_back(TagsSet{std::string(run_id), run.experiment_id, tags});
    return {};
}

Result<Outcome> apply(WriteContext& context, LogMetric& command) {
    TUNE_TRY_VOID(validate_metric(command.metric, ""));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    Metric& metric = command.metric;
    if (!metric.model_id.empty()) TUNE_TRY_VOID(check_models_exist(context, {metric}));
    metric.value = clamp_metric_value(metric.value);
    TUNE_TRY(key_id, context.keys.id_of(metric.key));
    const Point point{metric.timestamp_ms, metric.step, metric.value};
    TUNE_TRY(is_new, context.metrics.add({run.run_row, key_id}, point));
    if (!metric.model_id.empty())
        TUNE_TRY_VOID(log_model_metrics(context, command.run_id, {metric}));
    if (!is_new) return Outcome{};
    TUNE_TRY(mark, context.marks.note({run.run_row, key_id}, point));
    context.events.push_back(MetricsLogged{command.run_id, run.experiment_id, {metric}, mark});
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, LogParam& command) {
    TUNE_TRY_VOID(validate_param(command.param, "", context.options.truncate_long_values));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    const Param& param = command.param;
    TUNE_TRY(old, find_param(context, run.run_row, param.key));
    if (old && *old == param.value) return Outcome{};
    bool is_suggested = false;
    if (old) {
        TUNE_TRY(found, is_suggested_param(context, run.run_row, param.key));
        is_suggested = found;
    }
    if (old && !is_suggested)
        return Error{Code::kInvalidParameterValue,
                     "Changing param values is not allowed. Param with key='" + param.key +
                         "' was already logged with value='" + *old + "' for run ID='" +
                         command.run_id + "'. Attempted logging new value '" + param.value + "'."};
    if (is_suggested) {
        TUNE_TRY_VOID(replace_suggested(context, run.run_row, param));
    } else {
        TUNE_TRY_VOID(insert_param(context, run.run_row, param));
    }
    context.events.push_back(ParamsLogged{command.run_id, run.experiment_id, {param}});
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SetTag& command) {
    TUNE_TRY_VOID(validate_tag(command.tag, "", context.options.truncate_long_values));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    TUNE_TRY_VOID(put_tags(context, run, command.run_id, {command.tag}));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteTag& command) {
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    TUNE_TRY(key_id, context.keys.find(command.key));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM tags WHERE run_row = ? "
                                               "AND key_id = ?"));
    TUNE_TRY_VOID(erase.with(run.run_row, key_id).run());
    if (context.connection.changed_rows() == 0)
        return Error{Code::kResourceDoesNotExist,
                     "No tag with name: " + command.key + " in run with id " + command.run_id};
    context.events.push_back(TagDeleted{command.run_id, run.experiment_id, command.key});
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, LogBatch& command) {
    TUNE_TRY_VOID(validate_run_id(command.run_id));
    TUNE_TRY_VOID(validate_batch(command.metrics, command.params, command.tags,
                                 context.options.truncate_long_values));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    TUNE_TRY(params, check_params(context, command, run.run_row));
    TUNE_TRY_VOID(check_models_exist(context, command.metrics));
    TUNE_TRY(written, write_params(context, run.run_row, std::move(params)));
    if (!written.empty())
        context.events.push_back(
            ParamsLogged{command.run_id, run.experiment_id, std::move(written)});
    TUNE_TRY_VOID(log_metrics(context, run, command.run_id, command.metrics));
    if (!command.tags.empty()) TUNE_TRY_VOID(put_tags(context, run, command.run_id, command.tags));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SuggestParams& command) {
    std::vector<Tag> no_tags;
    TUNE_TRY_VOID(
        validate_batch({}, command.params, no_tags, context.options.truncate_long_values));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    std::vector<Param> fresh;
    for (const Param& param : command.params) {
        TUNE_TRY(old, find_param(context, run.run_row, param.key));
        if (!old) {
            TUNE_TRY_VOID(insert_param(context, run.run_row, param));
            fresh.push_back(param);
        }
        TUNE_TRY(key_id, context.keys.id_of(param.key));
        TUNE_TRY(insert, context.connection.prepare("INSERT OR IGNORE INTO suggested_params "
                                                    "VALUES (?, ?)"));
        TUNE_TRY_VOID(insert.with(run.run_row, key_id).run());
    }
    if (command.reopens) {
        TUNE_TRY(insert, context.connection.prepare("INSERT OR IGNORE INTO suggested_params "
                                                    "SELECT run_row, key_id FROM params "
                                                    "WHERE run_row = ?"));
        TUNE_TRY_VOID(insert.with(run.run_row).run());
    }
    if (!fresh.empty())
        context.events.push_back(ParamsLogged{command.run_id, run.experiment_id, std::move(fresh)});
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, const CloseParams& command) {
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM suggested_params WHERE run_row = ?"));
    TUNE_TRY_VOID(erase.with(run.run_row).run());
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, MarkMetrics& command) {
    TUNE_TRY(run, context.runs.find(command.run_id));
    if (!command.mark) {
        TUNE_TRY_VOID(context.marks.remove(run.run_row));
        return Outcome{};
    }
    std::vector<std::int64_t> key_ids;
    for (const std::string& key : command.keys) {
        TUNE_TRY(key_id, context.keys.id_of(key));
        key_ids.push_back(key_id);
    }
    TUNE_TRY_VOID(context.marks.set(run.run_row, key_ids, *command.mark));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, RecordLoggedModel& command) {
    TUNE_TRY(model, parse_model(command.model_json));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    TUNE_TRY(old, find_value(context, "SELECT value FROM tags WHERE run_row = ? AND key_id = ?",
                             run.run_row, kModelHistoryTag));
    Json history = Json::array();
    if (old) {
        Result<Json> parsed = parse_json(*old);
        if (parsed && parsed->is_array()) history = std::move(*parsed);
    }
    history.push_back(model_history_entry(model));
    Tag tag{std::string(kModelHistoryTag), to_text(history)};
    // A cut list would no longer be JSON.
    TUNE_TRY_VOID(validate_tag(tag, "", false));
    TUNE_TRY_VOID(put_tags(context, run, command.run_id, {tag}));
    return Outcome{};
}

}  // namespace tune::tracker
