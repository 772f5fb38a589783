// The engine `k8s`: a Job an agent, a JobSet a gang, by the API with a watch of the pods. Objects
// carry the group as a label, by which they are found again. A deletion is in the foreground: the
// object stays until its pods are gone, so that the list is empty only when nothing runs.

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "base/id.h"
#include "base/text/percent.h"
#include "worker/launch/agent_script.h"
#include "worker/launch/engine.h"
#include "worker/launch/k8s/kube_client.h"
#include "worker/launch/k8s/manifest.h"
#include "worker/launch/option_rows.h"
#include "worker/launch/program.h"

namespace tune::launch {
namespace {

/// The oldest minor version of 1.x: Jobs with suspend, completion indexes and podFailurePolicy.
constexpr int kOldestMinor = 26;

constexpr const char* kJobs = "/apis/batch/v1/namespaces/";
constexpr const char* kJobSets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/";

Result<void> read_pod(const tuner::Fields& fields, KubeSettings& settings) {
    const tuner::Node* node = fields.find("pod");
    if (node == nullptr) return {};
    if (node->type != tuner::Node::Type::kMap)
        return tuner::error_at(
            node->place, fields.path_of("pod"),
            "expected a map of fields of a pod's spec, found " + tuner::describe(*node));
    settings.pod_json = to_text(tuner::to_json(*node));
    return {};
}

const tuner::OptionTable& kube_options() {
    static const tuner::OptionTable kOptions = [] {
        using S = KubeSettings;
        tuner::TableOf<S> table;
        table.text("image", &S::image, 1024, "image that holds `tune` and what trials need")
            .must_be_given("an image that holds `tune` and what the trials need");
        table.text("namespace", &S::name_space, 63, "namespace (default: the context's)");
        table.text("context", &S::context, 256, "context of the kubeconfig (default: the current)");
        table.text("kubeconfig", &S::kubeconfig, 4096,
                   "kubeconfig (default: KUBECONFIG, ~/.kube/config, the pod's service account)");
        table.text("queue", &S::queue, 63, "local queue of Kueue that admits the agents");
        table.text("priority_class", &S::priority_class, 253, "priority class of the pods");
        table.text("service_account", &S::service_account, 253, "service account of the pods");
        table.text("memory", &S::memory, 64, "memory of an agent: 16Gi");
        table.text("gpu_resource", &S::gpu_resource, 253, "what a GPU is called");
        add_duration(table, "grace", &S::grace_ms,
                     "time between the end of a pod and its kill: trials stop in it");
        add_texts(table, "volumes", &S::volumes, 100,
                  "persistent volume claims that agents mount: CLAIM:/path");
        table.custom("pod",
                     {.type = "map",
                      .schema = R"({"type": "object"})",
                      .api = "object",
                      .read = read_pod,
                      .write =
                          [](const S& settings, Json& json) {
                              if (const auto pod = parse_json(settings.pod_json))
                                  json["pod"] = *pod;
                          }},
                     "fields that are laid over the pod's spec: nodeSelector, tolerations, ...");
        return table;
    }();
    return kOptions;
}

std::string kube_text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json kube_part(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() ? *found : Json();
}

/// The condition of this type that holds; null without one.
Json condition_of(const Json& object, const char* type) {
    const Json conditions = kube_part(kube_part(object, "status"), "conditions");
    for (const Json& condition : conditions)
        if (kube_text(condition, "type") == type && kube_text(condition, "status") == "True")
            return condition;
    return nullptr;
}

/// Why a pod waits: no node has room, or its image cannot be had.
std::string waiting_text(const Json& pod) {
    const Json status = kube_part(pod, "status");
    for (const Json& container : kube_part(status, "containerStatuses")) {
        const Json waiting = kube_part(kube_part(container, "state"), "waiting");
        const std::string reason = kube_text(waiting, "reason");
        if (reason == "ErrImagePull" || reason == "ImagePullBackOff" ||
            reason == "InvalidImageName")
            return "its image cannot be pulled: " + kube_text(container, "image") + " (" + reason +
                   (kube_text(waiting, "message").empty() ? "" : ": ") +
                   kube_text(waiting, "message") + ")";
        if (!reason.empty()) return reason;
    }
    for (const Json& condition : kube_part(status, "conditions"))
        if (kube_text(condition, "type") == "PodScheduled" &&
            kube_text(condition, "status") == "False")
            return "no node has room: " + kube_text(condition, "message");
    return "its pod starts";
}

class KubeEngine final : public Engine {
public:
    KubeEngine(KubeSettings settings, Launch launch)
        : settings_(std::move(settings)), launch_(std::move(launch)) {}

