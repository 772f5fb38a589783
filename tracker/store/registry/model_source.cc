// A version's files are served to whoever may read the version, so a source is a claim on files. It
// is granted only where the request names the run or logged model whose folder holds it. Paths are
// compared part by part after decoding until nothing changes; what does not resolve to itself is
// refused rather than normalised.

#include "tracker/store/registry/model_source.h"

#include <algorithm>

#include "base/text/percent.h"
#include "base/text/text.h"
#include "base/text/uri.h"
#include "base/text/utf8.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/read_logged_models.h"
#include "tracker/store/reads/runs/read_runs.h"
#include "tracker/store/registry/read_registry.h"
#include "tracker/store/registry/registry_validation.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kRunId = "run_id";
constexpr std::string_view kModelId = "model_id";

Error refused(std::string_view source, const std::string& reason) {
    return {Code::kInvalidParameterValue,
            "Invalid model version source: '" + std::string(source) + "'. " + reason};
}

Error not_identified(std::string_view source, std::string_view field) {
    return refused(source, "The " + std::string(field) +
                               " request parameter must identify the resource that contains the "
                               "source.");
}

Error not_local_to(std::string_view source, std::string_view field) {
    const std::string name(field);
    return refused(source, "To use a local path as a model version source, the " + name +
                               " request parameter has to be specified and the local path has to "
                               "be contained within the artifact directory of the run specified by "
                               "the " +
                               name + ".");
}

/// The run or logged model that the request names; an empty id names none.
struct Owner {
    std::string_view field;
    std::string id;
};

/// Where the artifacts of `owner` lie. Errors: not_identified when it does not exist.
Result<std::string> artifact_root(sqlite::Connection& connection, const Owner& owner,
                                  std::string_view source) {
    if (owner.field == kRunId) {
        TUNE_TRY(run, find_run_info(connection, owner.id));
        if (!run) return not_identified(source, kRunId);
        return std::move(run->artifact_uri);
    }
    TUNE_TRY(select, connection.prepare("SELECT artifact_uri FROM logged_models WHERE "
                                        "model_id = ? AND life = 0"));
    TUNE_TRY(has_row, select.with(owner.id).step());
    if (!has_row) return not_identified(source, kModelId);
    return std::string(select.text(0));
}

bool is_local(const UriParts& uri) {
    return uri.scheme.empty() || uri.scheme == "file";
}

bool names_this_machine(std::string_view authority) {
    const std::string_view host = authority.substr(authority.rfind('@') + 1);
    return host.empty() || host == "." || host.starts_with("localhost") ||
           host.starts_with("127.0.0.1");
}

std::string local_path(std::string_view uri) {
    return percent_decode(uri.starts_with("file:") ? std::string_view(split_uri(uri).path) : uri);
}

std::string joined(const std::vector<std::string>& parts) {
    std::string path;
    for (const std::string& part : parts) path += "/" + part;
    return path.empty() ? "/" : path;
}

Result<void> check_local(sqlite::Connection& connection, const std::string& source,
                         const Owner& owner) {
    const UriParts uri = split_uri(source);
    if (!names_this_machine(uri.authority))
        return Error{Code::kInvalidParameterValue,
                     source +
                         " is not a valid remote uri. For remote access on windows, please "
                         "consider using a different scheme such as SMB (e.g. "
                         "smb://<hostname>/<path>)."};
    if (owner.id.empty()) return not_local_to(source, owner.field);
    TUNE_TRY(root, artifact_root(connection, owner, source));
    const std::string path = local_path(source);
    const std::vector<std::string> parts = resolved_parts(path);
    const bool is_absolute = path.starts_with('/') && path.find('\0') == std::string::npos;
    const bool is_inside = is_absolute && is_local(split_uri(root)) &&
                           is_in_folder(parts, resolved_parts(local_path(root)));
    if (is_inside) return {};
    return not_local_to(is_absolute ? joined(parts) : source, owner.field);
}

