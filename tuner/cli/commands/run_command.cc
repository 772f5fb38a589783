// `tune run`: a study from its first trial to its last, with a local agent.
//
// One order of steps keeps a second `tune run` from doing harm. First the command line is read and
// the program is checked, so that a typing error changes nothing. Then the server is found: the
// one that --server names, else one in this process, else the one that already holds the data
// folder. Then the workers are made, which fails when another `tune run` of this study is at work
// here. Only after that is the study created, resumed or replaced.
//
// From there on the study belongs to the server, and this process only watches it. The end of the
// study is what the server says. The first Ctrl-C pauses the study, so that nobody takes a trial
// while we leave, and lets the agent stop its trials; the second one kills them. What is lost in
// either case is run again when the same command continues the study.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.h"
#include "base/text/counted.h"
#include "base/text/percent.h"
#include "tracker/client/client.h"
#include "tuner/cli/access/listening.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/launch/agent_fleet.h"
#include "tuner/cli/launch/engine_choice.h"
#include "tuner/cli/local_server.h"
#include "tuner/cli/options.h"
#include "tuner/cli/program_check.h"
#include "tuner/cli/study_flags.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/objective_text.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/progress.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/study_watch.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/trial_output.h"
#include "tuner/config/command_template.h"
#include "tuner/study/registry/bookkeeping/study_book.h"
#include "tuner/study/registry/studies.h"
#include "tuner/study/study.h"
#include "worker/agent/agent.h"

namespace tune::cli {
namespace {

namespace fs = std::filesystem;

/// The status on a terminal is redrawn this often, for its clock.
constexpr int kRunRedraw_ms = 1000;
constexpr std::uint16_t kUsualPort = 5000;

/// Where the study lives: a server of this process, or one that runs elsewhere.
struct StudyServer {
    std::unique_ptr<LocalServer> local;
    std::string url;
    std::shared_ptr<tracker::TlsIdentity> tls = {};  ///< of `local`; null: plain HTTP
};

Result<void> listen(LocalServer& local, const RunCommand& options, const Listening& listening) {
    tracker::ServerOptions server =
        server_options_of(options.listen, listening, options.port.value_or(kUsualPort));
    const Result<void> usual = local.listen(server);
    if (usual || options.port) return usual;
    server.port = 0;
    TUNE_TRY_VOID(local.listen(server));
    std::fprintf(stderr, "tune: port %d is in use; the page is at %s\n", kUsualPort,
                 local.url().c_str());
    return {};
}

Result<StudyServer> find_place(const RunCommand& options, const std::string& study) {
    if (options.server) {
        TUNE_TRY_VOID(check_server(*options.server, kNamedServer_ms));
        return StudyServer{.local = nullptr, .url = *options.server};
    }
    TUNE_TRY(listening, listening_of(options.listen));
    Result<std::unique_ptr<LocalServer>> local =
        LocalServer::open({.data = options.data,
                           .only_study = study,
                           .is_https = listening.tls != nullptr,
                           .guard = listening.guard});
    if (local) {
        TUNE_TRY_VOID(listen(**local, options, listening));
        warn_of(listening);
        std::string url = (*local)->url();
        return StudyServer{.local = std::move(local).value(),
                           .url = std::move(url),
                           .tls = std::move(listening.tls)};
    }
    if (local.error().code != Code::kResourceConflict) return local.error();
    const std::string how = "to run several studies in one folder, start `tune server --data " +
                            options.data + "` and pass --server URL to each `tune run`";
    const std::optional<std::string> url = url_of_holder(options.data);
    if (!url || !check_server(*url, kNamedServer_ms))
        return Error{local.error().code, local.error().message + " Or share it: " + how};
    // Its agents and ours would wait for trials of that study only.
    const std::optional<std::string> other = study_of_holder(options.data);
    if (other && *other != study)
        return Error{
            Code::kResourceConflict,
            options.data + " is open in the `tune run` of study '" + *other + "' (" + *url +
                "), which runs only that study. Wait for it to end, choose another folder " +
                "with --data, or share the folder: " + how};
    std::fprintf(stderr, "tune: %s is open in the server at %s; using that\n", options.data.c_str(),
                 url->c_str());
    return StudyServer{.local = nullptr, .url = *url};
}

/// One folder per agent and study: the same command finds what it left running.
fs::path agent_folder(const RunCommand& options, const std::string& study) {
    return fs::path(options.data) / "agents" / percent_encode(study, false);
}

/// Places of the agent in here; 0: as many as the machine has cores or GPUs. A pool takes one.
int slots_of(const tuner::StudyConfig& config) {
    const int at_once = std::max(config.resources.pool, 1);
    return (config.budget.parallel.value_or(0) + at_once - 1) / at_once;
}

/// Not started yet. Nothing with --no-agent.
Result<std::unique_ptr<worker::Agent>> make_agent(const RunCommand& options,
                                                  const tuner::StudyConfig& config,
                                                  const std::string& url) {
    if (options.no_agent) return std::unique_ptr<worker::Agent>();
    auto agent = worker::Agent::create({.server_url = url,
                                        .state_dir = agent_folder(options, config.study),
                                        .slots = slots_of(config),
                                        .stores_checkpoints = false});
    if (!agent && agent.error().code == Code::kResourceAlreadyExists)
        return Error{Code::kResourceConflict,
                     "another `tune run` of study '" + config.study + "' is at work in " +
                         options.data +
                         ", and this one has changed nothing. Wait for it to end, or use "
                         "--no-agent to change the budget and watch"};
    return agent;
}

/// Who runs the trials: an agent in here, agents that an engine starts, or others.
struct Workers {
    std::unique_ptr<worker::Agent> local = {};
    std::unique_ptr<AgentFleet> fleet = {};

