// The engine `ssh`: a list of hosts, so many agents on each. All that is known of an agent lies on
// its host, below the folder of agents:
//
//   <state>/<group>/<host>-<n>/  agent.sh  pid ("PID START-TIME")  log  exit (its exit code)
//   <state>/<group>/token        0600
//   <state>/<group>/<host>.port  the port that leads to the server, so that it stays the same
//
// A process is named by its number and start time, since the number may be another's by now. The
// program is copied once, under the hash of its content.

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "base/crypto/digest.h"
#include "base/system/file.h"
#include "base/text/counted.h"
#include "base/text/hex.h"
#include "base/text/text.h"
#include "base/text/uri.h"
#include "worker/launch/agent_script.h"
#include "worker/launch/engine.h"
#include "worker/launch/option_rows.h"
#include "worker/launch/program.h"
#include "worker/launch/ssh/ssh_host.h"

namespace tune::launch {
namespace {

namespace ssh_fs = std::filesystem;

constexpr std::size_t kHostsMax = 10'000;
constexpr std::size_t kHostsAtOnce = 16;
constexpr std::size_t kProgramBytesMax = 512u << 20;

enum class Service { kAuto, kSystemd, kSetsid };
enum class Tunnel { kAuto, kYes, kNo };

struct SshSettings {
    std::vector<std::string> hosts;
    std::string ssh_config;
    int agents_per_host = 1;
    Service service = Service::kAuto;
    Tunnel tunnel = Tunnel::kAuto;

    [[nodiscard]] bool operator==(const SshSettings&) const = default;
};

const tuner::OptionTable& ssh_options() {
    static const tuner::OptionTable kOptions = [] {
        using S = SshSettings;
        tuner::TableOf<S> table;
        add_texts(table, "hosts", &S::hosts, kHostsMax, "hosts, as ~/.ssh/config knows them");
        table.text("ssh_config", &S::ssh_config, 4096,
                   "configuration of ssh in the place of ~/.ssh/config");
        table.integer("agents_per_host", &S::agents_per_host, 1, 1000, "agents on each host");
        table.choice("service", &S::service,
                     {{"auto", Service::kAuto},
                      {"systemd", Service::kSystemd},
                      {"setsid", Service::kSetsid}},
                     "how an agent outlives its login: as a unit of systemd-run --user, by setsid; "
                     "auto: the first where the user lingers, else the second");
        table.choice("tunnel", &S::tunnel,
                     {{"auto", Tunnel::kAuto}, {"yes", Tunnel::kYes}, {"no", Tunnel::kNo}},
                     "agents reach the server through a port that ssh forwards; auto: where it "
                     "listens on loopback");
        return table;
    }();
    return kOptions;
}

/// Functions of every script. `alive DIR`: whether the agent of this folder lives.
constexpr const char* kFunctions = R"sh(umask 077
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
alive() {
    [ -s "$1/pid" ] && read -r pid start < "$1/pid" && [ -n "$start" ] &&
        [ "$(started "$pid")" = "$start" ]
}
)sh";

/// Starts the agent of the folder $d, whose script comes on stdin, unless it lives. `keep.sh` keeps
/// its exit code. The agent's shell says its number before it becomes the agent; the pipe `up`
/// holds this script until it has. Its address is that to which ssh came; the launcher's own
/// machine may have been reached on loopback, where the other hosts of a gang do not find it.
constexpr const char* kStart = R"sh(mkdir -p "$d" || exit 1
alive "$d" && exit 0
printf '%s\n' "$study" > "${d%/*}/study"
address=$(printf '%s\n' "$SSH_CONNECTION" | cut -d' ' -f3)
case "$address" in
    127.* | ::1) other=$(hostname -I 2> /dev/null | cut -d' ' -f1); address=${other:-$address} ;;
