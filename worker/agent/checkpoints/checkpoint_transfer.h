#pragma once
// Checkpoints on their way: saved in the background while trials run, saved once more before an end
// is reported, and fetched before an attempt starts; and the models that trials leave. All disks
// and networks are waited for here, on threads of its own, never on the loop.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/agent/checkpoints/checkpoint_sync.h"
#include "worker/agent/models/logged_model.h"
#include "worker/agent/models/registered_model.h"
#include "worker/agent/server/sender.h"

namespace tune::worker {

/// Where a run's sets are: "artifacts" or "file:///folder".
struct StoredAt {
    std::string store = {};
    std::string run_id = {};

    friend bool operator==(const StoredAt&, const StoredAt&) = default;
};

/// One folder that an attempt needs: its own or its parent's.
struct FetchTarget {
    StoredAt at;
    std::filesystem::path state;  // where the folder's record is, and its key (folder_record.h)
    std::string key;
    std::filesystem::path folder;
    std::filesystem::path staging;
    /// Of the last attempt that this machine's folder is of; 0: there is none.
    int local_attempt = 0;
};

struct CheckpointJob {
    enum class Kind { kSave, kSaveFinally, kClear, kFetch, kModel };
    std::uint64_t serial = 0;  // of the attempt, or any unique number
    Kind kind = Kind::kSave;
    StoredAt at = {};
    std::string token = {};  // of the attempt; empty: the agent's own login
    SaveOrder order = {};
    // Of kFetch: folders, and models by their names in the registry, for which `model_root` is.
    std::vector<FetchTarget> targets = {};
    std::vector<std::string> models = {};
    std::filesystem::path model_root = {};
    ModelOrder model = {};  // of kModel
};

/// What became of a job.
struct CheckpointResult {
    std::optional<Error> error = {};  // of the store; what is on this machine is untouched
    std::optional<Saved> saved = {};  // of a save
    // Of a fetch:
    std::vector<std::string> notes = {};    // sentences for the user
    std::vector<FetchedModel> models = {};  // that are here now
    std::optional<Error> model_error = {};  // why the others are not, where that is the user's
};

/// All methods from any thread.
class CheckpointTransfer final : public Sender {
public:
    /// Called on its threads, after each job but those that were dropped.
    using Done = std::function<void(const CheckpointJob& job, const CheckpointResult& result)>;

    [[nodiscard]] static Result<std::unique_ptr<CheckpointTransfer>> create(std::string server_url,
                                                                            Done done);
    ~CheckpointTransfer() override;

    /// One kSave an attempt waits at a time, and it gives way to the others. Jobs of one run go one
    /// after another. kSave is tried once; the others as long as the error is passing.
    void submit(CheckpointJob job);
    /// Ends the jobs with this number; `done` is called for one that runs.
    void give_up(std::uint64_t serial);
    /// There will be no more jobs of this attempt.
    void forget(std::uint64_t serial);
    void stop();

private:
    static constexpr int kThreads = 2;
    struct Active {
        std::uint64_t serial = 0;
        tracker::Client* client = nullptr;
        bool is_given_up = false;
    };

    CheckpointTransfer(std::string server_url, Done done)
        : server_url_(std::move(server_url)), done_(std::move(done)) {}
    void work(tracker::Client& client) override;
    [[nodiscard]] std::optional<CheckpointJob> next();
    [[nodiscard]] CheckpointResult run(const CheckpointJob& job, Active& active);
    [[nodiscard]] Result<void> run_once(const CheckpointJob& job, Active& active,
                                        CheckpointResult& result);
    [[nodiscard]] Result<void> send_model(const CheckpointJob& job, Active& active);
    [[nodiscard]] Result<void> fetch_models(const CheckpointJob& job, Active& active,
                                            CheckpointResult& result);
    [[nodiscard]] Result<void> fetch(const FetchTarget& target, const CheckpointJob& job,
                                     Active& active, CheckpointResult& result);
    [[nodiscard]] Result<std::unique_ptr<CheckpointStore>> open(
        const StoredAt& at, const std::string& token, Active& active,
        std::unique_ptr<tracker::Client>& client);
    [[nodiscard]] Result<std::unique_ptr<tracker::Client>> open_client(const std::string& token,
                                                                       Active& active);
    void let_go(Active& active);

    const std::string server_url_;
    const Done done_;
    // Guarded by mutex_:
    std::deque<CheckpointJob> jobs_;
    std::set<std::string> busy_;  // runs
    std::vector<Active*> active_;
    std::map<std::uint64_t, std::shared_ptr<SaveState>> states_;  // by serial
};

}  // namespace tune::worker
