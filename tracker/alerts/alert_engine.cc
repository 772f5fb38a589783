// An alert is a tag, written once: the tag is looked for before it is set, so neither a restart nor
// a second engine repeats it. Rules run on the observer thread and only note what is to be marked;
// tags are written by the engine's own thread, since an observer must not wait for the writer.

#include "tracker/alerts/alert_engine.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/id.h"
#include "base/log.h"
#include "base/text/counted.h"
#include "base/text/number_text.h"
#include "base/text/python_text.h"
#include "tracker/store/reads/read_alerts.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kTagPrefix = "tune.alert.";
constexpr std::size_t kAlertIdBytes = 8;
/// Silence is looked for at most this often.
constexpr std::int64_t kCheckPause_ms = 100;
constexpr std::int64_t kNever_ms = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kHistoryPage = 10'000;
constexpr auto kLongWait = std::chrono::seconds(60);

std::string tag_key(AlertKind kind) {
    return std::string(kTagPrefix) + std::string(alert_kind_name(kind));
}

std::string given_key(AlertKind kind, const std::string& run_id) {
    return std::string(alert_kind_name(kind)) + " " + run_id;
}

std::string plateau_key(const AlertRule& rule, const std::string& run_id) {
    return rule.alert_id + " " + run_id;
}

std::string bad_value_text(const Metric& point) {
    return point.key + " is " + (std::isnan(point.value) ? "NaN" : "infinite") + " at step " +
           std::to_string(point.step);
}

std::string plateau_text(const AlertRule& rule, const PlateauState& state) {
    std::string text = rule.metric + " has not improved by more than " +
                       number_text(rule.min_delta) + " in " + counted(rule.points, "point");
    if (std::isnan(state.best())) return text;
    return text + " (best " + number_text(state.best()) + " at step " +
           std::to_string(state.best_step()) + ")";
}

std::string value_of(const std::vector<Tag>& tags, std::string_view key) {
    for (const Tag& tag : tags)
        if (tag.key == key) return tag.value;
    return {};
}

/// The tags that this engine sets are no sign of life.
bool is_own(const TagsSet& set) {
    return std::all_of(set.tags.begin(), set.tags.end(),
                       [](const Tag& tag) { return tag.key.starts_with(kTagPrefix); });
}

}  // namespace

Result<std::unique_ptr<AlertEngine>> AlertEngine::open(Store& store, EventHub& hub,
                                                       const Clock& clock) {
    std::unique_ptr<AlertEngine> engine(new AlertEngine(store, hub, clock));
    TUNE_TRY_VOID(engine->load());
    store.add_observer(engine.get());
    return engine;
}

Result<void> AlertEngine::load() {
    TUNE_TRY(documents, store_.list_documents(kAlertCollection));
    for (const Document& document : documents) {
        TUNE_TRY(json, parse_json(document.json_text));
        const std::int64_t created_ms = json.value("created", std::int64_t{0});
        json.erase("created");
        json.erase("alert_id");
        TUNE_TRY(rule, alert_rule_from_json(json));
        rule.alert_id = document.key;
        rule.created_ms = created_ms;
        rules_.push_back(std::move(rule));
    }
    std::sort(rules_.begin(), rules_.end(), [](const AlertRule& a, const AlertRule& b) {
        return std::tie(a.created_ms, a.alert_id) < std::tie(b.created_ms, b.alert_id);
    });
    has_rules_ = !rules_.empty();
    must_watch_ = has_silence_rule();
    return {};
}