esac
{ printf "d='%s'\naddress='%s'\n" "$d" "$address"; cat; } > "$d/agent.sh"
printf 'sh "%s/agent.sh" >> "%s/log" 2>&1\necho $? > "%s/exit"\n' "$d" "$d" "$d" > "$d/keep.sh"
rm -f "$d/pid" "$d/exit" "$d/up"
mkfifo "$d/up" || exit 1
by_systemd() {
    systemd-run --user --quiet --collect --unit="$unit" --property=KillMode=mixed sh "$d/keep.sh"
}
by_setsid() { setsid sh "$d/keep.sh" < /dev/null > /dev/null 2>&1 & }
lingers() { [ "$(loginctl show-user "$(id -un)" -p Linger --value 2> /dev/null)" = yes ]; }
case "$service" in
    systemd) by_systemd || exit 1 ;;
    setsid) by_setsid ;;
    *) { lingers && by_systemd 2> /dev/null; } || by_setsid ;;
esac
cat < "$d/up"
rm -f "$d/up"
)sh";
constexpr const char* kAgentHead = R"sh(echo "$$ $(started $$)" > "$d/pid"
: > "$d/up"
)sh";

/// A line for each agent below the folders $pattern names.
constexpr const char* kList = R"sh(do
    [ -d "$d" ] || continue
    group=${d%/*} why= which=
    if alive "$d"; then state=running
    elif [ -s "$d/exit" ]; then
        read -r code < "$d/exit"
        which=$(stat -c %i.%Y "$d/exit")
        if [ "$code" = 0 ]; then state=ended; else state=failed why="exit code $code"; fi
    else state=ended why=killed
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "${group##*/}" "$state" "$(cat "$group/study")" \
        "$why" "$which"
done
)sh";

/// "127.0.0.1:5000" and what follows it in "http://127.0.0.1:5000/prefix".
std::pair<std::string, std::string> parts_of_url(const std::string& url) {
    const UriParts uri = split_uri(url);
    const bool has_port = split_authority(uri.authority).has_port;
    return {uri.authority + (has_port ? "" : uri.scheme == "https" ? ":443" : ":80"), uri.path};
}

/// A folder as a word of a script that runs there: "~/" is the home there.
std::string remote_path_word(const std::string& path) {
    if (path.starts_with("~/")) return "\"$HOME\"/" + shell_quoted(path.substr(2));
    return shell_quoted(path);
}

std::string control_folder() {
    const char* const named = std::getenv("TUNE_RUNTIME_DIR");
    if (named != nullptr && *named != '\0') return named;
    return "/tmp/tune-" + std::to_string(geteuid());
}

std::string short_hash(const std::string& text) {
    return hex_encode(sha256(text)).substr(0, 12);
}

class SshEngine final : public Engine {
public:
    SshEngine(SshSettings settings, Launch launch)
        : settings_(std::move(settings)), launch_(std::move(launch)) {
        state_word_ = remote_path_word(launch_.agents.state.empty() ? "~/.tune/agents"
                                                                    : launch_.agents.state);
        for (const std::string& host : settings_.hosts)
            hosts_.emplace(
                host, SshHost({.host = host,
                               .config = settings_.ssh_config,
                               .control = control_folder() + "/ssh-" +
                                          short_hash(host + settings_.ssh_config + launch_.group +
                                                     std::to_string(getpid()))}));
        uses_tunnel_ = settings_.tunnel == Tunnel::kYes ||
                       (settings_.tunnel == Tunnel::kAuto && launch_.agents.server.empty() &&
                        is_loopback_url(launch_.server_url));
    }

    Result<void> prepare() override {
        TUNE_TRY_VOID(make_control_folder());
        const int slots = static_cast<int>(hosts_.size()) * settings_.agents_per_host;
        if (launch_.agents.nodes > slots)
            return Error{Code::kInvalidParameterValue,
                         "a gang of " + counted(launch_.agents.nodes, "agent") + " does not fit " +
                             counted(static_cast<std::int64_t>(hosts_.size()), "host") + " with " +
                             counted(settings_.agents_per_host, "agent") + " each"};
        if (!uses_tunnel_ && launch_.agents.server.empty() && is_loopback_url(launch_.server_url)) {
            Error error = unreachable_server(launch_.server_url, "other hosts");
            error.message += "; or leave 'tunnel: no' out";
            return error;
        }
        if (uses_tunnel_ && !launch_.stays)
            return Error{Code::kInvalidParameterValue,
                         "agents reach the server " + launch_.server_url +
                             " through a tunnel only, and that needs a launcher that stays: `tune "
                             "run --on`; or a server that the hosts reach by themselves"};
        TUNE_TRY_VOID(read_program());
        return on_all_hosts([this](SshHost& host) { return prepare_host(host); });
    }

