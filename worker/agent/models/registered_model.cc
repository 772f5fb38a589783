// A name becomes a version, a version the place of its files, and those a folder here: first under
// a name of its own, then by rename. Two that bring the same model at once both succeed.

#include "worker/agent/models/registered_model.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/id.h"
#include "base/json.h"
#include "base/text/percent.h"
#include "worker/agent/server/artifact_folder.h"
#include "worker/agent/server/new_file.h"

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRegistryApi = "/api/2.0/mlflow/";
constexpr std::string_view kModelScheme = "models:/";
constexpr int kRegistryTimeout_ms = 30'000;
constexpr int kModelDepthMax = 16;
constexpr std::size_t kFetchedFilesMax = 10'000;

/// The value of an argument that is --init-from=...; the one behind it counts as well.
constexpr std::string_view kInitFlags[] = {"--init-from", "--init_from"};

/// Where the name of a model begins in argument `i`; npos: it has none.
std::size_t model_begins(const std::vector<std::string>& command, std::size_t i) {
    for (const std::string_view flag : kInitFlags) {
        const std::string& word = command[i];
        const bool is_joined =
            word.starts_with(flag) && word.size() > flag.size() && word[flag.size()] == '=' &&
            std::string_view(word).substr(flag.size() + 1).starts_with(kModelScheme);
        if (is_joined) return flag.size() + 1;
        if (i > 0 && command[i - 1] == flag && word.starts_with(kModelScheme)) return 0;
    }
    return std::string::npos;
}

Error wrong_model(const std::string& uri, const std::string& why) {
    return {Code::kInvalidParameterValue, "init-from: '" + uri + "' " + why};
}

Error cannot_make(const fs::path& folder, const std::error_code& error) {
    return {Code::kInternalError, "cannot make '" + folder.string() + "': " + error.message()};
}

std::string word_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A version of the registry.
struct ModelVersion {
    std::string name;
    std::string version;
};

Result<ModelVersion> find_version(tracker::Client& client, const std::string& uri) {
    const std::string rest = uri.substr(kModelScheme.size());
    const std::size_t at = rest.rfind('@');
    const std::size_t slash = rest.rfind('/');
    if (at != std::string::npos && at > 0) {
        const std::string name = rest.substr(0, at);
        TUNE_TRY(answer, client.get(std::string(kRegistryApi) + "registered-models/alias?name=" +
                                        percent_encode(name, false) +
                                        "&alias=" + percent_encode(rest.substr(at + 1), false),
                                    kRegistryTimeout_ms));
        const Json version = answer.value("model_version", Json::object());
        return ModelVersion{word_of(version, "name"), word_of(version, "version")};
    }
    if (slash != std::string::npos && slash > 0 && slash + 1 < rest.size())
        return ModelVersion{rest.substr(0, slash), rest.substr(slash + 1)};
    return wrong_model(uri, "is neither models:/NAME/VERSION nor models:/NAME@ALIAS");
}

Result<std::string> logged_location(tracker::Client& client, const std::string& id) {
    TUNE_TRY(answer,
             client.get(std::string(kRegistryApi) + "logged-models/" + percent_encode(id, false),
                        kRegistryTimeout_ms));
    return word_of(answer.value("model", Json::object()).value("info", Json::object()),
                   "artifact_uri");
}

/// The place of its files, and what to call the folder and the model.
struct Place {
    std::string location;
    fs::path folder;
    std::string words;
};

bool is_logged_model(std::string_view uri) {
    return uri.starts_with("models:/m-") &&
           uri.find_first_of("/@", kModelScheme.size()) == std::string_view::npos;
}