/// A path that resolves to itself, whatever is decoded.
Result<void> check_absolute(const std::string& source) {
    const std::string plain = percent_decode_all(source, true);
    const std::string path = split_uri(plain).path;
    const std::vector<std::string> in_path = path_parts(path);
    const std::vector<std::string> in_source = path_parts(plain);
    const auto has = [](const std::vector<std::string>& parts, std::string_view part) {
        return std::find(parts.begin(), parts.end(), part) != parts.end();
    };
    const bool is_good = path.starts_with('/') && !in_path.empty() && !has(in_path, ".") &&
                         !has(in_source, "..") && path.find('\0') == std::string::npos;
    if (is_good) return {};
    return refused(source,
                   "If supplying a source as an http, https, local file path, ftp, objectstore, or "
                   "mlflow-artifacts uri, an absolute path must be provided without relative path "
                   "references present. Please provide an absolute path.");
}

bool is_within(std::string_view source, std::string_view root) {
    const auto unquoted = [](const UriParts& uri) {
        std::vector<std::string> parts = path_parts(uri.path);
        for (std::string& part : parts) part = percent_decode_all(part);
        return parts;
    };
    const UriParts inner = split_uri(source);
    const UriParts outer = split_uri(root);
    const std::vector<std::string> outer_parts = unquoted(outer);
    return inner.scheme == outer.scheme && inner.authority == outer.authority &&
           !outer_parts.empty() && is_in_folder(unquoted(inner), outer_parts);
}

Result<void> check_runs_uri(const std::string& source, const UriParts& uri, const Owner& owner) {
    if (owner.field == kModelId || !uri.authority.empty())
        return not_identified(source, owner.field);
    const std::size_t end = std::min(uri.path.find('/', 1), uri.path.size());
    if (!uri.path.starts_with('/') || end <= 1)
        return Error{Code::kInvalidParameterValue,
                     "Not a proper runs:/ URI: " + source +
                         ". Runs URIs must be of the form "
                         "'runs:/<run_id>/run-relative/path/to/artifact'"};
    if (owner.id.empty() || uri.path.substr(1, end - 1) != owner.id)
        return not_identified(source, kRunId);
    return {};
}

Result<void> check_models_uri(const std::string& source, const Owner& owner) {
    const std::optional<ModelUri> uri = parse_model_uri(source);
    if (!split_uri(source).authority.empty() || !uri) return not_identified(source, kModelId);
    if (uri->model_id.empty()) return {};
    const bool is_named = owner.field == kModelId && uri->model_id == owner.id;
    if (!is_named) return not_identified(source, kModelId);
    return {};
}

Result<void> check_owner(sqlite::Connection& connection, const std::string& source,
                         const Owner& owner) {
    const UriParts uri = split_uri(source);
    if (is_local(uri)) return check_local(connection, source, owner);
    TUNE_TRY_VOID(check_absolute(source));
    if (uri.scheme == "runs") return check_runs_uri(source, uri, owner);
    if (uri.scheme == "models") return check_models_uri(source, owner);
    if (uri.scheme != "mlflow-artifacts") return {};
    if (owner.id.empty()) return not_identified(source, owner.field);
    TUNE_TRY(root, artifact_root(connection, owner, source));
    if (!is_within(source, root)) return not_identified(source, owner.field);
    return {};
}

/// The version that "models:/<name>/..." means.
Result<ModelVersion> resolve_version(sqlite::Connection& connection, const ModelUri& uri) {
    if (!uri.alias.empty()) return version_by_alias(connection, uri.name, uri.alias);
    if (!uri.version.empty()) {
        TUNE_TRY(row, find_version(connection, uri.name, uri.version));
        return load_version(connection, row.version_row, false);
    }
    std::vector<std::string> stages;
    if (!uri.stage.empty()) stages.push_back(uri.stage);
    TUNE_TRY(latest, latest_versions_of_stages(connection, uri.name, stages));
    if (latest.empty())
        return Error{Code::kResourceDoesNotExist,
                     "No versions of model with name '" + uri.name + "'" +
                         (uri.stage.empty() ? "" : " and stage '" + uri.stage + "'") + " found"};
    return *std::max_element(
        latest.begin(), latest.end(),
        [](const ModelVersion& a, const ModelVersion& b) { return a.version < b.version; });
}