    [[nodiscard]] bool are_elsewhere() const { return !local && !fleet; }
    Result<void> start(const Json& study) const {
        if (fleet) fleet->start(demand_of(study));
        return local ? local->start() : Result<void>();
    }
    void stop(worker::StopMode mode) const {
        if (local) local->stop(mode);
        if (!fleet) return;
        fleet->stop(mode == worker::StopMode::kKill ? launch::StopKind::kKill
                                                    : launch::StopKind::kStop);
    }
    void wait() const {
        if (local) local->wait();
        if (fleet && !fleet->wait())
            log_warning(
                "some agents have not ended yet; `tune agents ls` shows them, `tune agents "
                "down` ends them");
    }
};

/// Ends the workers on a thread of its own, so that a second Ctrl-C can be more urgent.
class WorkersStop {
public:
    WorkersStop(const Workers& workers, Interrupts& interrupts)
        : workers_(workers), interrupts_(interrupts) {}
    ~WorkersStop() {
        if (waiter_.joinable()) waiter_.join();
    }
    WorkersStop(const WorkersStop&) = delete;
    WorkersStop& operator=(const WorkersStop&) = delete;

    void begin(worker::StopMode mode) {
        begun_ = true;
        if (workers_.are_elsewhere()) {
            complete_ = true;
            return;
        }
        workers_.stop(mode);
        if (waiter_.joinable()) return;
        waiter_ = std::thread([this] {
            workers_.wait();
            complete_ = true;
            interrupts_.wake();
        });
    }
    [[nodiscard]] bool begun() const { return begun_; }
    [[nodiscard]] bool complete() const { return complete_; }

private:
    const Workers& workers_;
    Interrupts& interrupts_;
    std::thread waiter_;
    bool begun_ = false;
    std::atomic<bool> complete_ = false;
};

bool is_over(const Json& study) {
    const std::string state = text_of(study, "state");
    // Its server registers the best model as soon as it is completed.
    if (state == "completed" && study.contains("register") && has_best(study) &&
        !study.contains("registered"))
        return false;
    return (state == "completed" || state == "stopped") &&
           study["counts"].value("running", std::int64_t{0}) == 0;
}

bool is_deleted(const Json& study) {
    return text_of(study, "status") == "deleted";
}

/// Shows the study while it runs, and ends it at its end or at a signal.
class Session {
public:
    Session(const RunCommand& options, const tuner::StudyConfig& config, const StudyServer& place,
            Json study, Interrupts& interrupts)
        : options_(options),
          config_(config),
          place_(place),
          name_(text_of(study, "name")),
          study_(std::move(study)),
          interrupts_(interrupts),
          progress_(page(), !options.quiet && !options.json && is_terminal(STDERR_FILENO)),
          watch_(place_.url, name_, [this] { interrupts_.wake(); }) {}