void AlertEngine::start() {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void AlertEngine::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

// --- rules ---------------------------------------------------------------------------------------

std::vector<AlertRule> AlertEngine::rules() const {
    const std::lock_guard lock(mutex_);
    return rules_;
}

Result<AlertRule> AlertEngine::create(AlertRule rule) {
    const std::lock_guard change(changes_);
    if (rules().size() >= kAlertRulesMax)
        return Error{Code::kResourceExhausted, "The server has " + std::to_string(kAlertRulesMax) +
                                                   " alerts, which is its limit; delete one."};
    if (rule.experiment_id) TUNE_TRY_VOID(store_.get_experiment(*rule.experiment_id));
    rule.alert_id = random_hex(kAlertIdBytes);
    rule.created_ms = clock_.now_ms();
    TUNE_TRY_VOID(store_.execute(
        PutDocument{kAlertCollection, rule.alert_id, to_text(alert_rule_to_json(rule))}));
    const std::lock_guard lock(mutex_);
    rules_.push_back(rule);
    has_rules_ = true;
    if (rule.kind == AlertKind::kSilence) {
        must_watch_ = true;
        next_check_ms_ = 0;
        wake_.notify_all();
    }
    return rule;
}

Result<void> AlertEngine::remove(const std::string& alert_id) {
    const std::lock_guard change(changes_);
    const std::vector<AlertRule> known = rules();
    const auto is_it = [&](const AlertRule& rule) { return rule.alert_id == alert_id; };
    if (std::none_of(known.begin(), known.end(), is_it))
        return Error{Code::kResourceDoesNotExist, "There is no alert with id " + alert_id + "."};
    TUNE_TRY_VOID(store_.execute(DeleteDocument{kAlertCollection, alert_id}));
    const std::lock_guard lock(mutex_);
    std::erase_if(rules_, is_it);
    has_rules_ = !rules_.empty();
    if (!has_silence_rule()) watch_.clear();
    return {};
}

AlertEngine::Stats AlertEngine::stats() const {
    const std::lock_guard lock(mutex_);
    Stats now = stats_;
    now.rules = rules_.size();
    now.watched_runs = watch_.size();
    now.waiting = alerts_.size() + unread_.size();
    return now;
}

bool AlertEngine::has_silence_rule() const {
    return std::any_of(rules_.begin(), rules_.end(),
                       [](const AlertRule& rule) { return rule.kind == AlertKind::kSilence; });
}

/// Of several rules the one with the shortest time counts.
std::optional<std::int64_t> AlertEngine::silence_limit_ms(ExperimentId id) const {
    std::optional<std::int64_t> limit;
    for (const AlertRule& rule : rules_)
        if (rule.kind == AlertKind::kSilence && rule.applies_to(id))
            limit = std::min(limit.value_or(rule.silence_ms), rule.silence_ms);
    return limit;
}

// --- commits -------------------------------------------------------------------------------------

void AlertEngine::on_commit(const Commit& commit) {
    if (!has_rules_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    const bool has_silence = has_silence_rule();
    const bool was_idle = watch_.size() == 0;
    for (const Event& event : commit.events) {
        if (has_silence) take_silence(event);
        take(event);
    }
    const bool begins = was_idle && watch_.size() > 0;
    const bool is_due = has_silence && next_check_ms_ <= clock_.monotonic_ms();
    if (begins || is_due || must_watch_ || !alerts_.empty() || !unread_.empty()) wake_.notify_all();
}

void AlertEngine::take(const Event& event) {
    if (const auto* logged = std::get_if<MetricsLogged>(&event)) return take_metrics(*logged);
    // Whoever deletes the tag wants to be alerted again.
    if (const auto* deleted = std::get_if<TagDeleted>(&event)) {
        if (!deleted->key.starts_with(kTagPrefix)) return;
        given_.erase(deleted->key.substr(kTagPrefix.size()) + " " + deleted->run_id);
        for (const AlertRule& rule : rules_)
            if (rule.kind == AlertKind::kPlateau)
                plateaus_.erase(plateau_key(rule, deleted->run_id));
    }
}

void AlertEngine::take_metrics(const MetricsLogged& logged) {
    for (const AlertRule& rule : rules_) {
        if (!rule.applies_to(logged.experiment_id)) continue;
        if (rule.kind == AlertKind::kPlateau) take_plateau(rule, logged);
        if (rule.kind != AlertKind::kNan) continue;
        for (const Metric& point : logged.metrics) {
            if (!is_bad_value(point.value)) continue;
            if (!rule.metric.empty() && rule.metric != point.key) continue;
            give({AlertKind::kNan, logged.run_id, logged.experiment_id, bad_value_text(point),
                  false});
            break;
        }
    }
}

void AlertEngine::take_plateau(const AlertRule& rule, const MetricsLogged& logged) {
    const auto concerns = [&](const Metric& point) { return point.key == rule.metric; };
    if (std::none_of(logged.metrics.begin(), logged.metrics.end(), concerns)) return;
    const std::string key = plateau_key(rule, logged.run_id);
    Plateau* plateau = plateaus_.find(key);
    if (plateau == nullptr) {
        plateaus_.put(key, Plateau{});
        return queue_unread({rule, logged.run_id, logged.experiment_id});
    }
    if (!plateau->is_read) {
        plateau->is_stale = true;
        return;
    }
    if (plateau->is_given) return;
    for (const Metric& point : logged.metrics)
        if (concerns(point)) plateau->state.add(rule, point);
    if (!plateau->state.is_flat(rule)) return;
    plateau->is_given = true;
    give({AlertKind::kPlateau, logged.run_id, logged.experiment_id,
          plateau_text(rule, plateau->state), false});
}

void AlertEngine::take_silence(const Event& event) {
    const std::int64_t now_ms = clock_.monotonic_ms();
    const auto watch = [&](RunningRun run) {
        given_.erase(given_key(AlertKind::kSilence, run.run_id));
        if (!watch_.add(std::move(run), now_ms)) is_watch_full_ = true;
    };
    if (const auto* created = std::get_if<RunCreated>(&event)) {
        if (created->info.status != RunStatus::kRunning) return;
        watch({created->info.run_id, created->info.experiment_id,
               value_of(created->tags, "mlflow.parentRunId"),
               !value_of(created->tags, "tune.trial").empty(),
               !value_of(created->tags, "tune.kind").empty()});
    } else if (const auto* updated = std::get_if<RunUpdated>(&event)) {
        const RunInfo& info = updated->info;
        watch_.touch(info.run_id, now_ms);
        const bool is_over =
            info.status != RunStatus::kRunning || info.lifecycle_stage == LifecycleStage::kDeleted;
        if (is_over) {
            watch_.remove(info.run_id);
            // There is room again for runs that are not watched yet.
            if (is_watch_full_ && watch_.size() < kWatchedRunsMax / 10 * 9) must_watch_ = true;
        } else if (updated->status_changed) {
            // It continues. What it is (a trial, a nested run) stands in its tags.
            given_.erase(given_key(AlertKind::kSilence, info.run_id));
            must_watch_ = true;
        }
    } else if (const auto* metrics = std::get_if<MetricsLogged>(&event)) {
        watch_.touch(metrics->run_id, now_ms);
    } else if (const auto* params = std::get_if<ParamsLogged>(&event)) {
        watch_.touch(params->run_id, now_ms);
    } else if (const auto* set = std::get_if<TagsSet>(&event)) {
        if (!is_own(*set)) watch_.touch(set->run_id, now_ms);
    } else if (const auto* links = std::get_if<RunLinksChanged>(&event)) {
        watch_.touch(links->run_id, now_ms);
    }
}

void AlertEngine::give(Alert alert) {
    const std::string key = given_key(alert.kind, alert.run_id);
    if (given_.find(key) != nullptr) return;
    if (alerts_.size() >= kAlertQueueMax) {
        ++stats_.dropped;
        return;
    }
    given_.put(key, true);
    alerts_.push_back(std::move(alert));
}

void AlertEngine::queue_unread(Unread unread) {
    if (unread_.size() < kAlertQueueMax) {
        unread_.push_back(std::move(unread));
        return;
    }
    plateaus_.erase(plateau_key(unread.rule, unread.run_id));
    ++stats_.dropped;
}

// --- the engine's thread -------------------------------------------------------------------------

void AlertEngine::run() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
        if (must_watch_) {
            watch_running(lock);
        } else if (!unread_.empty()) {
            const Unread next = std::move(unread_.front());
            unread_.pop_front();
            read_history(lock, next);
        } else if (!alerts_.empty()) {
            const Alert next = std::move(alerts_.front());
            alerts_.pop_front();
            mark(lock, next);
        } else if (has_silence_rule() && watch_.size() > 0 &&
                   next_check_ms_ <= clock_.monotonic_ms()) {
            find_silent();
        } else if (has_silence_rule() && watch_.size() > 0) {
            wake_.wait_for(lock, std::min<std::chrono::milliseconds>(
                                     kLongWait, std::chrono::milliseconds(next_check_ms_ -
                                                                          clock_.monotonic_ms())));
        } else {
            next_check_ms_ = 0;
            wake_.wait_for(lock, kLongWait);
        }
    }
}