    Result<void> prepare() override {
        if (launch_.agents.server.empty() && is_loopback_url(launch_.server_url))
            return unreachable_server(launch_.server_url, "pods");
        TUNE_TRY_VOID(connect());
        TUNE_TRY_VOID(check_cluster());
        TUNE_TRY_VOID(check_request());
        if (launch_.token.empty()) return {};
        static_cast<void>(client_->remove(secrets() + "/" + launch_.group, Json::object()));
        const Result<Json> made = client_->post(secrets(), secret_manifest(launch_));
        return made ? Result<void>() : explain_kube_error(made.error());
    }

    Result<void> start(int count) override {
        TUNE_TRY_VOID(connect());
        for (int i = 0; i < count; ++i) {
            const Result<Json> made = client_->post(units(), manifest(unit_name()));
            if (!made) return explain_kube_error(made.error());
        }
        return {};
    }

    /// Credentials of clouds last minutes, a study days: what is refused is read anew and tried
    /// once more. Everything else that is asked of the cluster follows a list.
    Result<std::vector<AgentJob>> list() override {
        Result<std::vector<AgentJob>> jobs = list_now();
        if (jobs || jobs.error().code != Code::kUnauthenticated) return jobs;
        pods_.reset();
        client_.reset();
        return list_now();
    }

    Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) override {
        if (kind == StopKind::kDrain)
            return Error{Code::kInvalidParameterValue,
                         "a cluster cannot ask its pods to take no more trials: `tune pause` the "
                         "study instead, or leave --drain out: what runs then continues from its "
                         "checkpoint elsewhere"};
        TUNE_TRY_VOID(connect());
        for (const AgentJob& job : jobs) {
            const bool is_set = job.id.starts_with("jobset/");
            const std::string name = job.id.substr(job.id.find('/') + 1);
            const Result<Json> gone = client_->remove(
                path_of(is_set ? kJobSets : kJobs, is_set ? "/jobsets/" : "/jobs/") + name,
                {{"propagationPolicy", "Foreground"}});
            if (!gone && gone.error().code != Code::kResourceDoesNotExist &&
                gone.error().code != Code::kEndpointNotFound)
                return explain_kube_error(gone.error());
            if (kind == StopKind::kKill) kill_pods(name);
        }
        return {};
    }

