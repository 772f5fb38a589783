#pragma once
// A store in a directory of its own, and short words for what tests do with it.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// A new empty directory, removed at the end.
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "tune-store-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Keeps every notification it gets. Thread-safe.
class RecordingObserver final : public CommitObserver {
public:
    void on_commit(const Commit& commit) override {
        const std::lock_guard lock(mutex_);
        positions_.push_back(commit.position);
        events_.insert(events_.end(), commit.events.begin(), commit.events.end());
    }
    std::vector<std::int64_t> positions() const {
        const std::lock_guard lock(mutex_);
        return positions_;
    }
    /// All events of one kind, in order.
    template <class Kind>
    std::vector<Kind> of() const {
        const std::lock_guard lock(mutex_);
        std::vector<Kind> kind;
        for (const Event& event : events_)
            if (const auto* one = std::get_if<Kind>(&event)) kind.push_back(*one);
        return kind;
    }
    std::size_t count() const {
        const std::lock_guard lock(mutex_);
        return events_.size();
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::int64_t> positions_;
    std::vector<Event> events_;
};

class StoreTest : public testing::Test {
protected:
    using Run = tracker::Run;  // testing::Test has a Run of its own

    void SetUp() override { open(); }

    void open() {
        options_.directory = directory_.path();
        options_.clock = &clock_;
        auto opened = Store::open(options_);
        ASSERT_TRUE(opened) << opened.error().text();
        store_ = std::move(*opened);
        store_->add_observer(&observer_);
    }

    void reopen() {
        store_.reset();
        open();
    }

    /// The outcome, which must be one of T.
    template <class T>
    T run(Command command) {
        auto outcome = store_->execute(std::move(command));
        EXPECT_TRUE(outcome) << outcome.error().text();
        if (!outcome || !std::holds_alternative<T>(*outcome)) {
            ADD_FAILURE() << "another outcome than expected";
            return T{};
        }
        return std::get<T>(std::move(*outcome));
    }

    void run(Command command) { run<std::monostate>(std::move(command)); }

    /// "CODE: message" of a command that must fail; "" when it does not.
    std::string refusal(Command command) { return text_of(store_->execute(std::move(command))); }

    template <class T>
    static std::string text_of(const Result<T>& result) {
        if (result) return "";
        return std::string(code_name(result.error().code)) + ": " + result.error().message;
    }

    ExperimentId create_experiment(const std::string& name) {
        return run<ExperimentId>(CreateExperiment{.name = name});
    }

    std::string create_run(ExperimentId experiment_id = 0, const std::string& run_id = "") {
        return run<Run>(CreateRun{.experiment_id = experiment_id, .run_id = run_id}).info.run_id;
    }

    void log(const std::string& run_id, const std::string& key, double value, std::int64_t step = 0,
             std::int64_t timestamp_ms = 0) {
        run(LogMetric{run_id, {key, value, timestamp_ms, step}});
    }

    Run get(const std::string& run_id) {
        auto found = store_->get_run(run_id);
        EXPECT_TRUE(found) << found.error().text();
        return found ? std::move(*found) : Run{};
    }

    /// "step:value@timestamp ..." in the order of the answer.
    static std::string text(const std::vector<Metric>& metrics) {
        std::string out;
        for (const Metric& metric : metrics) {
            char buffer[100];
            std::snprintf(buffer, sizeof(buffer), "%s%lld:%g@%lld", out.empty() ? "" : " ",
                          static_cast<long long>(metric.step), metric.value,
                          static_cast<long long>(metric.timestamp_ms));
            out += buffer;
        }
        return out;
    }

    std::string history(const std::string& run_id, const std::string& key) {
        auto page = store_->metric_history(run_id, key);
        EXPECT_TRUE(page) << page.error().text();
        return page ? text(page->items) : "";
    }

    /// "key=value ..." of params or tags.
    template <class Item>
    static std::string pairs(const std::vector<Item>& items) {
        std::string out;
        for (const Item& item : items)
            out += (out.empty() ? "" : " ") + item.key + "=" + item.value;
        return out;
    }

    TemporaryDirectory directory_;
    ManualClock clock_{1'000};
    StoreOptions options_;
    RecordingObserver observer_;  // outlives the store
    std::unique_ptr<Store> store_;
};

}  // namespace tune::tracker