void AlertEngine::watch_running(std::unique_lock<std::mutex>& lock) {
    must_watch_ = false;
    is_watch_full_ = false;
    if (!has_silence_rule()) return;
    lock.unlock();
    const auto runs = store_.snapshot([](sqlite::Connection& connection) {
        return running_runs(connection, static_cast<std::int64_t>(kWatchedRunsMax) + 1);
    });
    lock.lock();
    if (!runs) {
        log_warning("Alerts cannot read the running runs: " + runs.error().text());
        return;
    }
    // A run that ended meanwhile is watched in vain: ending it is refused by the store.
    const std::int64_t now_ms = clock_.monotonic_ms();
    for (const RunningRun& run : *runs)
        if (!watch_.contains(run.run_id) && !watch_.add(run, now_ms)) is_watch_full_ = true;
    next_check_ms_ = 0;
}

void AlertEngine::find_silent() {
    const std::int64_t now_ms = clock_.monotonic_ms();
    std::int64_t next_ms = kNever_ms;
    const auto limit_ms = [this](ExperimentId id) { return silence_limit_ms(id); };
    const auto silent = watch_.silent(now_ms, limit_ms, next_ms);
    for (const SilenceWatch::Silent& run : silent) {
        const std::string since =
            "no write for " + std::to_string(run.silent_ms / 1000) + " s; the run was ";
        give({AlertKind::kSilence, run.run_id, run.experiment_id,
              since + (run.is_trial ? "left to the tuner, whose leases decide on trials"
                                    : "ended as KILLED"),
              !run.is_trial});
        watch_.remove(run.run_id);
    }
    // New runs only become due after their whole time, which is at least a second.
    std::int64_t shortest_ms = kNever_ms;
    for (const AlertRule& rule : rules_)
        if (rule.kind == AlertKind::kSilence) shortest_ms = std::min(shortest_ms, rule.silence_ms);
    next_check_ms_ = std::max(std::min(next_ms, now_ms + shortest_ms), now_ms + kCheckPause_ms);
}