    std::string last_output(const AgentJob& job) override {
        if (!pods_ || !client_) return {};
        const auto pods = pods_->pods();
        std::string text;
        if (!pods) return text;
        for (const auto& [name, pod] : *pods) {
            if (unit_of(pod) != job.id.substr(job.id.find('/') + 1)) continue;
            text.clear();
            static_cast<void>(client_->get_file(
                pod_path(name) + "/log?tailLines=20",
                [&text](std::string_view bytes) -> Result<void> {
                    text += bytes;
                    return {};
                },
                10'000));
        }
        return last_lines(text, 20);
    }

    void clear() override {
        if (!client_ || launch_.token.empty()) return;
        static_cast<void>(client_->remove(secrets() + "/" + launch_.group, Json::object()));
    }

private:
    Result<std::vector<AgentJob>> list_now() {
        TUNE_TRY_VOID(connect());
        if (!pods_) {
            TUNE_TRY(watch, PodWatch::start(access_, selector_of(launch_.group)));
            pods_ = std::move(watch);
        }
        std::vector<AgentJob> jobs;
        const bool wants_sets = is_gang() || launch_.group.empty();
        for (const char* api : {kJobs, kJobSets}) {
            const bool is_set = api == kJobSets;
            if (is_set ? !wants_sets : is_gang()) continue;
            Result<Json> answer =
                client_->get(path_of(api, is_set ? "/jobsets" : "/jobs") +
                             "?labelSelector=" + percent_encode(selector_of(launch_.group), false));
            if (!answer && is_set && !is_gang()) continue;  // a cluster without JobSet
            if (!answer) return explain_kube_error(answer.error());
            // After the objects: what is deleted by now has no pods either.
            TUNE_TRY(pods, pods_->pods());
            for (const Json& object : kube_part(*answer, "items"))
                if (kube_part(kube_part(object, "metadata"), "ownerReferences").is_null())
                    jobs.push_back(job_of(object, pods, is_set));
        }
        return jobs;
    }

    [[nodiscard]] bool is_gang() const { return launch_.agents.nodes > 1; }
    [[nodiscard]] std::string path_of(const char* api, const char* kind) const {
        return api + percent_encode(access_.name_space, false) + kind;
    }
    [[nodiscard]] std::string units() const {
        return is_gang() ? path_of(kJobSets, "/jobsets") : path_of(kJobs, "/jobs");
    }
    [[nodiscard]] std::string secrets() const { return path_of("/api/v1/namespaces/", "/secrets"); }
    [[nodiscard]] std::string pod_path(const std::string& name) const {
        return path_of("/api/v1/namespaces/", "/pods/") + name;
    }
    [[nodiscard]] Json manifest(const std::string& name) const {
        return is_gang() ? jobset_manifest(settings_, launch_, name)
                         : job_manifest(settings_, launch_, name);
    }
    /// Short: a pod's name is made of it and must stay below 64 characters.
    [[nodiscard]] std::string unit_name() const {
        const std::size_t hash = launch_.group.rfind('-');
        return "tune" + launch_.group.substr(hash) + "-" + random_hex(4);
    }
    static std::string unit_of(const Json& pod) {
        return kube_text(kube_part(kube_part(pod, "metadata"), "labels"), kUnitLabel);
    }

    Result<void> connect() {
        if (client_) return {};
        const char* const named = std::getenv("TUNE_RUNTIME_DIR");
        const std::string folder =
            named != nullptr && *named != '\0' ? named : "/tmp/tune-" + std::to_string(geteuid());
        TUNE_TRY(access, read_kube_config({.file = settings_.kubeconfig,
                                           .context = settings_.context,
                                           .scratch = folder + "/kube"}));
        if (!settings_.name_space.empty()) access.name_space = settings_.name_space;
        TUNE_TRY(client, make_kube_client(access));
        access_ = std::move(access);
        client_ = std::move(client);
        return {};
    }

    Result<void> check_cluster() {
        const Result<Json> version = client_->get("/version");
        if (!version) return explain_kube_error(version.error());
        const std::string text = kube_text(*version, "minor");  // "27", or "27+" of a cloud
        int minor = 0;
        std::from_chars(text.data(), text.data() + text.size(), minor);
        if (kube_text(*version, "major") != "1" || minor < kOldestMinor)
            return Error{Code::kInvalidParameterValue,
                         "Kubernetes " + kube_text(*version, "gitVersion") +
                             " is not supported; agents need 1." + std::to_string(kOldestMinor) +
                             " or later"};
        if (!is_gang()) return {};
        if (client_->get("/apis/jobset.x-k8s.io/v1alpha2")) return {};
        return Error{Code::kInvalidParameterValue,
                     "the cluster has no JobSet (jobset.x-k8s.io/v1alpha2), which starts gangs: "
                     "install it, or say 'nodes: 1', and agents start one by one"};
    }

    /// The API's own opinion: rights, quota, admission, the namespace, and fields that it does not
    /// know, which it only warns of by itself. Nothing is made.
    Result<void> check_request() {
        const Result<Json> made =
            client_->post(units() + "?dryRun=All&fieldValidation=Strict", manifest(unit_name()));
        if (made) return {};
        Error error = explain_kube_error(made.error());
        error.message = "the cluster refuses these agents: " + error.message;
        return error;
    }

    [[nodiscard]] AgentJob job_of(const Json& object, const std::map<std::string, Json>& pods,
                                  bool is_set) const {
        const Json metadata = kube_part(object, "metadata");
        const Json labels = kube_part(metadata, "labels");
        const std::string name = kube_text(metadata, "name");
        AgentJob job{.id = (is_set ? "jobset/" : "job/") + name,
                     .group = kube_text(labels, kGroupLabel),
                     .study = kube_text(kube_part(metadata, "annotations"), kStudyAnnotation),
                     .agents = is_set ? launch_.agents.nodes : 1};
        const Json failed = condition_of(object, "Failed");
        const bool is_complete = !condition_of(object, "Complete").is_null() ||
                                 !condition_of(object, "Completed").is_null();
        if (!failed.is_null() || is_complete) {
            job.state = is_complete ? AgentJob::State::kEnded : AgentJob::State::kFailed;
            if (!failed.is_null())
                job.reason = kube_text(failed, "reason") + ": " + kube_text(failed, "message");
            return job;
        }
        const Json suspend = kube_part(kube_part(object, "spec"), "suspend");
        if (suspend.is_boolean() && suspend.get<bool>()) {
            job.reason = "queue " + settings_.queue + " has not admitted it (Kueue)";
            return job;
        }
        read_pods(name, pods, job);
        return job;
    }

    static void read_pods(const std::string& unit, const std::map<std::string, Json>& pods,
                          AgentJob& job) {
        job.reason = "it has no pod yet";
        int running = 0;
        int waiting = 0;
        for (const auto& [name, pod] : pods) {
            if (unit_of(pod) != unit) continue;
            const std::string phase = kube_text(kube_part(pod, "status"), "phase");
            if (phase == "Running") {
                ++running;
                job.host = kube_text(kube_part(pod, "spec"), "nodeName");
            } else if (phase == "Pending") {
                ++waiting;
                job.reason = waiting_text(pod);
            }
        }
        if (running == 0 || waiting > 0) return;
        job.state = AgentJob::State::kRunning;
        job.reason.clear();
    }

    void kill_pods(const std::string& unit) {
        const auto pods =
            pods_
                ? pods_->pods()
                : Result<std::map<std::string, Json>>(Error{Code::kInvalidState, "not listed yet"});
        if (!pods) return;
        for (const auto& [name, pod] : *pods)
            if (unit_of(pod) == unit)
                static_cast<void>(client_->remove(pod_path(name), {{"gracePeriodSeconds", 0}}));
    }

    KubeSettings settings_;
    Launch launch_;
    KubeAccess access_;
    std::unique_ptr<tracker::Client> client_;
    std::unique_ptr<PodWatch> pods_;
};

Result<std::unique_ptr<Engine>> create_kube(const tuner::Fields& fields, Launch launch) {
    TUNE_TRY_VOID(kube_options().check_given(fields.node(), fields.path()));
    KubeSettings settings;
    TUNE_TRY_VOID(kube_options().read(fields, &settings));
    for (const std::string& volume : settings.volumes)
        if (volume.find(":/") == std::string::npos || volume.starts_with(':'))
            return tuner::error_at(fields.node().place, fields.path_of("volumes"),
                                   "expected CLAIM:/path, found " + tuner::in_quotes(volume));
    return std::unique_ptr<Engine>(
        std::make_unique<KubeEngine>(std::move(settings), std::move(launch)));
}

}  // namespace

extern const EngineKind kKubernetesEngine;
const EngineKind kKubernetesEngine = {"k8s", "pods of a Kubernetes cluster", kube_options,
                                      create_kube};

}  // namespace tune::launch