Result<Place> find_place(tracker::Client& client, const std::string& uri) {
    if (is_logged_model(uri)) {
        const std::string id = uri.substr(kModelScheme.size());
        TUNE_TRY(location, logged_location(client, id));
        return Place{location, percent_encode(id, false), "logged model " + id};
    }
    TUNE_TRY(found, find_version(client, uri));
    TUNE_TRY(answer,
             client.get(std::string(kRegistryApi) + "model-versions/get-download-uri?name=" +
                            percent_encode(found.name, false) +
                            "&version=" + percent_encode(found.version, false),
                        kRegistryTimeout_ms));
    std::string location = word_of(answer, "artifact_uri");
    if (is_logged_model(location)) {
        TUNE_TRY(of_model, logged_location(client, location.substr(kModelScheme.size())));
        location = of_model;
    }
    return Place{location,
                 percent_encode(found.name, false) + "-" + percent_encode(found.version, false),
                 "version " + found.version + " of the registered model '" + found.name + "'"};
}

/// `path` is relative to the model's folder; names are the server's, and lead nowhere else.
Result<void> fetch_folder(tracker::Client& client, const std::string& remote, const fs::path& local,
                          int depth, std::size_t& files) {
    if (depth > kModelDepthMax)
        return Error{Code::kInvalidParameterValue, "its folders are nested too deep"};
    std::error_code error;
    fs::create_directories(local, error);
    if (error) return cannot_make(local, error);
    TUNE_TRY(answer,
             client.get("/api/2.0/mlflow-artifacts/artifacts?path=" + percent_encode(remote, false),
                        kRegistryTimeout_ms));
    for (const Json& entry : answer.value("files", Json::array())) {
        const std::string path = word_of(entry, "path");
        const std::string name = path.substr(path.rfind('/') + 1);
        if (name.empty() || name == "." || name == "..") continue;
        if (entry.value("is_dir", false)) {
            TUNE_TRY_VOID(
                fetch_folder(client, remote + "/" + name, local / name, depth + 1, files));
            continue;
        }
        if (++files > kFetchedFilesMax)
            return Error{Code::kInvalidParameterValue, "it has more than 10,000 files"};
        NewFile file(local / name);
        TUNE_TRY_VOID(file.add({}));
        TUNE_TRY_VOID(client.get_file(
            kArtifactsPath + percent_encode(remote + "/" + name),
            [&file](std::string_view part) { return file.add(part); }, kRegistryTimeout_ms));
        TUNE_TRY_VOID(file.sync());
    }
    return {};
}

}  // namespace

std::vector<std::string> wanted_models(const std::vector<std::string>& command) {
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::size_t begin = model_begins(command, i);
        if (begin == std::string::npos) continue;
        std::string uri = command[i].substr(begin);
        if (std::find(wanted.begin(), wanted.end(), uri) == wanted.end())
            wanted.push_back(std::move(uri));
    }
    return wanted;
}

void put_model_path(std::vector<std::string>& command, const std::string& uri,
                    const fs::path& path) {
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::size_t begin = model_begins(command, i);
        if (begin != std::string::npos && command[i].compare(begin, std::string::npos, uri) == 0)
            command[i] = command[i].substr(0, begin) + path.string();
    }
}

Result<FetchedModel> fetch_registered_model(tracker::Client& client, const std::string& uri,
                                            const fs::path& root) {
    const Result<Place> place = find_place(client, uri);
    if (!place && place.error().code == Code::kResourceDoesNotExist)
        return wrong_model(uri, "cannot be had: " + place.error().message);
    if (!place) return place.error();
    FetchedModel fetched{.uri = uri,
                         .folder = root / place->folder,
                         .note = "init-from: '" + uri + "' is " + place->words};
    std::error_code error;
    if (fs::is_directory(fetched.folder, error)) return fetched;
    const Result<std::string> remote = proxied_folder(place->location, "its files");
    if (!remote) return wrong_model(uri, "cannot be had: " + remote.error().message);
    const fs::path staging = root / (".new-" + random_hex(8));
    std::size_t files = 0;
    Result<void> brought = fetch_folder(client, *remote, staging, 0, files);
    if (brought && files == 0) brought = wrong_model(uri, "has no files");
    if (brought) {
        fs::rename(staging, fetched.folder, error);
        std::error_code none;
        // Somebody else may have been faster.
        if (error && !fs::is_directory(fetched.folder, none))
            brought = cannot_make(fetched.folder, error);
    }
    fs::remove_all(staging, error);
    if (!brought) return brought.error();
    return fetched;
}

}  // namespace tune::worker
