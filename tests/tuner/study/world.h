#pragma once
// A real store in a scratch folder, a clock that is moved by hand, Studies, and calls that wait for
// their completion.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "tracker/store/store.h"
#include "tuner/study/registry/broker/agent_calls.h"
#include "tuner/study/registry/clients/client_trials.h"
#include "tuner/study/registry/studies.h"

namespace tune::tuner {

/// What a call with a completion answered; gives up after a minute.
template <class T>
class Answer {
public:
    [[nodiscard]] Done<T> done() {
        return [promise = promise_](Result<T> result) { promise->set_value(std::move(result)); };
    }
    [[nodiscard]] bool is_there() {
        return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
    [[nodiscard]] Result<T> get() {
        if (future_.wait_for(std::chrono::minutes(1)) != std::future_status::ready)
            return Error{Code::kDeadlineExceeded, "no answer in a minute"};
        return future_.get();
    }

private:
    std::shared_ptr<std::promise<Result<T>>> promise_ = std::make_shared<std::promise<Result<T>>>();
    std::future<Result<T>> future_ = promise_->get_future();
};

struct TrialView {
    TrialState state = TrialState::kQueued;
    int attempt = 0;
    std::string run_id;
    std::optional<double> value;
    std::string reason;
    int user_failures = 0;
    int lost_attempts = 0;
};

class World {
public:
    static constexpr std::int64_t kTtl_ms = 40'000;