    /// True: a signal ended it.
    bool follow(const Workers& workers) {
        WorkersStop stop(workers, interrupts_);
        while (!stop.complete()) {
            if (workers.fleet) show_fleet(*workers.fleet);
            const bool is_useless = !given_up_.empty();
            if (!stop.begun() && (is_useless || is_deleted(study_) || is_over(study_)))
                stop.begin(worker::StopMode::kStop);
            if (stop.complete()) break;
            const bool is_signal = interrupts_.wait(kRunRedraw_ms) == Interrupts::Event::kSignal;
            show(watch_.take());
            if (place_.tls && place_.tls->has_changed()) read_anew(*place_.tls);
            if (is_signal) interrupt(stop);
        }
        progress_.clear();
        return signals_ > 0;
    }

    /// Why no agent of the engine runs; empty: some do.
    [[nodiscard]] const std::string& given_up() const { return given_up_; }

    [[nodiscard]] std::string page() const {
        return place_.url + "/s/" + percent_encode(name_, false);
    }
    /// The same for whoever opens it first: without the code a page shows all and changes nothing.
    [[nodiscard]] std::string owners_page() const {
        if (!place_.local) return page();
        return page() + "?code=" + place_.local->new_page_code() +
               " (works once; `tune open` prints another)";
    }

private:
    /// What the engine says, once a change; where the status is redrawn it stands there.
    void show_fleet(AgentFleet& fleet) {
        fleet.set_demand(demand_of(study_));
        const launch::FleetView view = fleet.view();
        given_up_ = view.given_up;
        const std::string text = view.error.empty() ? view.text : view.error;
        progress_.set_note(text);
        if (text == last_fleet_ || text.empty()) return;
        last_fleet_ = text;
        if (!options_.quiet && !options_.json && !progress_.is_live()) progress_.print(text);
    }

    void show(const StudyView& view) {
        if (view.error != last_error_ && !view.error.empty()) log_warning(view.error);
        last_error_ = view.error;
        if (!view.study.is_object()) return;
        const std::string was = text_of(study_, "state");
        study_ = view.study;
        warn_of_unused_parameters(view.ended);
        if (options_.quiet || options_.json) return;
        for (const Json& trial : view.ended) progress_.print(trial_line(trial, study_));
        warn_of_failures();
        if (is_deleted(study_) && !std::exchange(has_told_of_deletion_, true))
            progress_.print("its experiment was deleted: running trials get SIGTERM");
        if (text_of(study_, "state") == "paused" && was != "paused" && signals_ == 0)
            progress_.print("paused; `tune resume " + name_ + "` continues it");
        progress_.show(study_, view.running);
    }

    /// Once, and also where no progress is shown: such a study finds nothing.
    void warn_of_unused_parameters(const std::vector<Json>& ended) {
        for (const Json& trial : ended)
            if (alike_.add(trial) && !config_.command.empty() &&
                !tuner::passes_parameters(config_.command, config_.space))
                progress_.print("warning: " + unused_parameters_text(config_));
    }

    /// Once: a mistake in the script makes all trials fail, and there may be thousands to come.
    void warn_of_failures() {
        constexpr std::int64_t kFailuresMin = 3;
        const Json& counts = study_["counts"];
        const auto failed =
            counts.value("failed", std::int64_t{0}) - study_.value("excused", std::int64_t{0});
        if (has_warned_ || failed < kFailuresMin || failed < ended_count(study_) || is_over(study_))
            return;
        has_warned_ = true;
        progress_.print(
            "  all " + std::to_string(failed) +
            " trials so far failed; the page shows the output of each run. Ctrl-C stops");
    }

