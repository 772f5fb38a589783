#pragma once
// What the command line says, verb by verb, as plain structs: main.cc fills them, each verb has its
// own file. An exit code is 0 ok, 1 failed, 2 usage, 3 no complete trial, 4 time or cost hit, 130
// interrupted.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tune::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoTrial = 3;
inline constexpr int kExitTime = 4;
inline constexpr int kExitInterrupted = 130;

inline constexpr const char* kDefaultServer = "http://127.0.0.1:5000";
inline constexpr const char* kDefaultData = "./tune-data";

/// Files of `tune server`; without a certificate it speaks plain HTTP.
struct ServerTls {
    std::string certificate = {};
    std::string key = {};
    std::string client_authority = {};
    bool is_client_required = false;
};

/// Where a server listens, and what protects it there.
struct ListenFlags {
    std::string host = "127.0.0.1";
    std::string auth = "token";  ///< or "basic" or "off"
    bool insecure_no_auth = false;
    bool insecure_no_tls = false;
    ServerTls tls = {};
};

struct ServerCommand {
    ListenFlags listen = {};
    std::uint16_t port = 5000;
    std::string data = kDefaultData;
    std::size_t connections = 0;  ///< 0: as many as open files allow, at most 16,384
    std::size_t connections_per_client = 1536;
    std::vector<std::string> allowed_hosts = {};
    std::vector<std::string> allowed_origins = {};
    std::string static_prefix = {};
    int threads = 2;
    std::string heartbeat = "10s";
    std::string lease_ttl = "40s";
    bool webhook_allow_private = false;
    bool webhook_allow_http = false;
    std::string webhook_ca = {};
    std::string webhook_timeout = "30s";
    std::string webhook_backoff = "1s";
    int webhook_retries = 3;
    std::string default_permission = "READ";
    std::string creators = "everybody";  ///< or "granted" or "admins"
    std::string study_creators = "everybody";
    std::string admin_password_file = {};
    bool json = false;
};

/// What describes a study: file, inline parameters and flags; for `run` and `plan`.
struct StudyFlags {
    std::vector<std::string> words = {};  ///< a file and NAME=SPEC, in any order
    std::vector<std::string> command = {};
    std::optional<std::string> study = {};
    std::optional<std::uint64_t> trials = {};
    std::optional<std::string> metric = {};
    std::optional<int> parallel = {};
    std::vector<std::string> forbid = {};
    std::optional<std::string> time = {};
    std::vector<double> target = {};
    std::optional<std::uint64_t> no_progress = {};          ///< trials
    std::optional<std::uint64_t> stop_after_failures = {};  ///< 0: never
    std::optional<int> priority = {};
    std::optional<std::string> register_as = {};
    std::optional<std::string> warm_start = {};  ///< a study, or a file
    std::optional<std::uint64_t> seed = {};
    std::optional<std::string> sampler = {};
    std::optional<std::string> pruner = {};
    std::vector<std::string> scrape = {};
    // What each process of a trial has to itself, and how many processes a trial is.
    std::optional<int> nproc = {};
    std::optional<int> pool = {};
    std::optional<int> nnodes = {};
    std::optional<int> processes = {};
    std::optional<int> cpus = {};
    std::optional<int> gpus = {};
    std::optional<std::string> memory = {};
    std::optional<std::string> gpu_memory = {};
    std::vector<std::string> labels = {};
    // Where checkpoints are kept besides the agents' disks.
    std::optional<std::string> checkpoint_store = {};
    std::optional<std::string> checkpoint_every = {};
    std::optional<int> checkpoint_keep = {};
    std::optional<std::string> checkpoint_after = {};
};

/// Where agents are started, if not here (tuner/cli/launch).
struct EngineFlags {
    std::optional<std::string> on = {};       ///< NAME[,key=value...]
    std::optional<std::string> engines = {};  ///< the file of engines
    std::optional<int> agents = {};           ///< most agents at a time
};

struct RunCommand {
    StudyFlags study = {};
    EngineFlags engine = {};
    std::optional<std::string> server = {};
    ListenFlags listen = {};
    std::optional<std::uint16_t> port = {};
    std::string data = kDefaultData;
    bool no_agent = false;
    bool extend = false;  ///< go on with another space
    bool quiet = false;
    bool json = false;
};

struct PlanCommand {
    StudyFlags study = {};
    /// Whose agents are asked whether they can run it; nothing in either: nobody is.
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::optional<std::string> trial_time = {};
    bool json = false;
};

struct AgentCommand {
    std::string server = kDefaultServer;
    std::string state = "./tune-agent";
    std::string checkpoints = {};  ///< empty: within `state`
    int slots = 0;
    int cpus = 0;
    std::string memory = {};             ///< empty: all
    std::vector<std::string> gpus = {};  ///< UUID or UUID=MEMORY, or how many; empty: all
    std::vector<std::string> labels = {};
    std::string address = {};  ///< empty: the one that leads to the server
    bool no_gpus = false;
    std::string foreign_gpu_use = "ignore";
    std::optional<std::string> idle_exit = {};
    std::optional<std::string> time_limit = {};
    std::string cgroup = "auto";
    std::optional<std::string> trial_memory = {};
    std::int64_t trial_processes = 0;
    std::vector<std::string> log_rules = {};  ///< ACTION:PATTERN
};

/// ls, show, best, pause, resume, stop, rename, rm, restore --study.
struct StudyCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::string new_name = {};
    bool json = false;
};

/// alert add, ls, rm.
struct AlertCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string kind = {};
    std::string alert_id = {};
    std::optional<std::string> experiment = {};
    std::optional<std::string> metric = {};  ///< METRIC[:min|max]
    std::optional<double> min_delta = {};
    std::optional<std::int64_t> points = {};
    std::optional<std::string> silence = {};
    bool json = false;
};

[[nodiscard]] int run_server(const ServerCommand& options);
[[nodiscard]] int run_run(const RunCommand& options);
[[nodiscard]] int run_plan(const PlanCommand& options);
[[nodiscard]] int run_agent(const AgentCommand& options);
[[nodiscard]] int run_ls(const StudyCommand& options);
[[nodiscard]] int run_show(const StudyCommand& options);
[[nodiscard]] int run_best(const StudyCommand& options);
[[nodiscard]] int run_alert_add(const AlertCommand& options);
[[nodiscard]] int run_alert_ls(const AlertCommand& options);
[[nodiscard]] int run_alert_rm(const AlertCommand& options);
[[nodiscard]] int run_replay(const StudyCommand& options);
/// `verb`: pause, resume or stop.
[[nodiscard]] int run_change(const StudyCommand& options, const char* verb);
[[nodiscard]] int run_rename(const StudyCommand& options);
[[nodiscard]] int run_rm(const StudyCommand& options);
[[nodiscard]] int run_restore_study(const StudyCommand& options);

}  // namespace tune::cli
