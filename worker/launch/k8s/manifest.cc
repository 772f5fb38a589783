// batch/v1 Jobs whose pods run one agent each. A pod that the cluster takes away (drained node,
// preemption) is made again and counts as no failure; one that fails by itself is tried three
// times. What the user lays over the pod's spec comes last.

#include "worker/launch/k8s/manifest.h"

#include <nlohmann/json.hpp>

#include "worker/launch/agent_script.h"

namespace tune::launch {
namespace {

constexpr int kBackoffLimit = 3;
constexpr int kKeepFinished_s = 600;
constexpr const char* kTokenFolder = "/var/run/secrets/tune";

Json labels_of(const Launch& launch, const std::string& unit) {
    Json labels = {{kAgentLabel, kAgentLabelValue}, {kGroupLabel, launch.group}};
    if (!unit.empty()) labels[kUnitLabel] = unit;
    return labels;
}

Json metadata_of(const Launch& launch, const std::string& name) {
    Json metadata = {{"name", name}, {"labels", labels_of(launch, name)}};
    if (!launch.study.empty()) metadata["annotations"] = {{kStudyAnnotation, launch.study}};
    return metadata;
}

/// In Kubernetes' way to write the study's bounds; limits are requests too.
Json resources_of(const KubeSettings& settings, const AgentSettings& agents) {
    Json limits = Json::object();
    if (agents.cpus > 0) limits["cpu"] = std::to_string(agents.cpus);
    if (!settings.memory.empty()) limits["memory"] = settings.memory;
    if (agents.gpus > 0) limits[settings.gpu_resource] = std::to_string(agents.gpus);
    return {{"limits", limits}, {"requests", limits}};
}

Json container_of(const KubeSettings& settings, const Launch& launch) {
    const AgentSettings& agents = launch.agents;
    const std::string state = agents.state.empty() ? "/tmp/tune-agent" : agents.state;
    const std::string script = agent_script(
        launch,
        {.engine = "k8s",
         .url = agents.server.empty() ? launch.server_url : agents.server,
         .program_word = shell_quoted(agents.program.empty() ? "tune" : agents.program),
         .state_word = shell_quoted(state),
         .name_word = "\"$HOSTNAME\"",
         .token_file_word = launch.token.empty() ? "" : std::string(kTokenFolder) + "/token"});
    Json container = {
        {"name", "agent"},
        {"image", settings.image},
        {"command", Json::array({"/bin/sh", "-c", script})},
        {"env", Json::array({{{"name", "TUNE_NODE_NAME"},
                              {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}})},
        {"resources", resources_of(settings, agents)}};
    Json mounts = Json::array();
    if (!launch.token.empty())
        mounts.push_back({{"name", "token"}, {"mountPath", kTokenFolder}, {"readOnly", true}});
    for (const std::string& volume : settings.volumes) {
        const std::size_t colon = volume.find(':');
        mounts.push_back({{"name", "claim-" + volume.substr(0, colon)},
                          {"mountPath", volume.substr(colon + 1)}});
    }
    if (!mounts.empty()) container["volumeMounts"] = std::move(mounts);
    return container;
}

Json volumes_of(const KubeSettings& settings, const Launch& launch) {
    Json volumes = Json::array();
    if (!launch.token.empty())
        volumes.push_back(
            {{"name", "token"}, {"secret", {{"secretName", launch.group}, {"defaultMode", 0400}}}});
    for (const std::string& volume : settings.volumes) {
        const std::string claim = volume.substr(0, volume.find(':'));
        volumes.push_back(
            {{"name", "claim-" + claim}, {"persistentVolumeClaim", {{"claimName", claim}}}});
    }
    return volumes;
}

Json pod_spec_of(const KubeSettings& settings, const Launch& launch) {
    Json spec = {{"restartPolicy", "Never"},
                 {"terminationGracePeriodSeconds", settings.grace_ms / 1000},
                 {"containers", Json::array({container_of(settings, launch)})}};
    if (!settings.service_account.empty()) spec["serviceAccountName"] = settings.service_account;
    if (!settings.priority_class.empty()) spec["priorityClassName"] = settings.priority_class;
    if (Json volumes = volumes_of(settings, launch); !volumes.empty())
        spec["volumes"] = std::move(volumes);
    if (!settings.pod_json.empty())
        if (const Result<Json> more = parse_json(settings.pod_json)) spec.merge_patch(*more);
    return spec;
}

Json job_spec_of(const KubeSettings& settings, const Launch& launch, const std::string& unit) {
    const int count = launch.agents.nodes;
    Json pod_metadata = {{"labels", labels_of(launch, unit)}};
    return {
        {"parallelism", count},
        {"completions", count},
        {"completionMode", "Indexed"},
        {"backoffLimit", kBackoffLimit},
        {"podFailurePolicy",
         {{"rules", Json::array({{{"action", "Ignore"},
                                  {"onPodConditions", Json::array({{{"type", "DisruptionTarget"},
                                                                    {"status", "True"}}})}}})}}},
        {"template", {{"metadata", pod_metadata}, {"spec", pod_spec_of(settings, launch)}}}};
}

void add_queue(const KubeSettings& settings, Json& object) {
    if (settings.queue.empty()) return;
    object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = settings.queue;
    object["spec"]["suspend"] = true;
}

}  // namespace

std::string selector_of(const std::string& group) {
    std::string selector = std::string(kAgentLabel) + "=" + kAgentLabelValue;
    if (!group.empty()) selector += std::string(",") + kGroupLabel + "=" + group;
    return selector;
}

Json job_manifest(const KubeSettings& settings, const Launch& launch, const std::string& name) {
    Json job = {{"apiVersion", "batch/v1"},
                {"kind", "Job"},
                {"metadata", metadata_of(launch, name)},
                {"spec", job_spec_of(settings, launch, name)}};
    job["spec"]["ttlSecondsAfterFinished"] = kKeepFinished_s;
    add_queue(settings, job);
    return job;
}

Json jobset_manifest(const KubeSettings& settings, const Launch& launch, const std::string& name) {
    Json job = job_spec_of(settings, launch, name);
    Json set = {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                {"kind", "JobSet"},
                {"metadata", metadata_of(launch, name)},
                {"spec",
                 {{"network", {{"enableDNSHostnames", true}}},
                  {"failurePolicy", {{"maxRestarts", kBackoffLimit}}},
                  {"ttlSecondsAfterFinished", kKeepFinished_s},
                  {"replicatedJobs", Json::array({{{"name", "agents"},
                                                   {"replicas", 1},
                                                   {"template", {{"spec", std::move(job)}}}}})}}}};
    add_queue(settings, set);
    return set;
}

Json secret_manifest(const Launch& launch) {
    return {{"apiVersion", "v1"},
            {"kind", "Secret"},
            {"type", "Opaque"},
            {"metadata", {{"name", launch.group}, {"labels", labels_of(launch, "")}}},
            {"stringData", {{"token", launch.token}}}};
}

}  // namespace tune::launch
