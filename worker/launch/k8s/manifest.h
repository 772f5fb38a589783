#pragma once
// The objects that agents are made of at a Kubernetes API, as JSON. Nothing is sent from here.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "worker/launch/engine.h"

namespace tune::launch {

struct KubeSettings {
    std::string image;
    std::string name_space;
    std::string context;
    std::string kubeconfig;
    std::string queue;  // of Kueue; empty: none
    std::string priority_class;
    std::string service_account;
    std::string memory;
    std::string gpu_resource = "nvidia.com/gpu";
    std::int64_t grace_ms = 60'000;
    std::vector<std::string> volumes;  // NAME:PATH, of claims
    std::string pod_json;              // an object laid over the pod's spec; empty: nothing

    [[nodiscard]] bool operator==(const KubeSettings&) const = default;
};

/// Labels by which our objects are found.
inline constexpr const char* kAgentLabel = "app.kubernetes.io/name";
inline constexpr const char* kAgentLabelValue = "tune-agent";
inline constexpr const char* kGroupLabel = "tune.dev/group";
inline constexpr const char* kUnitLabel = "tune.dev/unit";  ///< the Job or JobSet of a pod
inline constexpr const char* kStudyAnnotation = "tune.dev/study";

/// "app.kubernetes.io/name=tune-agent,tune.dev/group=..." ; an empty group: all of ours.
[[nodiscard]] std::string selector_of(const std::string& group);

/// A Job of one agent, called `name`. With a queue it starts suspended: Kueue admits it.
[[nodiscard]] Json job_manifest(const KubeSettings& settings, const Launch& launch,
                                const std::string& name);
/// A JobSet of one gang: as many agents as the setting `nodes`, in one indexed Job.
[[nodiscard]] Json jobset_manifest(const KubeSettings& settings, const Launch& launch,
                                   const std::string& name);
/// The token of the agents, as a file that they mount.
[[nodiscard]] Json secret_manifest(const Launch& launch);

}  // namespace tune::launch
