#include "tuner/study/placement/needs_estimate.h"

#include <algorithm>
#include <string>

namespace tune::tuner {
namespace {

/// A trial whose attempts were lost so often runs without neighbours: it may be what ended their
/// pools.
constexpr int kLostBesideOthers = 2;

}  // namespace

TrialNeeds NeedsEstimate::of_next() const {
    const StudyConfig& config = definition_.config();
    const ResourcesConfig& resources = config.resources;
    TrialNeeds needs{.cpus = cpus_of_process(config),
                     .memory_bytes = resources.memory_bytes,
                     .gpus = gpus_of_process(config),
                     .gpu_bytes = resources.gpu_memory_bytes,
                     .labels = resources.labels};
    needs.is_learned = resources.learns_memory || resources.learns_gpu_memory;
    if (resources.learns_memory) needs.memory_bytes = memory_.estimate().value_or(0);
    if (resources.learns_gpu_memory) needs.gpu_bytes = gpu_memory_.estimate().value_or(0);
    if (resources.pool > 0) {
        const Trial* next = trials_.next_queued();
        const bool is_alone = next != nullptr && next->lost_attempts >= kLostBesideOthers;
        needs.pool = is_alone ? 1 : resources.pool;
        needs.pool_of = std::to_string(definition_.identity().experiment_id);
        if (is_alone) needs.pool_of += "-" + std::to_string(next->number);
    }
    if (resources.processes > 0)
        needs.shapes = equal_shapes(resources.processes);
    else
        needs.shapes = {{resources.nnodes, resources.nproc}};
    return needs;
}

void NeedsEstimate::note_peaks(Trial& trial, const FinishRequest& request) {
    const std::vector<Member>& members = trial.progress->holder.members;
    const Part part = members.empty() ? Part() : members.front().part;
    const std::int64_t memory = request.peak_memory_bytes / std::max(part.nproc, 1);
    trial.peak_memory_bytes = std::max(trial.peak_memory_bytes, memory);
    trial.peak_gpu_memory_bytes =
        std::max(trial.peak_gpu_memory_bytes, request.peak_gpu_memory_bytes);
    memory_.note(memory);
    gpu_memory_.note(request.peak_gpu_memory_bytes);
    if (request.outcome != Outcome::kOom) return;
    if (part.memory_bytes > 0) memory_.note_shortage(part.memory_bytes / std::max(part.nproc, 1));
    if (!part.gpus.empty() && part.gpus.front().bytes > 0)
        gpu_memory_.note_shortage(part.gpus.front().bytes);
}

void NeedsEstimate::note_peaks(const Trial& trial) {
    memory_.note(trial.peak_memory_bytes);
    gpu_memory_.note(trial.peak_gpu_memory_bytes);
}

}  // namespace tune::tuner