/// Follows a source that is a registered version; others stay as they are.
Result<ModelSource> follow(sqlite::Connection& connection, ModelSource given) {
    const UriParts uri = split_uri(given.source);
    if (uri.scheme != "models") return given;
    if (!uri.authority.empty())
        return refused(given.source,
                       "Registered model sources must use the active model registry.");
    const std::optional<ModelUri> parsed = parse_model_uri(given.source);
    if (!parsed) return not_identified(given.source, kModelId);
    if (!parsed->model_id.empty()) return given;
    TUNE_TRY(registered, find_registered_row(connection, parsed->name));
    TUNE_TRY(is_of_prompt, is_prompt_row(connection, registered));
    if (is_of_prompt)
        return refused(given.source, "Prompt versions cannot be used as model version sources.");
    TUNE_TRY(version, resolve_version(connection, *parsed));
    // A registered version has no model_id (MLflow does not keep it), so only an empty one matches.
    const bool is_same_run = !given.run_id || *given.run_id == version.run_id.value_or("");
    if (!is_same_run || !given.model_id.value_or("").empty())
        return refused(given.source,
                       "The run_id and model_id request parameters must match the referenced model "
                       "version.");
    given.source = "models:/" + parsed->name + "/" + std::to_string(version.version);
    if (!given.run_id) given.run_id = version.run_id;
    return given;
}

}  // namespace

std::optional<ModelUri> parse_model_uri(std::string_view uri) {
    const UriParts parts = split_uri(uri);
    if (parts.scheme != "models" || !parts.path.starts_with('/')) return std::nullopt;
    // Fragments are no fragments here.
    const std::size_t begin = std::min(uri.find(parts.path), uri.size());
    std::string_view path = uri.substr(begin, uri.find('?', begin) - begin);
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const auto is_blank = [](std::string_view text) {
        return text.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos;
    };
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    ModelUri result;
    if (is_blank(name)) return std::nullopt;
    if (slash != std::string_view::npos) {
        const std::string_view suffix = path.substr(slash + 1);
        if (suffix.find('/') != std::string_view::npos || is_blank(suffix)) return std::nullopt;
        result.name = name;
        const bool is_number =
            std::all_of(suffix.begin(), suffix.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (is_number) {
            result.version = suffix;
        } else if (lower_ascii(suffix) != "latest") {
            result.stage = suffix;
        }
        return result;
    }
    const std::size_t at = name.rfind('@');
    if (at == std::string_view::npos) {
        result.model_id = name;
        return result;
    }
    if (is_blank(name.substr(at + 1))) return std::nullopt;
    result.name = name.substr(0, at);
    result.alias = name.substr(at + 1);
    return result;
}

Result<ModelSource> validate_model_source(sqlite::Connection& connection,
                                          const CreateModelVersion& command) {
    if (count_characters(command.source) > kModelSourceCharsMax)
        return too_long("source", kModelSourceCharsMax);
    ModelSource source{command.source, command.run_id, command.model_id};
    if (is_prompt(command.tags)) {
        if (command.source == "dummy-source" || command.source == "prompt-template") return source;
        return Error{Code::kInvalidParameterValue,
                     "Invalid prompt source: '" + command.source +
                         "'. Prompt sources must use an MLflow placeholder."};
    }
    TUNE_TRY_VOID(validate_uri_names_no_host(command.source, "source"));
    TUNE_TRY(followed, follow(connection, std::move(source)));
    const bool has_model = !followed.model_id.value_or("").empty();
    const Owner owner = has_model ? Owner{kModelId, *followed.model_id}
                                  : Owner{kRunId, followed.run_id.value_or("")};
    TUNE_TRY_VOID(check_owner(connection, followed.source, owner));
    return followed;
}

}  // namespace tune::tracker