    /// `parent`: where its folder is made.
    explicit World(const std::filesystem::path& parent = std::filesystem::temp_directory_path())
        : folder_(parent / ("tune-study-" + random_hex(8))) {
        open();
    }
    ~World() {
        close();
        std::filesystem::remove_all(folder_);
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    void open() {
        auto store = tracker::Store::open(
            {.directory = folder_, .clock = &clock_, .database_bytes_max = database_bytes_max_});
        ASSERT_TRUE(store.has_value()) << store.error().text();
        store_ = std::move(store).value();
        auto studies = Studies::open({.store = store_.get(),
                                      .clock = &clock_,
                                      .lease_ttl_ms = kTtl_ms,
                                      .ticker = false,
                                      .before_suggestion =
                                          [this](const std::string& study) {
                                              if (before_suggestion_) before_suggestion_(study);
                                          },
                                      .before_reading =
                                          [this](const std::string& study) {
                                              if (before_reading_) before_reading_(study);
                                          }});
        ASSERT_TRUE(studies.has_value()) << studies.error().text();
        studies_ = std::move(studies).value();
    }
    void close() {
        if (studies_) studies_->drain();
        if (store_) store_->stop();
        studies_.reset();
        store_.reset();
    }
    void reopen() {
        close();
        open();
    }
    /// Runs on the thread that is about to compute a suggestion. To be set while none is wanted.
    void set_before_suggestion(std::function<void(const std::string& study)> call) {
        before_suggestion_ = std::move(call);
    }
    /// The same on the thread that is about to read a whole study.
    void set_before_reading(std::function<void(const std::string& study)> call) {
        before_reading_ = std::move(call);
    }
    void set_database_bytes_max(std::int64_t bytes) { database_bytes_max_ = bytes; }

    /// The disk has no room for anything, or has it again. REQUIRES: set_database_bytes_max before
    /// it was opened.
    void fill_disk() {
        for (std::size_t bytes = 100'000; bytes > 0; bytes /= 2) {
            const auto put = [&] {
                return store_->execute(
                    tracker::PutDocument{"fill", std::to_string(filled_), std::string(bytes, 'x')});
            };
            while (put().has_value()) ++filled_;
        }
    }
    void free_disk() {
        for (; filled_ > 0; --filled_) {
            const auto gone =
                store_->execute(tracker::DeleteDocument{"fill", std::to_string(filled_ - 1)});
            ASSERT_TRUE(gone.has_value()) << gone.error().text();
        }
    }

    [[nodiscard]] tracker::Store& store() { return *store_; }
    [[nodiscard]] Studies& studies() { return *studies_; }

    void advance_ms(std::int64_t by_ms) {
        clock_.advance_ms(by_ms);
        studies_->tick();
    }

    // --- studies ---

    static StudyConfig config(const std::string& fields) {
        Result<Json> json = parse_json(
            "{\"study\": \"s\", \"metric\": {\"name\": \"loss\"}, "
            "\"space\": {\"x\": {\"float\": [0, 1]}}, "
            "\"sampler\": {\"type\": \"random\", \"seed\": 1}, "
            "\"command\": [\"run\", \"{x}\"]}");
        EXPECT_TRUE(json.has_value());
        const Result<Json> more = parse_json("{" + fields + "}");
        EXPECT_TRUE(more.has_value());
        json->update(*more);
        Result<StudyConfig> read = study_config_from_json(*json);
        EXPECT_TRUE(read.has_value()) << read.error().text();
        return std::move(read).value();
    }
    Result<Studies::Created> create(const std::string& fields = "") {
        Answer<Studies::Created> answer;
        studies_->create(config(fields), answer.done());
        return answer.get();
    }
    Result<Studies::Created> extend(const std::string& fields) {
        Answer<Studies::Created> answer;
        studies_->create(config(fields), {.extend = true}, answer.done());
        return answer.get();
    }
    Result<void> change(Studies::Change change, const std::string& study = "s") {
        Answer<void> answer;
        studies_->change(study, change, answer.done());
        return answer.get();
    }
    StudyState state() {
        StudyState state = StudyState::kRunning;
        EXPECT_TRUE(
            studies_->read("s", [&](const Study& study) { state = study.state(); }).has_value());
        return state;
    }
    std::size_t count(TrialState state) {
        std::size_t count = 0;
        EXPECT_TRUE(
            studies_->read("s", [&](const Study& study) { count = study.trials().count(state); })
                .has_value());
        return count;
    }
    TrialView trial(std::uint64_t number) {
        TrialView facts;
        EXPECT_TRUE(studies_
                        ->read("s",
                               [&](const Study& study) {
                                   const Trial* trial = study.trials().find(number);
                                   ASSERT_NE(trial, nullptr);
                                   facts = {trial->state,        trial->attempt,
                                            trial->run_id,       trial->value,
                                            trial->reason,       trial->user_failures,
                                            trial->lost_attempts};
                               })
                        .has_value());
        return facts;
    }
    /// All documents of the tuner, as the journal holds them.
    /// What is on disk of the studies, once everything submitted before is.
    std::string journal() {
        EXPECT_TRUE(store_->execute(tracker::PutDocument{"world", "settled", "{}"}).has_value());
        std::string text;
        for (const char* collection : {"tune.studies", "tune.trials"}) {
            const auto documents = store_->list_documents(collection);
            EXPECT_TRUE(documents.has_value());
            for (const auto& document : *documents) text += document.json_text + "\n";
        }
        return text;
    }

    // --- clients ---

    Result<std::vector<AskedTrial>> ask(int count = 1, std::string request_id = "",
                                        std::int64_t ttl_ms = 0) {
        Answer<std::vector<AskedTrial>> answer;
        studies_->clients().ask({.study = "s",
                                 .count = count,
                                 .request_id = std::move(request_id),
                                 .worker = "client",
                                 .lease_ttl_ms = ttl_ms},
                                answer.done());
        return answer.get();
    }
    Result<AskedTrial> enqueue(const std::string& params_json, std::string request_id = "") {
        Answer<AskedTrial> answer;
        studies_->clients().enqueue("s", params_json, std::move(request_id), answer.done());
        return answer.get();
    }
    Result<std::optional<Action>> report(std::uint64_t number, int attempt, std::int64_t step,
                                         double value) {
        Answer<std::optional<Action>> answer;
        studies_->clients().report({.trial = {"s", number, attempt}, .step = step, .value = value},
                                   answer.done());
        return answer.get();
    }
    Result<void> tell(TellRequest request) {
        Answer<void> answer;
        studies_->clients().tell(std::move(request), answer.done());
        return answer.get();
    }
    Result<void> tell(std::uint64_t number, double value) {
        return tell({.trial = {"s", number, 0}, .value = value});
    }

    // --- agents ---

    Result<RegisterReply> register_agent(const std::string& id, std::vector<AttemptId> running = {},
                                         int slots = 64) {
        Answer<RegisterReply> answer;
        studies_->agents().register_agent({.agent_id = id,
                                           .host = "host-" + id,
                                           .slots = slots,
                                           .cpus = 64,
                                           .gpus = {"gpu-0", "gpu-1", "gpu-2", "gpu-3"},
                                           .running = std::move(running)},
                                          answer.done());
        return answer.get();
    }
    Result<LeaseReply> lease(const std::string& id, int slots = 1, std::string request_id = "") {
        Answer<LeaseReply> answer;
        studies_->agents().lease(id, {.request_id = std::move(request_id), .free_slots = slots},
                                 answer.done());
        return answer.get();
    }
    /// The same for an agent that gives its trials their credentials.
    Result<LeaseReply> lease_with_token(const std::string& id, std::string request_id = "") {
        Answer<LeaseReply> answer;
        studies_->agents().lease(
            id, {.request_id = std::move(request_id), .free_slots = 1, .wants_tokens = true},
            answer.done());
        return answer.get();
    }
    Result<HeartbeatReply> heartbeat(const std::string& id, std::vector<AttemptId> running) {
        Answer<HeartbeatReply> answer;
        studies_->agents().heartbeat(id, {.wait_ms = 0, .running = std::move(running)},
                                     answer.done());
        return answer.get();
    }
    Result<FinishReply> finish(const std::string& id, const AttemptId& attempt,
                               FinishRequest request) {
        Answer<FinishReply> answer;
        studies_->agents().finish(id, attempt, std::move(request), answer.done());
        return answer.get();
    }
    /// As an MLflow client would, whoever holds the trial.
    /// `clock_ms`: how far the clock of who logs is ahead.
    void log(const std::string& run_id, const std::string& key, std::int64_t step, double value,
             std::int64_t clock_ms = 0) {
        tracker::LogBatch batch{.run_id = run_id};
        batch.metrics.push_back(
            {.key = key, .value = value, .timestamp_ms = clock_.now_ms() + clock_ms, .step = step});
        const auto logged = store_->execute(std::move(batch));
        ASSERT_TRUE(logged.has_value()) << logged.error().text();
    }

private:
    std::filesystem::path folder_;
    ManualClock clock_{1'700'000'000'000};
    std::int64_t database_bytes_max_ = 0;
    int filled_ = 0;
    std::function<void(const std::string& study)> before_suggestion_;
    std::function<void(const std::string& study)> before_reading_;
    std::unique_ptr<tracker::Store> store_;
    std::unique_ptr<Studies> studies_;
};

inline AttemptId token(const Lease& lease) {
    return {lease.run_id, lease.attempt};
}

}  // namespace tune::tuner