void AlertEngine::read_history(std::unique_lock<std::mutex>& lock, const Unread& unread) {
    const std::string key = plateau_key(unread.rule, unread.run_id);
    PlateauState state;
    lock.unlock();
    std::string token;
    bool is_whole = false;
    for (;;) {
        const Result<Page<Metric>> page =
            store_.metric_history(unread.run_id, unread.rule.metric, kHistoryPage, token);
        if (!page) break;
        for (const Metric& point : page->items) state.add(unread.rule, point);
        token = page->next_page_token;
        is_whole = token.empty();
        if (is_whole) break;
    }
    lock.lock();
    Plateau* plateau = plateaus_.find(key);
    if (plateau == nullptr) return;
    if (!is_whole) return plateaus_.erase(key);
    if (plateau->is_stale) {
        plateau->is_stale = false;
        return queue_unread(unread);
    }
    plateau->state = state;
    plateau->is_read = true;
    if (!state.is_flat(unread.rule)) return;
    plateau->is_given = true;
    give({AlertKind::kPlateau, unread.run_id, unread.experiment_id,
          plateau_text(unread.rule, state), false});
}

void AlertEngine::mark(std::unique_lock<std::mutex>& lock, const Alert& alert) {
    lock.unlock();
    const std::string key = tag_key(alert.kind);
    const auto tag = store_.snapshot([&](sqlite::Connection& connection) {
        return find_run_tag(connection, alert.run_id, key);
    });
    const bool is_known = tag && tag->has_value() && !alert.ends_run;
    Result<Outcome> done = Outcome{};
    if (!is_known) {
        std::vector<Command> commands;
        if (alert.ends_run)
            commands.push_back(UpdateRun{.run_id = alert.run_id,
                                         .status = RunStatus::kKilled,
                                         .end_time_ms = clock_.now_ms(),
                                         .only_if_status = RunStatus::kRunning});
        commands.push_back(SetTag{alert.run_id, {key, alert.message}});
        done = store_.execute(Atomic{std::move(commands)});
    }
    if (done && !is_known) {
        const Json event = {{"run_id", alert.run_id},
                            {"experiment_id", std::to_string(alert.experiment_id)},
                            {"kind", alert_kind_name(alert.kind)},
                            {"message", alert.message}};
        hub_.publish("experiment:" + std::to_string(alert.experiment_id), "alert", event,
                     alert.experiment_id);
        hub_.publish("run:" + alert.run_id, "alert", event, alert.experiment_id);
    }
    lock.lock();
    if (done && !is_known) ++stats_.given[static_cast<std::size_t>(alert.kind)];
    if (done) return;
    given_.erase(given_key(alert.kind, alert.run_id));
    // Deleted or ended meanwhile: nothing to mark. A full disk or queue: the next point, or for
    // silence the next reading of the running runs, comes to the same alert.
    const Code code = done.error().code;
    if (code == Code::kInvalidState || code == Code::kInvalidParameterValue ||
        code == Code::kResourceDoesNotExist)
        return;
    log_warning("Alert on run " + alert.run_id + ": " + done.error().text());
    if (alert.kind == AlertKind::kSilence)
        watch_.add({alert.run_id, alert.experiment_id, "", !alert.ends_run, false},
                   clock_.monotonic_ms());
    if (alert.kind == AlertKind::kPlateau) plateaus_.clear();
}

}  // namespace tune::tracker