    Result<void> start(int count) override {
        int left = count;
        TUNE_TRY(jobs, list());
        for (int n = 0; n < settings_.agents_per_host; ++n)
            for (auto& [name, host] : hosts_) {
                const std::string id = name + "/" + std::to_string(n);
                bool is_taken = left <= 0;
                for (const AgentJob& job : jobs)
                    is_taken = is_taken || (job.id == id && is_occupied(job));
                if (is_taken) continue;
                TUNE_TRY_VOID(start_agent(host, n));
                --left;
            }
        return {};
    }

    [[nodiscard]] bool starts_singly() const override { return true; }

    Result<std::vector<AgentJob>> list() override {
        TUNE_TRY_VOID(make_control_folder());
        std::map<std::string, std::vector<AgentJob>> found;
        for (const auto& [name, host] : hosts_) found[name];
        static_cast<void>(on_all_hosts([&](SshHost& host) -> Result<void> {
            found.at(host.name()) = list_host(host);
            return {};
        }));
        std::vector<AgentJob> jobs;
        for (auto& [name, some] : found) jobs.insert(jobs.end(), some.begin(), some.end());
        return jobs;
    }

    Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) override {
        for (const AgentJob& job : jobs) {
            const auto host = hosts_.find(job.id.substr(0, job.id.rfind('/')));
            if (host == hosts_.end() || job.is_unreachable) continue;
            // A second, different signal is the agent's "at once": its trials are killed too.
            const std::string_view kill = kind == StopKind::kDrain ? "kill -INT \"$pid\""
                                          : kind == StopKind::kStop
                                              ? "kill -TERM \"$pid\""
                                              : "kill -TERM \"$pid\"; kill -INT \"$pid\"";
            TUNE_TRY_VOID(host->second.run(kFunctions + ("alive " + folder_word(job)) + " && { " +
                                           std::string(kill) + "; }; exit 0"));
        }
        return {};
    }

    std::string last_output(const AgentJob& job) override {
        const auto host = hosts_.find(job.id.substr(0, job.id.rfind('/')));
        if (host == hosts_.end()) return {};
        return host->second.run("tail -n 20 " + folder_word(job) + "/log").value_or("");
    }

    void clear() override {
        static_cast<void>(on_all_hosts([this](SshHost& host) -> Result<void> {
            static_cast<void>(host.run("rm -f " + group_word() + "/token"));
            host.disconnect();
            return {};
        }));
    }

