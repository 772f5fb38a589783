#pragma once
// The inside of the agent: its parts and the loop that connects them. Used by agent*.cc only.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/system/unique_fd.h"
#include "worker/agent/agent.h"
#include "worker/agent/attempts/attempts.h"
#include "worker/agent/checkpoints/checkpoint_cleaner.h"
#include "worker/agent/checkpoints/checkpoint_transfer.h"
#include "worker/agent/devices/cgroups.h"
#include "worker/agent/devices/gpu_watch.h"
#include "worker/agent/devices/gpus.h"
#include "worker/agent/end_timers.h"
#include "worker/agent/server/server_contact.h"

namespace tune::worker {

class Agent::Impl {
public:
    AgentOptions options;
    std::string id;
    UniqueFd folder_lock;
    std::filesystem::path checkpoint_state;
    std::function<void(const AgentStatus&)> on_status;

    Result<void> build();
    Result<void> build_devices(std::vector<int> cores);
    Result<void> build_cgroups();
    Result<void> build_senders();
    void build_attempts();
    [[nodiscard]] std::vector<tuner::GpuFacts> described_gpus() const;
    Result<void> start();
    void stop(StopMode mode);
    bool wait(int deliver_ms);
    AgentStatus status() const;

private:
    [[nodiscard]] LinkEvents link_events();
    [[nodiscard]] OutboxEvents outbox_events();
    [[nodiscard]] EndEvents end_events();
    void contact(const std::string& error);
    void apply_stop(StopMode mode);
    void exclude(const std::string& uuid, const std::string& reason);
    void exclude_gpu(const std::string& uuid, const std::string& fault);
    void exclude_machine(const std::string& reason);
    void note_foreign_use(const std::string& uuid, int processes, std::int64_t bytes);
    void stop_without_server(std::int64_t away_ms);
    void publish();
    bool wait_delivered(std::unique_lock<std::mutex>& lock, int deliver_ms);
    void shut_down(bool detach, bool goodbye);

    std::unique_ptr<Loop> loop_;
    std::optional<ServerContact> contact_;
    std::optional<EndTimers> end_timers_;
    std::optional<Launcher> launcher_;
    OwnGpus gpus_;
    std::optional<Devices> devices_;
    std::unique_ptr<GpuWatch> gpu_watch_;  // null: no GPU
    bool slots_follow_gpus_ = false;
    std::optional<Cgroups> cgroups_;
    EnvironmentCapture environment_;
    GangPorts gang_ports_;
    std::unique_ptr<ServerClient> server_client_;
    std::optional<CheckpointCleaner> cleaner_;
    std::unique_ptr<Outbox> outbox_;
    std::unique_ptr<LogUpload> upload_;
    std::unique_ptr<CheckpointTransfer> transfer_;
    std::unique_ptr<Attempts> attempts_;  // loop thread only, once it runs
    std::thread thread_;
    std::string stop_reason_ = "the agent was stopped";  // loop thread
    std::optional<StopMode> applied_stop_;               // loop thread

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    AgentStatus status_;            // guarded by mutex_
    std::optional<StopMode> stop_;  // guarded by mutex_
    bool idle_ = false;             // guarded by mutex_: a stop was applied and nothing is left
    bool storing_ = false;          // guarded by mutex_: ends wait for their last checkpoint
    bool trees_gone_ = false;       // guarded by mutex_: a stop was applied, no process is left
    bool started_ = false;          // guarded by mutex_
    bool ended_ = false;            // guarded by mutex_
    bool delivered_ = true;         // guarded by mutex_; valid once ended_
};

}  // namespace tune::worker
