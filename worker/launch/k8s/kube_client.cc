// A watch is an answer without an end: a JSON object a line, each an event. It starts from the
// version of the last list, and its end (a time limit, a broken connection, 410 Gone) is met by a
// new list, so that nothing is missed.

#include "worker/launch/k8s/kube_client.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/text/percent.h"

namespace tune::launch {
namespace {

constexpr int kWatch_s = 240;
constexpr int kWatchSilence_ms = (kWatch_s + 30) * 1000;
constexpr auto kPause = std::chrono::seconds(2);
constexpr std::size_t kEventBytesMax = 8u << 20;

}  // namespace

Result<std::unique_ptr<tracker::Client>> make_kube_client(const KubeAccess& access) {
    tracker::ClientOptions options{.url = access.server, .timeout_ms = 30'000, .retries = 1};
    if (!access.token.empty()) options.authorization = "Bearer " + access.token;
    options.tls.ca_path = access.ca_file;
    options.tls.client_certificate = access.client_certificate;
    options.tls.is_unverified = access.is_unverified;
    return tracker::Client::create(std::move(options));
}

Error explain_kube_error(Error error) {
    if (error.code == Code::kUnauthenticated)
        error.message = "the cluster does not accept the credentials (" + error.message +
                        "): they may have expired; log in again";
    else if (error.code == Code::kPermissionDenied)
        error.message +=
            " (needed: create, get, list, watch and delete of jobs and secrets, get, "
            "list and watch of pods)";
    else if (error.code == Code::kTemporarilyUnavailable)
        error.message = "the cluster cannot be reached: " + error.message;
    return error;
}

Result<std::unique_ptr<PodWatch>> PodWatch::start(const KubeAccess& access,
                                                  const std::string& selector) {
    TUNE_TRY(client, make_kube_client(access));
    std::unique_ptr<PodWatch> watch(new PodWatch(
        std::move(client), "/api/v1/namespaces/" + percent_encode(access.name_space, false) +
                               "/pods?labelSelector=" + percent_encode(selector, false)));
    if (Result<void> listed = watch->list(); !listed) return explain_kube_error(listed.error());
    watch->thread_ = std::thread([self = watch.get()] { self->follow(); });
    return watch;
}

PodWatch::~PodWatch() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        ended_.notify_all();
    }
    client_->cancel();
    if (thread_.joinable()) thread_.join();
}

Result<std::map<std::string, Json>> PodWatch::pods() const {
    const std::lock_guard lock(mutex_);
    if (!error_.empty()) return Error{Code::kTemporarilyUnavailable, error_};
    return pods_;
}

Result<void> PodWatch::list() {
    TUNE_TRY(answer, client_->get(path_));
    std::map<std::string, Json> pods;
    for (const Json& pod : answer.value("items", Json::array()))
        pods[pod["metadata"].value("name", "")] = pod;
    version_ = answer.value("metadata", Json::object()).value("resourceVersion", "");
    const std::lock_guard lock(mutex_);
    pods_ = std::move(pods);
    error_.clear();
    return {};
}

Result<void> PodWatch::take(const std::string& line) {
    TUNE_TRY(event, parse_json(line));
    const std::string type = event.value("type", "");
    const Json object = event.value("object", Json::object());
    if (type == "ERROR")
        return Error{Code::kInvalidState, object.value("message", "the watch has ended")};
    const Json metadata = object.value("metadata", Json::object());
    version_ = metadata.value("resourceVersion", version_);
    const std::lock_guard lock(mutex_);
    if (type == "DELETED")
        pods_.erase(metadata.value("name", ""));
    else if (type == "ADDED" || type == "MODIFIED")
        pods_[metadata.value("name", "")] = object;
    return {};
}

Result<void> PodWatch::watch() {
    std::string rest;
    const auto sink = [&](std::string_view bytes) -> Result<void> {
        rest += bytes;
        for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
            const std::string line = rest.substr(0, end);
            rest.erase(0, end + 1);
            if (!line.empty()) TUNE_TRY_VOID(take(line));
        }
        if (rest.size() > kEventBytesMax)
            return Error{Code::kResourceExhausted, "an event of the watch is too large"};
        return {};
    };
    return client_->get_file(path_ + "&watch=1&allowWatchBookmarks=true&timeoutSeconds=" +
                                 std::to_string(kWatch_s) + "&resourceVersion=" + version_,
                             sink, kWatchSilence_ms);
}

void PodWatch::follow() {
    for (;;) {
        static_cast<void>(watch());  // however it ends, a new list says what is true
        {
            const std::lock_guard lock(mutex_);
            if (stop_) return;
        }
        const Result<void> listed = list();
        std::unique_lock lock(mutex_);
        if (stop_) return;
        if (listed) continue;
        error_ = explain_kube_error(listed.error()).message;
        ended_.wait_for(lock, kPause, [this] { return stop_; });
        if (stop_) return;
    }
}

}  // namespace tune::launch