    void interrupt(WorkersStop& stop) {
        ++signals_;
        progress_.print(signals_ == 1 ? "stopping: running trials get SIGTERM and run again when "
                                        "the study continues (press Ctrl-C again to kill them)"
                                      : "stopping at once");
        if (signals_ == 1) {
            // Not to be handed out again while we leave, also not to agents elsewhere.
            const auto backend = remote_backend(place_.url);
            if (backend) {
                const auto paused = (*backend)->post(study_path(name_, "/pause"), Json::object());
                if (!paused) log_warning(paused.error().text());
            }
        }
        stop.begin(signals_ == 1 ? worker::StopMode::kStop : worker::StopMode::kKill);
    }

    const RunCommand& options_;
    const tuner::StudyConfig& config_;
    const StudyServer& place_;
    std::string name_;
    Json study_;
    Interrupts& interrupts_;
    Progress progress_;
    std::string last_error_;
    std::string last_fleet_;
    std::string given_up_;
    int signals_ = 0;
    bool has_warned_ = false;
    bool has_told_of_deletion_ = false;
    AlikeTrials alike_;
    StudyWatch watch_;  // last: its thread uses the others
};

int exit_code_of(const Json& study, bool interrupted) {
    if (interrupted) return kExitInterrupted;
    if (!has_best(study)) return kExitNoTrial;
    const std::string end = text_of(study, "ended_by");
    return end == "time" || end == "cost" ? kExitTime : kExitOk;
}

/// Why no trial is complete: the reason of the last one, which is mostly that of all, and where
/// its output is: at the server, or with one that is started again.
std::string last_reason(Backend& backend, const std::string& name, const RunCommand& options,
                        const StudyServer& place) {
    const Result<Json> page =
        backend.get(study_path(name, "/trials?state=failed&max_results=10000"));
    if (!page || (*page)["trials"].empty()) return {};
    constexpr std::size_t kLinesShown = 10;
    const Json& trial = (*page)["trials"].back();
    const std::string output = last_output(place.url, text_of(trial, "run_id"), kLinesShown);
    return " The last one failed: " + printable(text_of(trial, "reason")) +
           (output.empty()
                ? ""
                : "\nThe last lines of its output:\n" + output.substr(0, output.size() - 1)) +
           "\nAll that it printed: " +
           (place.local ? "start `tune server --data " + shell_text({options.data}) + "` and open "
                        : place.url) +
           "/r/" + text_of(trial, "run_id") + "?tab=logs";
}

void print_end(const RunCommand& options, const tuner::StudyConfig& config,
               const StudyServer& place, Backend& backend, const Json& study, bool interrupted) {
    const std::string name = text_of(study, "name");
    if (options.json) {
        return print_json(
            {{"study", study}, {"best", best_json(study)}, {"interrupted", interrupted}});
    }
    std::string text = printable(name) + ": " + trials_text(study);
    if (const std::string note = text_of(study, "note"); !note.empty())
        text += " (" + printable(note) + ")";
    text += interrupted ? "; run the same command to continue\n" : "\n";
    text += "Goal: " + goal_text(config) + "\n";
    if (has_best(study)) {
        text += best_text(study) + registration_text(study);
    } else if (!interrupted) {
        text += "No trial has completed." + last_reason(backend, name, options, place) + "\n";
        if (text_of(study, "ended_by") == "failures")
            text +=
                "The study was stopped. Fix the program and run the same command again: the study "
                "continues, and these trials do not count. To try on regardless, add "
                "--stop-after-failures 0\n";
    }
    if (place.local)
        text += "View it again: tune server --data " + shell_text({options.data}) + "\n";
    print(text);
}

/// What the run is about to do: the study, what is optimized, where it can be watched.
void print_start(const tuner::StudyConfig& config, const Json& study, const std::string& page) {
    const std::int64_t done = ended_count(study);
    const std::string so_far =
        done == 0
            ? ""
            : (is_over(study) ? " has ended after " : " resumes after ") + counted(done, "trial");
    std::fprintf(stderr, "study %s%s: %s\ngoal: %s\n", printable(config.study).c_str(),
                 so_far.c_str(), page.c_str(), goal_text(config).c_str());
}

/// What of the earlier study did not fit.
void print_warm_start(const Json& study) {
    const auto warm_start = study.find("warm_start");
    if (warm_start == study.end() || !warm_start->contains("notes")) return;
    for (const Json& sentence : (*warm_start)["notes"])
        std::fprintf(stderr, "warm start: %s\n", printable(sentence.get<std::string>()).c_str());
}

Result<Workers> make_workers(const RunCommand& options, const tuner::StudyConfig& config,
                             const std::optional<EngineChoice>& engine, const StudyServer& place,
                             Interrupts& interrupts) {
    Workers workers;
    if (!engine) {
        TUNE_TRY(agent, make_agent(options, config, place.url));
        workers.local = std::move(agent);
        return workers;
    }
    std::error_code ignored;
    const std::string where =
        place.local ? fs::absolute(options.data, ignored).string() : place.url;
    TUNE_TRY(fleet, AgentFleet::open(*engine, {place.url, where, config.study}, config,
                                     [&interrupts] { interrupts.wake(); }));
    workers.fleet = std::move(fleet);
    return workers;
}

Result<int> run_study(const RunCommand& options, Interrupts& interrupts) {
    TUNE_TRY(config, study_from_flags(options.study, true));
    TUNE_TRY(engine, choose_engine(options.engine, options.study.words));
    if (!options.no_agent && !engine) TUNE_TRY_VOID(check_program(config));
    TUNE_TRY(place, find_place(options, config.study));
    TUNE_TRY(backend, remote_backend(place.url));
    // Before the study is touched: this may be the second `tune run` of it here.
    TUNE_TRY(workers, make_workers(options, config, engine, place, interrupts));
    Json wanted = to_json(config);
    if (options.extend) wanted["extend"] = true;
    wanted["replace"] = true;
    TUNE_TRY(study, backend->post("/api/2.0/tune/studies", wanted));
    if (!options.json) print_warm_start(study);
    for (const std::string& warning : goal_warnings(config))
        std::fprintf(stderr, "warning: %s\n", warning.c_str());
    if (const std::string replaced = text_of(study, "replaced"); !replaced.empty())
        std::fprintf(stderr,
                     "study %s: replaces the earlier study, in which no trial completed (%s)\n",
                     printable(config.study).c_str(), printable(replaced).c_str());
    bool interrupted = false;
    std::string given_up;
    {
        Session session(options, config, place, study, interrupts);
        if (!options.json && !options.quiet) {
            print_start(config, study, session.owners_page());
            if (const auto excused = study.value("excused", std::int64_t{0}); excused > 0)
                std::fprintf(stderr, "%s failed before any succeeded and %s not count\n",
                             counted(excused, "trial").c_str(), excused == 1 ? "does" : "do");
        }
        TUNE_TRY_VOID(workers.start(study));
        interrupted = session.follow(workers);
        given_up = session.given_up();
    }
    TUNE_TRY(last, backend->get(study_path(config.study)));
    if (is_deleted(last) && !interrupted) return tuner::experiment_was_deleted(config.study);
    if (!given_up.empty() && !interrupted && !is_over(last))
        return Error{Code::kInvalidState,
                     given_up + "\nThe study waits; the same command continues it."};
    print_end(options, config, place, *backend, last, interrupted);
    return exit_code_of(last, interrupted);
}

}  // namespace

int run_run(const RunCommand& options) {
    Interrupts interrupts;
    const Result<int> code = run_study(options, interrupts);
    return code ? *code : fail(code.error(), options.json);
}

}  // namespace tune::cli
