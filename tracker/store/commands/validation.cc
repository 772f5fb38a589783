// MLflow's clients show these sentences to their users and some branch on them, so texts, order of
// checks and even what is measured (characters, not bytes) follow mlflow/utils/validation.py. Each
// check is pure: whether a name is free is decided later, on the writer thread.

#include "tracker/store/commands/validation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/json.h"
#include "base/limits.h"
#include "base/text/number_text.h"
#include "base/text/percent.h"
#include "base/text/python_text.h"
#include "base/text/text.h"
#include "base/text/uri.h"
#include "base/text/utf8.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kNameCharacters = "/.- :";
constexpr std::string_view kBadCharacters =
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
    "colon(:) and slashes (/).";
constexpr std::string_view kCustomViewPrefix = "mlflow.customView.view";

/// Schemes whose URIs name a host the server would have to connect to.
constexpr std::array<std::string_view, 9> kHostSchemes = {"ftp",   "sftp", "hdfs", "viewfs", "http",
                                                          "https", "r2",   "b2",   "abfss"};

/// json.dumps of a string: ASCII only.
std::string json_text(std::string_view value) {
    return Json(std::string(value)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

Error invalid_value(const std::string& path, const std::string& value, std::string_view message) {
    std::string text = "Invalid value " + value + " for parameter '" + path + "' supplied";
    text += message.empty() ? std::string(".") : ": " + std::string(message);
    return invalid_parameter(std::move(text));
}

std::string join(const std::string& path, std::string_view name) {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
}

/// posixpath.normpath.
std::string normal_path(std::string_view name) {
    std::vector<std::string_view> parts;
    const std::size_t slashes = std::min(name.find_first_not_of('/'), name.size());
    const std::string root = slashes == 0 ? "" : slashes == 2 ? "//" : "/";
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('/', begin), name.size());
        const std::string_view part = name.substr(begin, end - begin);
        begin = end + 1;
        if (part.empty() || part == ".") continue;
        const bool is_up = part == "..";
        if (is_up && !parts.empty() && parts.back() != "..") {
            parts.pop_back();
        } else if (!is_up || root.empty()) {
            parts.push_back(part);
        }
    }
    std::string path = root;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) path += '/';
        path += parts[i];
    }
    return path.empty() ? "." : path;
}

bool is_longer(std::string_view text, std::size_t characters_max) {
    return text.size() > characters_max && count_characters(text) > characters_max;
}

Result<void> fit(std::string& value, std::size_t characters_max, bool truncate,
                 const std::string& name) {
    if (!is_longer(value, characters_max)) return {};
    if (!truncate) return too_long(name, characters_max);
    cut_to_characters(value, characters_max);
    return {};
}

Result<void> validate_count(std::size_t count, std::size_t count_max, const std::string& what) {
    if (count <= count_max) return {};
    return invalid_parameter("A batch logging request can contain at most " +
                             std::to_string(count_max) + " " + what + ". Got " +
                             std::to_string(count) + " " + what + ". Please split up " + what +
                             " across multiple requests and try again.");
}

Result<void> validate_params_unique(const std::vector<Param>& params) {
    std::unordered_set<std::string_view> seen;
    std::string repeated;
    for (const Param& param : params) {
        if (seen.insert(param.key).second) continue;
        repeated += (repeated.empty() ? "" : ", ") + python_repr(param.key);
    }
    if (repeated.empty()) return {};
    return invalid_parameter(
        "Duplicate parameter keys have been submitted: [" + repeated +
        "]. Please ensure the request contains only one param value per param key.");
}

std::string lower_scheme(std::string_view location) {
    const std::size_t colon = location.find(':');
    if (colon == std::string_view::npos) return {};
    return lower_ascii(location.substr(0, colon));
}

/// Whether Python's urlparse finds `;params`: in the last segment, and only for some schemes.
bool has_url_params(std::string_view path, const std::string& scheme) {
    constexpr std::array<std::string_view, 14> kSchemes = {
        "",     "ftp",   "hdfs", "prospero", "http", "https", "shttp",
        "rtsp", "rtsps", "sip",  "sips",     "mms",  "sftp",  "tel"};
    if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) return false;
    const std::size_t slash = path.rfind('/');
    return path.find(';', slash == std::string_view::npos ? 0 : slash) != std::string_view::npos;
}

/// Undoes %-encoding until nothing changes (at most 10 times, as MLflow does).
std::string unquote_fully(std::string text) {
    for (int round = 0; round < 10; ++round) {
        std::string decoded = percent_decode(text);
        if (decoded == text) break;
        text = std::move(decoded);
    }
    return text;
}

}  // namespace

Error missing_value(std::string_view name) {
    return invalid_parameter("Missing value for required parameter '" + std::string(name) + "'.");
}

