// Who waits for whom: a durable value of an unrelated run, and a look at another study, without and
// with a model that is asked for 1,000 points beside a replay, and beside readers of a large study;
// and while a study of 100,000 trials is learnt from, removed and restored; then many agents of
// which one in ten works: heartbeats, and from a lease to its answer. Store and studies in one
// process; the first part then once more over HTTP, against a server (waiting_http.cc).
//   waiting_bench [AGENTS]     default 10000

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "tests/bench/tuner/waiting_http.h"
#include "tracker/store/store.h"
#include "tuner/api/routes.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/registry/broker/agent_calls.h"
#include "tuner/study/registry/clients/client_trials.h"
#include "tuner/study/registry/studies.h"

namespace {

using namespace tune;
using namespace tune::tuner;
using Clock = std::chrono::steady_clock;

constexpr int kHistory = 600;
constexpr int kAsked = 1000;
constexpr int kMeasured = 2000;
constexpr int kLarge = 10'000;  // trials of the study that others read
constexpr int kHuge = 100'000;  // of the one that is learnt from, removed and restored
constexpr int kWritten = 500;   // of them at a time

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double percentile(std::vector<double>& values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void print(const std::string& name, double value, double target) {
    Json line = {{"name", name}, {"value", value}, {"unit", "ms"}, {"better", "lower"}};
    if (target > 0) line["target"] = target;
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
}

/// Calls, and waits for the answer.
template <class T, class Call>
T answer_of(const Call& call) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto answer = promise->get_future();
    call([promise](Result<T> result) { promise->set_value(std::move(result)); });
    Result<T> result = answer.get();
    TUNE_CHECK(result.has_value(), result.error().text());
    if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

void create(Studies& studies, const std::string& name, const std::string& sampler) {
    Json space;
    for (int i = 0; i < 6; ++i) space["x" + std::to_string(i)] = {{"float", {0, 1}}};
    Json json = {{"study", name},
                 {"metric", {{"name", "loss"}}},
                 {"space", space},
                 {"sampler", {{"type", sampler}, {"seed", 1}}}};
    if (name == "agents") json["command"] = {"true"};
    answer_of<Studies::Created>(
        [&](auto done) { studies.create(study_config_from_json(json).value(), std::move(done)); });
}

std::vector<AskedTrial> ask(Studies& studies, const std::string& name, int count) {
    return answer_of<std::vector<AskedTrial>>([&](auto done) {
        studies.clients().ask({.study = name, .count = count}, std::move(done));
    });
}

/// One client that logs and looks, one after the other, until it has done so often enough.
void measure(tracker::Store& store, Studies& studies, const std::string& run_id,
             const std::string& when, const std::atomic<bool>& goes_on) {
    static std::int64_t step = 0;
    std::vector<double> writes;
    std::vector<double> reads;
    for (int i = 0; i < kMeasured || goes_on; ++i) {
        tracker::LogBatch batch{.run_id = run_id};
        ++step;  // the store keeps one of equal points, and that costs it nothing
        batch.metrics.push_back({.key = "waits", .value = 1, .timestamp_ms = step, .step = step});
        auto begin = Clock::now();
        TUNE_CHECK(store.execute(std::move(batch)).has_value(), "log");
        writes.push_back(ms_since(begin));
        begin = Clock::now();
        std::size_t trials = 0;
        TUNE_CHECK(
            studies.read("other", [&](const Study& s) { trials = s.trials().size(); }).has_value(),
            "read");
        reads.push_back(ms_since(begin));
    }
    print("log-metric of another run p50, " + when, percentile(writes, 0.5), 0);
    print("log-metric of another run p99, " + when, percentile(writes, 0.99), 0);
    print("read of another study p99, " + when, percentile(reads, 0.99), 10);
}

void measure_model(tracker::Store& store, Studies& studies) {
    create(studies, "model", "gp");
    create(studies, "other", "random");
    ask(studies, "other", 10);
    const std::string run_id = ask(studies, "other", 1).front().run_id;
    for (const AskedTrial& trial : ask(studies, "model", kHistory))
        answer_of<void>([&](auto done) {
            studies.clients().tell({.trial = {"model", trial.number, 0},
                                    .value = static_cast<double>(trial.seed % 1000)},
                                   std::move(done));
        });
    const std::atomic<bool> stops = false;
    measure(store, studies, run_id, "alone", stops);
    std::atomic<bool> goes_on = true;
    std::thread model([&] {
        const auto begin = Clock::now();
        std::thread replays([&] {
            answer_of<ReplayReport>([&](auto done) { studies.replay("model", std::move(done)); });
        });
        ask(studies, "model", kAsked);
        print("ask of 1,000 of a Gaussian process of 600 trials", ms_since(begin), 0);
        replays.join();
        goes_on = false;
    });
    measure(store, studies, run_id, "beside a model and a replay", goes_on);
    model.join();
}

/// The answer of a route; its length.
std::size_t get(const tracker::Router& router, const std::string& path) {
    auto request = std::make_shared<tracker::Request>();
    const std::size_t query = path.find('?');
    request->raw_path = request->path = "/api/2.0/tune/" + path.substr(0, query);
    if (query != std::string::npos) request->query = {{"max_results", path.substr(query + 1)}};
    request->principal = tracker::OwnerPrincipal{};
    std::promise<tracker::Response> answer;
    router.dispatch(
        request, [&answer](tracker::Response response) { answer.set_value(std::move(response)); });
    const tracker::Response response = answer.get_future().get();
    TUNE_CHECK(response.status == 200, response.body);
    return response.body.size();
}

/// One reader takes all trials of a large study and the list of studies, again and again.
void measure_readers(tracker::Store& store, Studies& studies) {
    create(studies, "large", "random");
    for (int i = 0; i < kLarge; i += 1000) ask(studies, "large", 1000);
    const std::string run_id = ask(studies, "other", 1).front().run_id;
    tracker::Router router;
    add_tuning_routes(router, {studies, store});
    std::atomic<bool> goes_on = true;
    std::vector<double> pages;
    std::thread reader([&] {
        while (goes_on) {
            const auto begin = Clock::now();
            get(router, "studies/large/trials?" + std::to_string(kLarge));
            pages.push_back(ms_since(begin));
            get(router, "studies");
        }
    });
    const std::atomic<bool> stops = false;
    measure(store, studies, run_id, "beside readers of many trials", stops);
    goes_on = false;
    reader.join();
    print("all 10,000 trials of a study p50", percentile(pages, 0.5), 0);
}

/// As a server would have written it.
void write_huge(tracker::Store& store) {
    const auto made = store.execute(tracker::CreateExperiment{.name = "huge"}).value();
    const StudyConfig config =
        study_config_from_json({{"study", "huge"},
                                {"metric", {{"name", "loss"}}},
                                {"space", {{"x", {{"float", {0, 1}}}}, {"y", {{"float", {0, 1}}}}}},
                                {"sampler", {{"type", "random"}, {"seed", 1}}}})
            .value();
    Study study({.name = "huge",
                 .id = random_hex(8),
                 .run_id = random_hex(16),
                 .experiment_id = std::get<tracker::ExperimentId>(made),
                 .seed = 1,
                 .created_ms = 1},
                config);
    TUNE_CHECK(store.execute(tracker::Atomic{create_study_commands(study)}).has_value(), "study");
    std::vector<tracker::Command> commands;
    for (int i = 1; i <= kHuge; ++i) {
        Trial& trial = study.start({.holder = {}, .worker = "w", .ask_request = {}, .now_ms = 1});
        trial.run_id = random_hex(16);
        study.finish(trial, {.state = TrialState::kComplete,
                             .value = static_cast<double>(i % 997),
                             .reason = {},
                             .now_ms = 2});
        for (tracker::Command& one : create_trial_commands(study, trial))
            commands.push_back(std::move(one));
        if (i % kWritten != 0) continue;
        TUNE_CHECK(store.execute(tracker::Atomic{std::exchange(commands, {})}).has_value(),
                   "trials");
    }
}

/// What is measured beside `work`, which another thread does.
void measure_beside(tracker::Store& store, Studies& studies, const std::string& run_id,
                    const std::string& what, const std::function<void()>& work) {
    std::atomic<bool> goes_on = true;
    std::thread thread([&] {
        const auto begin = Clock::now();
        work();
        print(what + " of 100,000 trials", ms_since(begin), 0);
        goes_on = false;
    });
    measure(store, studies, run_id, "beside a " + what + " of 100,000 trials", goes_on);
    thread.join();
}

void measure_huge(tracker::Store& store, Studies& studies) {
    const std::string run_id = ask(studies, "other", 1).front().run_id;
    measure_beside(store, studies, run_id, "warm start", [&] {
        const Json json = {{"study", "warm"},
                           {"metric", {{"name", "loss"}}},
                           {"space", {{"x", {{"float", {0, 1}}}}, {"y", {{"float", {0, 1}}}}}},
                           {"sampler", {{"type", "random"}, {"seed", 1}}},
                           {"warm_start", {{"from", "huge"}}}};
        answer_of<Studies::Created>([&](auto done) {
            studies.create(study_config_from_json(json).value(), std::move(done));
        });
    });
    measure_beside(store, studies, run_id, "removal", [&] {
        answer_of<void>([&](auto done) { studies.erase("huge", std::move(done)); });
    });
    measure_beside(store, studies, run_id, "restore", [&] {
        answer_of<void>([&](auto done) { studies.restore("huge", std::move(done)); });
    });
}

void measure_agents(Studies& studies, int agents) {
    create(studies, "agents", "random");
    for (int i = 0; i < agents; ++i)
        answer_of<RegisterReply>([&](auto done) {
            studies.agents().register_agent({.agent_id = "a" + std::to_string(i), .slots = 1},
                                            std::move(done));
        });
    std::vector<std::vector<AttemptId>> running(static_cast<std::size_t>(agents));
    std::vector<double> leases;
    for (int i = 0; i < agents / 10; ++i) {
        const auto begin = Clock::now();
        const LeaseReply reply = answer_of<LeaseReply>([&](auto done) {
            studies.agents().lease("a" + std::to_string(i), {.free_slots = 1}, std::move(done));
        });
        leases.push_back(ms_since(begin));
        running[static_cast<std::size_t>(i)] = {{reply.leases.at(0).run_id, 1}};
    }
    std::vector<double> beats;
    for (int i = 0; i < agents; ++i) {
        const auto begin = Clock::now();
        answer_of<HeartbeatReply>([&](auto done) {
            studies.agents().heartbeat("a" + std::to_string(i),
                                       {.running = running[static_cast<std::size_t>(i)]},
                                       std::move(done));
        });
        beats.push_back(ms_since(begin));
    }
    const std::string of = " of " + std::to_string(agents) + " agents";
    print("heartbeat p99" + of, percentile(beats, 0.99), 50);
    print("lease to answer p99" + of, percentile(leases, 0.99), 100);
}

}  // namespace

int main(int argc, char** argv) {
    const int agents = argc > 1 ? std::atoi(argv[1]) : 10'000;
    const auto folder =
        std::filesystem::temp_directory_path() / ("tune-waiting-bench-" + random_hex(8));
    {
        auto store = tracker::Store::open({.directory = folder}).value();
        write_huge(*store);
        auto studies = Studies::open({.store = store.get()}).value();
        measure_model(*store, *studies);
        measure_readers(*store, *studies);
        measure_huge(*store, *studies);
        measure_agents(*studies, agents);
        studies->drain();
        store->stop();
        studies.reset();
    }
    std::filesystem::remove_all(folder);
    measure_over_http(std::filesystem::canonical("/proc/self/exe").parent_path());
}
