// `tune top`: the running trials of all studies, the agents and what waits for them, live. The
// server's events say when to read again; nothing polls.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "base/text/counted.h"
#include "tracker/client/client.h"
#include "tracker/client/mlflow_environment.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/commands/study_view_commands.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/queue_text.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/plots/study_data.h"

namespace tune::cli {
namespace {

constexpr std::size_t kTopSparkColumns = 20;
/// The clock of the rows moves at least this often.
constexpr int kTopRedraw_ms = 1000;
/// Between two reads while everything changes all the time: a person reads no faster.
constexpr int kReadInterval_ms = 250;
constexpr int kReconnect_ms = 1000;

/// Calls `changed` whenever the server says that a study has changed; reconnects when the stream
/// breaks.
class StudyEvents {
public:
    StudyEvents(std::unique_ptr<tracker::Client> client, std::function<void()> changed)
        : client_(std::move(client)), changed_(std::move(changed)), thread_([this] { follow(); }) {}
    ~StudyEvents() {
        stop_.request_stop();
        client_->cancel();
        thread_.join();
    }
    StudyEvents(const StudyEvents&) = delete;
    StudyEvents& operator=(const StudyEvents&) = delete;

private:
    void follow() {
        constexpr int kSilence_ms = 60'000;  // the server sends a sign of life more often
        std::mutex mutex;
        std::condition_variable_any pause;
        while (!stop_.stop_requested()) {
            const Result<void> ended = client_->get_file(
                "/api/ui/events?topics=studies",
                [this](std::string_view) -> Result<void> {
                    changed_();
                    return {};
                },
                kSilence_ms);
            if (stop_.stop_requested()) return;
            changed_();  // what was missed meanwhile
            std::unique_lock lock(mutex);
            pause.wait_for(lock, stop_.get_token(), std::chrono::milliseconds(kReconnect_ms),
                           [] { return false; });
        }
    }