Result<void> validate_unique_path(std::string_view name, const std::string& path) {
    const std::string normal = normal_path(name);
    if (normal != name || normal == "." || normal.starts_with("..") || normal.starts_with("/"))
        return invalid_value(path, json_text(name),
                             "Names may be treated as files in certain cases, and must not resolve "
                             "to other names when treated as such. This name would resolve to " +
                                 python_repr(normal));
    return {};
}

Result<void> validate_key(std::string_view key, const std::string& path) {
    if (!is_of_word_characters(key, kNameCharacters))
        return invalid_value(path, json_text(key), kBadCharacters);
    return validate_unique_path(key, path);
}

Result<void> validate_uri_names_no_host(std::string_view uri, const std::string& field) {
    const UriParts parts = split_uri(uri);
    const std::string& scheme = parts.scheme;
    const bool is_host_scheme =
        std::find(kHostSchemes.begin(), kHostSchemes.end(), scheme) != kHostSchemes.end();
    if (!is_host_scheme && (scheme != "mlflow-artifacts" || parts.authority.empty())) return {};
    return invalid_parameter(
        "'" + field + "' cannot use the '" + scheme + "' scheme: the '" + scheme +
        "' scheme addresses a host other than the tracking server's configured "
        "artifact storage, so the server would connect to the host named in the URI.");
}

Error too_long(std::string_view name, std::size_t characters_max) {
    return invalid_parameter("'" + std::string(name) + "' exceeds the maximum length of " +
                             std::to_string(characters_max) + " characters");
}

Result<void> validate_run_id(std::string_view run_id) {
    constexpr std::size_t kCharsMax = 256;
    const bool starts_well =
        !run_id.empty() && std::isalnum(static_cast<unsigned char>(run_id.front())) != 0;
    if (starts_well && run_id.size() <= kCharsMax && is_of_word_characters(run_id, "-")) return {};
    return invalid_value("run_id", json_text(run_id), {});
}

Result<void> validate_experiment_name(std::string_view name) {
    if (name.empty()) return invalid_parameter("Invalid experiment name: ''");
    if (is_longer(name, kExperimentNameCharsMax)) return too_long("name", kExperimentNameCharsMax);
    return {};
}

Result<void> validate_experiment_tag(const Tag& tag) {
    TUNE_TRY_VOID(validate_key(tag.key, "key"));
    if (is_longer(tag.key, kKeyCharsMax)) return too_long("key", kKeyCharsMax);
    if (is_longer(tag.value, kExperimentTagValueCharsMax))
        return too_long("value", kExperimentTagValueCharsMax);
    return {};
}

bool is_custom_view_tag(std::string_view key) {
    return key.starts_with(kCustomViewPrefix);
}

Error too_many_custom_views(std::string_view experiment_id) {
    const std::string where =
        experiment_id.empty() ? "" : " for experiment " + std::string(experiment_id);
    return invalid_parameter("Unable to create another custom view" + where +
                             "; the maximum number of custom views per experiment is " +
                             std::to_string(kCustomViewsMax) +
                             ". Delete an existing custom view before creating a new one.");
}

std::string absolute_location(std::string location) {
    const std::string scheme = lower_scheme(location);
    if (location.empty() || (!scheme.empty() && scheme != "file")) return location;
    const std::string path = scheme.empty() ? location : location.substr(scheme.size() + 1);
    if (path.starts_with('/')) return location;
    std::error_code no_folder;
    std::filesystem::path whole = std::filesystem::current_path(no_folder);
    if (no_folder) return location;
    for (const std::filesystem::path& part : std::filesystem::path(path))
        if (!part.empty() && part != ".") whole /= part;
    return scheme.empty() ? whole.string() : "file://" + whole.string();
}

Result<void> validate_artifact_location(std::string_view location) {
    const std::string scheme = lower_scheme(location);
    const std::size_t query = location.find('?');
    const std::string_view path = location.substr(0, query);
    if (location.find('#') != std::string_view::npos || has_url_params(path, scheme))
        return invalid_parameter("'artifact_location' URL can't include fragments or params.");
    if (query != std::string_view::npos &&
        unquote_fully(std::string(location.substr(query))).find("..") != std::string::npos)
        return invalid_parameter("Invalid query string");
    TUNE_TRY_VOID(validate_uri_names_no_host(location, "artifact_location"));
    if (scheme == "runs")
        return invalid_parameter("Artifact location cannot be a runs:/ URI. Given: '" +
                                 std::string(location) + "'");
    if (is_longer(location, kArtifactLocationCharsMax))
        return invalid_parameter(
            "Invalid artifact path length. The length of the artifact path cannot be "
            "greater than " +
            std::to_string(kArtifactLocationCharsMax) + " characters.");
    return {};
}

/// A data set is named by both or not at all.
Result<void> validate_metric_dataset(const Metric& metric) {
    if (metric.dataset_name.empty() == metric.dataset_digest.empty()) return {};
    return invalid_parameter(
        "Both dataset_name and dataset_digest must be provided if one is provided");
}

