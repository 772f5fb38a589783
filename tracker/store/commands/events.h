#pragma once
// What observers get after a commit. Events say what changed, not what was asked: a dropped
// duplicate metric or a param logged again makes no event.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tracker/store/commands/registry_events.h"
#include "tracker/store/types.h"

namespace tune::tracker {

struct RunCreated {
    RunInfo info;
    std::vector<Tag> tags;
};

/// Status, times, name or life cycle changed; `info` is the new state.
struct RunUpdated {
    RunInfo info;
    bool status_changed = false;
};

/// Rows in the order of the request, without those that were there already. NaN stays NaN,
/// infinities are clamped.
struct MetricsLogged {
    std::string run_id;
    ExperimentId experiment_id = 0;
    std::vector<Metric> metrics;
    /// The mark (MarkMetrics) under which those came whose metric has one; nothing: none has.
    std::optional<std::int64_t> mark = {};
};

struct ParamsLogged {
    std::string run_id;
    ExperimentId experiment_id = 0;
    std::vector<Param> params;
};

struct TagsSet {
    std::string run_id;
    ExperimentId experiment_id = 0;
    std::vector<Tag> tags;
};

struct TagDeleted {
    std::string run_id;
    ExperimentId experiment_id = 0;
    std::string key;
};

/// Datasets or models were linked to the run.
struct RunLinksChanged {
    std::string run_id;
    ExperimentId experiment_id = 0;
};

/// Created, renamed, tagged, deleted or restored; `experiment` is the new state. Deleting and
/// restoring change all runs of the experiment without a RunUpdated for each.
struct ExperimentChanged {
    Experiment experiment;
};

/// Created, finalized, tagged, given params, deleted.
struct LoggedModelChanged {
    std::string model_id;
    ExperimentId experiment_id = 0;
};

struct DocumentPut {
    Document document;
};

struct DocumentDeleted {
    std::string collection;
    std::string key;
};

using EventVariant =
    std::variant<RunCreated, RunUpdated, MetricsLogged, ParamsLogged, TagsSet, TagDeleted,
                 RunLinksChanged, ExperimentChanged, LoggedModelChanged, DocumentPut,
                 DocumentDeleted, RegistryChanged>;

/// One of these. Its special members, as those of Command, are in commands.cc.
struct Event : EventVariant {
    using EventVariant::EventVariant;
    Event();
    Event(const Event&);
    Event(Event&&) noexcept;
    Event& operator=(const Event&);
    Event& operator=(Event&&) noexcept;
    ~Event();
};

/// One transaction that is on disk. `position` grows by one per commit that has events, and
/// continues after a restart. Events are in the order in which the commands were applied.
struct Commit {
    std::int64_t position = 0;
    std::span<const Event> events;
};

/// Called on the store's observer thread, one commit at a time, in commit order, after the answers
/// of that commit were given. May submit commands; must not call Store::execute or wait for a
/// completion. A slow observer slows all writes down once kObserverQueueMax commits wait for it.
class CommitObserver {
public:
    virtual ~CommitObserver() = default;
    virtual void on_commit(const Commit& commit) = 0;
    /// Users, roles or grants changed with that commit, which may have no events.
    virtual void on_permissions_changed() {}
};

}  // namespace tune::tracker