    std::unique_ptr<tracker::Client> client_;
    std::function<void()> changed_;
    std::stop_source stop_;
    std::thread thread_;
};

/// {studies: [{name, state, ..., running: [trials]}], queue: GET tune/queue}, those studies that
/// have running trials or may start some. Who may not see the agents gets an empty queue.
Result<Json> read_all(Backend& backend) {
    TUNE_TRY(answer, backend.get("/api/2.0/tune/studies"));
    Json studies = Json::array();
    for (Json& study : answer["studies"]) {
        const auto running = study["counts"].value("running", std::int64_t{0});
        if (running == 0 && text_of(study, "state") != "running") continue;
        study["running"] = Json::array();
        if (running > 0) {
            const Result<Json> trials = backend.get(
                study_path(text_of(study, "name"), "/trials?state=running&fields=intermediate"));
            if (!trials) continue;  // removed meanwhile
            study["running"] = (*trials)["trials"];
        }
        studies.push_back(std::move(study));
    }
    Result<Json> queue = backend.get("/api/2.0/tune/queue");
    Json seen = queue ? std::move(queue).value() : Json::object();
    for (Json& study : studies) {
        const std::string why = why_waiting(seen, text_of(study, "name"));
        if (!why.empty()) study["waits_for"] = why;
    }
    return Json{{"studies", std::move(studies)}, {"queue", std::move(seen)}};
}

std::string resources_cell(const Json& study) {
    const Json budget = study.value("budget", Json::object());
    const Json resources = study.value("resources", Json::object());
    std::string text;
    for (const auto& [key, unit] : {std::pair{"gpus", " GPU"}, std::pair{"cpus", " CPU"}}) {
        const std::string older = std::string(key) + "_per_trial";
        const Json amount = resources.contains(key) ? resources[key] : budget.value(older, Json());
        if (!amount.is_number() || amount.get<double>() <= 0) continue;
        text += (text.empty() ? "" : ", ") + number_cell(amount) + unit;
    }
    return text;
}

void add_row(Table& table, const Json& study, const Json& trial, std::int64_t now_ms) {
    std::vector<double> values;
    std::string step = "-";
    Json last;
    const Json points = trial.value("intermediate", Json::array());
    for (const Json& point : points) values.push_back(tuner::number_of(point.at(1)));
    if (!points.empty()) {
        step = to_text(points.back().at(0));
        last = points.back().at(1);
    }
    const Json start = trial.value("start_ms", Json());
    table.row({clipped(printable(text_of(study, "name")), 24),
               "#" + std::to_string(trial.value("number", std::int64_t{0})),
               styled(text_of(trial, "state"), tone_of_state(text_of(trial, "state"))),
               std::to_string(trial.value("attempt", 0)),
               clipped(printable(text_of(trial, "worker")), 20), resources_cell(study), step,
               number_cell(last),
               study["best"].is_object() ? number_cell(study["best"]["value"]) : "-",
               sparkline(values, kTopSparkColumns),
               start.is_number()
                   ? span_text(std::max<std::int64_t>(now_ms - start.get<std::int64_t>(), 0))
                   : "",
               clipped(params_text(trial.value("params", Json::object())), 60)});
}

/// No agent can run its trials: said where one looks for them.
std::string waits_text(const Json& study) {
    const std::string why = text_of(study, "waits_for");
    return why.empty() ? "" : ", waits: " + printable(why);
}

/// How many lines of studies and of trials there is room for below the title.
struct Room {
    std::size_t studies = SIZE_MAX;
    std::size_t trials = SIZE_MAX;
};

/// The trials are what one looks at: the studies get what they leave, at least a third. A list that
/// is cut needs a line that says so, the table one for its header.
Room room_for(std::size_t studies, std::size_t trials, std::size_t lines_max) {
    const auto less = [](std::size_t a, std::size_t b) { return a > b ? a - b : 0; };
    const std::size_t room = less(lines_max, 1);
    const std::size_t table = trials > 0 ? trials + 1 : 0;
    if (table < room && studies <= room - table) return {};
    Room found;
    const std::size_t for_studies = std::max(room / 3, less(room, table));
    if (studies > for_studies) found.studies = less(for_studies, 1);
    const std::size_t left = less(room, std::min(studies, for_studies));
    if (table > left) found.trials = less(left, 2);
    return found;
}

std::string top_text(const Json& view, const std::string& where, std::int64_t now_ms,
                     std::size_t lines_max) {
    Table table;
    table.column("study");
    for (const char* name : {"trial", "state"}) table.column(name);
    table.column("try", Table::Align::kRight);
    for (const char* name : {"worker", "each has"}) table.column(name);
    for (const char* name : {"step", "value", "best"}) table.column(name, Table::Align::kRight);
    table.column("curve");
    table.column("time", Table::Align::kRight);
    table.column("parameters");
    std::size_t running = 0;
    for (const Json& study : view["studies"]) running += study["running"].size();
    // At most a quarter of the screen, and a header and the line about what is left out.
    const std::size_t most_agents = lines_max == SIZE_MAX ? SIZE_MAX : lines_max / 4;
    const std::string agents = agents_table(view["queue"], most_agents);
    const auto agent_lines =
        static_cast<std::size_t>(std::count(agents.begin(), agents.end(), '\n'));
    const Room room = room_for(view["studies"].size(), running,
                               lines_max - (lines_max == SIZE_MAX ? 0 : agent_lines));
    std::string text = std::to_string(running) +
                       (running == 1 ? " trial is running at " : " trials are running at ") +
                       where + "\n";
    std::size_t studies = 0;
    std::size_t trials = 0;
    for (const Json& study : view["studies"]) {
        const std::string state = text_of(study, "state");
        if (++studies <= room.studies)
            text += "  " + printable(text_of(study, "name")) + " " +
                    styled(state, tone_of_state(state)) + " " + progress_text(study) +
                    waits_text(study) + "\n";
        for (const Json& trial : study["running"])
            if (++trials <= room.trials) add_row(table, study, trial, now_ms);
    }
    if (studies > room.studies)
        text += "  and " +
                counted(static_cast<std::int64_t>(studies - room.studies), "more study",
                        "more studies") +
                "\n";
    if (!table.empty()) text += table.text();
    if (trials > room.trials)
        text +=
            "and " + counted(static_cast<std::int64_t>(trials - room.trials), "more trial") + "\n";
    return text + agents;
}

Result<void> follow(Backend& backend) {
    Interrupts interrupts;
    std::atomic<bool> is_stale = true;
    TUNE_TRY(client, tracker::create_client({.url = backend.where(), .retries = 0}));
    const StudyEvents events(std::move(client), [&] {
        is_stale = true;
        interrupts.wake();
    });
    SystemClock clock;
    Json view = {{"studies", Json::array()}, {"queue", Json::object()}};
    std::int64_t read_ms = 0;
    std::size_t lines = 0;
    TerminalSize size;
    std::string error;
    while (true) {
        const std::int64_t since_ms = clock.monotonic_ms() - read_ms;
        if (is_stale && (read_ms == 0 || since_ms >= kReadInterval_ms)) {
            is_stale = false;
            read_ms = clock.monotonic_ms();
            Result<Json> fresh = read_all(backend);
            error = fresh ? std::string() : "cannot read: " + fresh.error().message + "\n";
            if (fresh) view = std::move(fresh).value();
        }
        const TerminalSize now = terminal_size(STDOUT_FILENO);
        const std::size_t lines_max = now.rows - 1 - (error.empty() ? 0 : 1);
        const std::string text =
            fitted(top_text(view, backend.where(), clock.now_ms(), lines_max) + error, now);
        // What was drawn for another size may have wrapped: nobody knows where it begins.
        std::string back = lines > 0 ? "\033[" + std::to_string(lines) + "A\033[J" : "";
        if (lines > 0 && now != size) back = "\033[H\033[2J";
        size = now;
        print(back + text);
        lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        const int wait_ms = is_stale ? kReadInterval_ms : kTopRedraw_ms;
        if (interrupts.wait(wait_ms) == Interrupts::Event::kSignal) return {};
    }
}

Result<int> top(const TopCommand& options) {
    TUNE_TRY(backend, find_backend(options.server, options.data));
    const bool is_server = backend->where().starts_with("http");
    if (!options.once && !options.json && is_server && is_terminal(STDOUT_FILENO)) {
        TUNE_TRY_VOID(follow(*backend));
        return kExitOk;
    }
    TUNE_TRY(view, read_all(*backend));
    if (options.json)
        print_json(view);
    else
        print(top_text(view, backend->where(), SystemClock().now_ms(), SIZE_MAX));
    return kExitOk;
}

}  // namespace

int run_top(const TopCommand& options) {
    const Result<int> code = top(options);
    return code ? *code : fail(code.error(), options.json);
}

}  // namespace tune::cli