Result<void> validate_metric(const Metric& metric, const std::string& path) {
    TUNE_TRY_VOID(validate_metric_dataset(metric));
    TUNE_TRY_VOID(validate_key(metric.key, join(path, "name")));
    if (metric.timestamp_ms < 0)
        return invalid_value(join(path, "timestamp"), std::to_string(metric.timestamp_ms),
                             "metric '" + metric.key + "' (value=" + number_text(metric.value) +
                                 "). Timestamp must be a nonnegative long (64-bit integer) ");
    if (is_longer(metric.key, kKeyCharsMax)) return too_long("Metric name", kKeyCharsMax);
    return {};
}

Result<void> validate_param(Param& param, const std::string& path, bool truncate) {
    TUNE_TRY_VOID(validate_key(param.key, join(path, "key")));
    if (is_longer(param.key, kKeyCharsMax)) return too_long("Param key", kKeyCharsMax);
    return fit(param.value, kParamValueCharsMax, truncate, "Param value");
}

Result<void> validate_tag(Tag& tag, const std::string& path, bool truncate) {
    TUNE_TRY_VOID(validate_key(tag.key, join(path, "key")));
    if (is_longer(tag.key, kKeyCharsMax)) return too_long(join(path, "key"), kKeyCharsMax);
    return fit(tag.value, kRunTagValueCharsMax, truncate, join(path, "value"));
}

Result<void> validate_batch(const std::vector<Metric>& metrics, std::vector<Param>& params,
                            std::vector<Tag>& tags, bool truncate) {
    const auto path = [](const char* list, std::size_t i) {
        return std::string(list) + "[" + std::to_string(i) + "]";
    };
    for (const Metric& metric : metrics) TUNE_TRY_VOID(validate_metric_dataset(metric));
    const std::string* checked_key = nullptr;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        // Batches repeat a few keys; a key that was just found good is good again.
        const bool is_key_good = checked_key != nullptr && *checked_key == metrics[i].key;
        if (is_key_good && metrics[i].timestamp_ms >= 0) continue;
        TUNE_TRY_VOID(validate_metric(metrics[i], path("metrics", i)));
        checked_key = &metrics[i].key;
    }
    for (std::size_t i = 0; i < params.size(); ++i)
        TUNE_TRY_VOID(validate_param(params[i], path("params", i), truncate));
    for (std::size_t i = 0; i < tags.size(); ++i)
        TUNE_TRY_VOID(validate_tag(tags[i], path("tags", i), truncate));
    // Counts after contents, as in MLflow.
    TUNE_TRY_VOID(validate_count(metrics.size(), kBatchMetricsMax, "metrics"));
    TUNE_TRY_VOID(validate_count(params.size(), kBatchParamsMax, "params"));
    TUNE_TRY_VOID(validate_count(tags.size(), kBatchTagsMax, "tags"));
    TUNE_TRY_VOID(validate_count(metrics.size() + params.size() + tags.size(), kBatchTotalMax,
                                 "metrics, params, and tags"));
    return validate_params_unique(params);
}

Result<void> validate_dataset_input(const DatasetInput& input) {
    const auto check = [](const std::string& text, std::size_t characters_max,
                          const char* name) -> Result<void> {
        if (is_longer(text, characters_max)) return too_long(name, characters_max);
        return {};
    };
    const Dataset& dataset = input.dataset;
    TUNE_TRY_VOID(check(dataset.name, kDatasetNameCharsMax, "name"));
    TUNE_TRY_VOID(check(dataset.digest, kDatasetDigestCharsMax, "digest"));
    TUNE_TRY_VOID(check(dataset.source, kDatasetSourceCharsMax, "source"));
    TUNE_TRY_VOID(check(dataset.schema.value_or(""), kDatasetSchemaCharsMax, "schema"));
    TUNE_TRY_VOID(check(dataset.profile.value_or(""), kDatasetProfileCharsMax, "profile"));
    for (const Tag& tag : input.tags) {
        TUNE_TRY_VOID(check(tag.key, kInputTagKeyCharsMax, "key"));
        TUNE_TRY_VOID(check(tag.value, kInputTagValueCharsMax, "value"));
    }
    return {};
}

Result<void> validate_logged_model_name(std::string_view name) {
    if (name.find_first_of("/:.%\"'") == std::string_view::npos) return {};
    return invalid_parameter(
        "Invalid model name (" + python_repr(name) +
        ") provided. Model name must be a non-empty string and cannot contain the "
        "following characters: ('/', ':', '.', '%', '\"', \"'\")");
}

double clamp_metric_value(double value) {
    constexpr double kMax = std::numeric_limits<double>::max();
    if (std::isinf(value)) return value > 0 ? kMax : -kMax;
    return value;
}

}  // namespace tune::tracker
