// A long-poll on the study's version; after each answer the running trials and the trials that have
// ended since are read. Trials end in any order, so every number up to the first open one is known
// to have ended, and a bit per trial above it says which were reported: each is reported exactly
// once.

#include "tuner/cli/terminal/study_watch.h"

#include <algorithm>
#include <condition_variable>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text/percent.h"
#include "tracker/client/mlflow_environment.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/terminal/study_text.h"

namespace tune::cli {
namespace {

constexpr int kPoll_ms = 20'000;
/// Between two refreshes while a study changes all the time: a person reads no faster.
constexpr int kRefresh_ms = 200;

bool has_ended(const Json& trial) {
    const std::string state = text_of(trial, "state");
    return state != "queued" && state != "running";
}

}  // namespace

StudyWatch::StudyWatch(std::string url, std::string study, std::function<void()> changed)
    : study_(std::move(study)), changed_(std::move(changed)) {
    auto client = tracker::create_client({.url = std::move(url), .retries = 0});
    TUNE_CHECK(client.has_value(), "the URL was used before");
    client_ = std::move(client).value();
    if (const Result<void> read = refresh(*client_); !read) view_.error = read.error().message;
    thread_ = std::thread([this] { follow(); });
}

StudyWatch::~StudyWatch() {
    stop_.request_stop();
    client_->cancel();
    thread_.join();
}

StudyView StudyWatch::take() {
    const std::lock_guard lock(mutex_);
    StudyView view = view_;
    view_.ended.clear();
    return view;
}

void StudyWatch::follow() {
    std::mutex pause_mutex;
    std::condition_variable_any pause;
    const std::stop_token stopped = stop_.get_token();
    while (!stopped.stop_requested()) {
        const Result<void> refreshed = refresh(*client_);
        if (stopped.stop_requested()) return;
        {
            const std::lock_guard lock(mutex_);
            view_.error = refreshed ? std::string() : refreshed.error().message;
        }
        changed_();
        // At most one refresh a kRefresh_ms, however fast the study moves.
        std::unique_lock lock(pause_mutex);
        pause.wait_for(lock, stopped, std::chrono::milliseconds(kRefresh_ms), [] { return false; });
    }
}

Result<void> StudyWatch::refresh(tracker::Client& client) {
    const std::string poll = version_ < 0 ? ""
                                          : "?wait_ms=" + std::to_string(kPoll_ms) +
                                                "&version=" + std::to_string(version_);
    TUNE_TRY(study, client.get(study_path(study_) + poll, kPoll_ms + 10'000));
    version_ = study.value("version", std::int64_t{0});
    // Also those that do not count: the first success takes the failures before it out.
    const std::int64_t ended = ended_count(study) + study.value("excused", std::int64_t{0});
    if (ended != ended_seen_) {
        TUNE_TRY_VOID(collect_ended(client));
        ended_seen_ = ended;
    }
    TUNE_TRY(running, client.get(study_path(study_) + "/trials?state=running&fields=intermediate"));
    const std::lock_guard lock(mutex_);
    view_.study = std::move(study);
    view_.running = std::move(running["trials"]);
    return {};
}

Result<void> StudyWatch::collect_ended(tracker::Client& client) {
    std::vector<Json> fresh;
    std::string token = std::to_string(first_open_);  // a page token is a trial's number
    do {
        TUNE_TRY(page, client.get(study_path(study_) + "/trials?max_results=1000&page_token=" +
                                  percent_encode(token, false)));
        for (Json& trial : page["trials"]) {
            const auto number = trial.value("number", std::size_t{0});
            if (known_ended_.size() <= number) known_ended_.resize(number + 1);
            if (known_ended_[number] || !has_ended(trial)) continue;
            known_ended_[number] = true;
            if (!first_) fresh.push_back(std::move(trial));
        }
        token = text_of(page, "next_page_token");
    } while (!token.empty());
    first_ = false;
    while (first_open_ < known_ended_.size() && known_ended_[first_open_]) ++first_open_;
    std::sort(fresh.begin(), fresh.end(), [](const Json& a, const Json& b) {
        return a.value("end_ms", std::int64_t{0}) < b.value("end_ms", std::int64_t{0});
    });
    const std::lock_guard lock(mutex_);
    for (Json& trial : fresh) view_.ended.push_back(std::move(trial));
    return {};
}

}  // namespace tune::cli