private:
    static bool is_occupied(const AgentJob& job) {
        return job.state == AgentJob::State::kRunning || job.state == AgentJob::State::kPending;
    }

    [[nodiscard]] std::string group_word() const {
        return state_word_ + "/" + shell_quoted(launch_.group);
    }
    [[nodiscard]] std::string folder_word(const AgentJob& job) const {
        std::string name = job.id;
        name[name.rfind('/')] = '-';
        return state_word_ + "/" + shell_quoted(job.group) + "/" + shell_quoted(name);
    }

    static Result<void> make_control_folder() {
        const std::string folder = control_folder();
        struct stat status {};
        mkdir(folder.c_str(), 0700);
        if (lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
            status.st_uid == geteuid() && (status.st_mode & 077) == 0)
            return {};
        return Error{Code::kPermissionDenied,
                     folder +
                         " must be a folder of yours that nobody else can enter (chmod 700); "
                         "name another with TUNE_RUNTIME_DIR"};
    }

    /// Some at a time; the first error of a host, in their order.
    template <class Work>
    Result<void> on_all_hosts(const Work& work) {
        std::vector<SshHost*> all;
        for (auto& [name, host] : hosts_) all.push_back(&host);
        std::vector<Result<void>> results(all.size());
        for (std::size_t begin = 0; begin < all.size(); begin += kHostsAtOnce) {
            std::vector<std::jthread> threads;
            for (std::size_t i = begin; i < std::min(all.size(), begin + kHostsAtOnce); ++i)
                threads.emplace_back([&, i] { results[i] = work(*all[i]); });
        }
        for (Result<void>& result : results) TUNE_TRY_VOID(std::move(result));
        return {};
    }

    Result<void> read_program() {
        if (!launch_.agents.program.empty()) {
            program_word_ = remote_path_word(launch_.agents.program);
            return {};
        }
        TUNE_TRY(path, local_program(launch_.agents));
        TUNE_TRY(bytes, read_file(path, kProgramBytesMax));
        program_word_ = "\"$HOME\"/.cache/tune/bin/" + short_hash(bytes) + "/tune";
        program_ = std::move(bytes);
        return {};
    }

    Result<void> prepare_host(SshHost& host) {
        TUNE_TRY_VOID(reach(host));
        TUNE_TRY_VOID(copy_program(host));
        const Result<std::string> version = host.run(program_word_ + " --version");
        if (!version)
            return Error{Code::kInvalidParameterValue,
                         "`tune` does not run there; " + version.error().message};
        if (launch_.token.empty()) return {};
        TUNE_TRY_VOID(host.run(std::string(kFunctions) + "mkdir -p " + group_word() + " && cat > " +
                                   group_word() + "/token",
                               launch_.token + "\n"));
        return {};
    }

    /// Once a content: other launchers and later versions have their own folders. The name appears
    /// when the file is whole.
    Result<void> copy_program(SshHost& host) {
        if (program_.empty()) return {};
        TUNE_TRY(is_there, host.run("[ -x " + program_word_ + " ] && echo yes; exit 0"));
        if (trimmed(is_there) == "yes") return {};
        TUNE_TRY_VOID(host.run("p=" + program_word_ +
                                   "; mkdir -p \"${p%/*}\" && cat > \"$p.$$\" && chmod 755 "
                                   "\"$p.$$\" && mv \"$p.$$\" \"$p\"",
                               program_));
        return {};
    }

    /// A connection, and the way back to the server where agents need one: after a connection
    /// broke, at the same port as before, which the agents there know.
    Result<void> reach(SshHost& host) {
        TUNE_TRY(is_new, host.connect());
        if (!uses_tunnel_ || launch_.group.empty() || !is_new) return {};
        const std::string port_word = group_word() + "/" + shell_quoted(host.name() + ".port");
        TUNE_TRY(known, host.run("cat " + port_word + " 2>/dev/null; exit 0"));
        int port = 0;
        std::from_chars(known.data(), known.data() + known.size(), port);
        const std::string target = parts_of_url(launch_.server_url).first;
        Result<int> forwarded = host.forward(target, port);
        if (!forwarded && port != 0) forwarded = host.forward(target, 0);
        if (!forwarded) {
            host.disconnect();  // so that the next look tries again
            return forwarded.error();
        }
        if (*forwarded == port) return {};
        return host.run(std::string(kFunctions) + "mkdir -p " + group_word() + " && echo " +
                        std::to_string(*forwarded) + " > " + port_word)
                       .has_value()
                   ? Result<void>()
                   : Error{Code::kInvalidState, "host " + host.name() + " keeps no files"};
    }

    Result<void> start_agent(SshHost& host, int n) {
        const std::string name = host.name() + "-" + std::to_string(n);
        const std::string folder = group_word() + "/" + shell_quoted(name);
        std::string url =
            launch_.agents.server.empty() ? launch_.server_url : launch_.agents.server;
        if (uses_tunnel_) {
            TUNE_TRY(port,
                     host.run("cat " + group_word() + "/" + shell_quoted(host.name() + ".port")));
            url = "http://127.0.0.1:" + std::string(trimmed(port)) +
                  parts_of_url(launch_.server_url).second;
        }
        const std::string script = agent_script(
            launch_, {.engine = "ssh",
                      .url = url,
                      .program_word = program_word_,
                      .state_word = state_word_,
                      .name_word = shell_quoted(launch_.group) + "/" + shell_quoted(name),
                      .token_file_word = launch_.token.empty() ? "" : group_word() + "/token",
                      // The tunnel's end on loopback says nothing of how hosts reach each other.
                      .address_word = uses_tunnel_ ? "\"$address\"" : "",
                      .shares_gpus = true});
        const std::string agent = std::string(kFunctions) + kAgentHead + script;
        constexpr std::array<const char*, 3> kServices = {"auto", "systemd", "setsid"};
        const std::string variables =
            "d=" + folder + "\nstudy=" + shell_quoted(launch_.study) + "\nunit=" + launch_.group +
            "-" + short_hash(name) +
            "\nservice=" + kServices[static_cast<std::size_t>(settings_.service)] + "\n";
        TUNE_TRY_VOID(host.run(kFunctions + variables + kStart, agent));
        return {};
    }

    std::vector<AgentJob> list_host(SshHost& host) {
        const Result<void> reached = reach(host);
        const std::string pattern = state_word_ + "/" +
                                    (launch_.group.empty() ? "*" : shell_quoted(launch_.group)) +
                                    "/" + shell_quoted(host.name()) + "-*";
        const Result<std::string> text =
            !reached ? Result<std::string>(reached.error())
                     : host.run(std::string(kFunctions) + "for d in " + pattern + "; " + kList);
        if (!text)
            return {{.id = host.name() + "/0",
                     .group = launch_.group,
                     .study = launch_.study,
                     .state = AgentJob::State::kPending,
                     .host = host.name(),
                     .reason = text.error().message,
                     .is_unreachable = true}};
        return parse_list(*text, host.name());
    }

    static std::vector<AgentJob> parse_list(const std::string& text, const std::string& host) {
        std::vector<AgentJob> jobs;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            std::vector<std::string> cells;
            std::istringstream stream(line);
            for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
            cells.resize(6);
            const std::string number = cells[0].substr(std::min(host.size() + 1, cells[0].size()));
            // "a" and "a-b" are two hosts: what follows the name is a number.
            if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos)
                continue;
            const auto state = cells[2] == "running"  ? AgentJob::State::kRunning
                               : cells[2] == "failed" ? AgentJob::State::kFailed
                                                      : AgentJob::State::kEnded;
            jobs.push_back({.id = host + "/" + number,
                            .group = cells[1],
                            .study = cells[3],
                            .state = state,
                            .host = host,
                            .reason = cells[4],
                            .incarnation = cells[5]});
        }
        return jobs;
    }

    SshSettings settings_;
    Launch launch_;
    std::string state_word_;
    std::string program_word_;
    std::string program_;  // its content, where it is copied
    bool uses_tunnel_ = false;
    std::map<std::string, SshHost> hosts_;
};

Result<std::unique_ptr<Engine>> create_ssh(const tuner::Fields& fields, Launch launch) {
    SshSettings settings;
    TUNE_TRY_VOID(ssh_options().read(fields, &settings));
    if (settings.hosts.empty())
        return tuner::error_at(fields.node().place, fields.path(),
                               "'hosts' is missing: a list of hosts, as ~/.ssh/config knows them");
    for (const std::string& host : settings.hosts)
        if (host.empty() || host.front() == '-' ||
            host.find_first_of("/ \t'\"$`\\") != std::string::npos)
            return tuner::error_at(fields.node().place, fields.path_of("hosts"),
                                   tuner::in_quotes(host) + " is not the name of a host");
    return std::unique_ptr<Engine>(
        std::make_unique<SshEngine>(std::move(settings), std::move(launch)));
}

}  // namespace

extern const EngineKind kSshEngine;
const EngineKind kSshEngine = {"ssh", "hosts that are reached by ssh", ssh_options, create_ssh};

}  // namespace tune::launch
