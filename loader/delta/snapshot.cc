// Replay from the checkpoint forwards: an add puts its file under its key, a remove takes it away,
// the last protocol and metadata count. `_last_checkpoint` is not read: the listing says the same
// and cannot be out of date.

#include "loader/delta/snapshot.h"

#include <algorithm>
#include <unordered_map>

#include "base/text/time_text.h"
#include "loader/rows/time_value.h"

namespace tune::loader {
namespace {

constexpr const char* kLog = "_delta_log/";
constexpr std::int64_t kMillisecond_ns = 1'000'000;
/// Sidecars of one checkpoint; a damaged one may name any number.
constexpr std::size_t kSidecarsMax = 100'000;

class Replay {
public:
    void apply(DeltaAction action) {
        if (action.protocol) protocol_ = std::move(action.protocol);
        if (action.metadata) metadata_ = std::move(action.metadata);
        if (action.remove) files_.erase(action.remove->key());
        if (action.add) {
            std::string key = action.add->key();
            files_[std::move(key)] = *std::move(action.add);
        }
    }

    [[nodiscard]] Result<DeltaSnapshot> finish(std::int64_t version) {
        if (!protocol_) return data_loss("the log has no protocol");
        TUNE_TRY_VOID(check_protocol(*protocol_));
        if (!metadata_) return data_loss("the log has no metaData");
        if (metadata_->provider != "parquet")
            return Error{Code::kNotImplemented,
                         "the table's files are '" + metadata_->provider + "', not parquet"};
        DeltaSnapshot snapshot{version, *std::move(protocol_), *std::move(metadata_)};
        for (auto& [key, file] : files_) snapshot.files.push_back(std::move(file));
        std::sort(snapshot.files.begin(), snapshot.files.end(),
                  [](const DeltaFile& a, const DeltaFile& b) { return a.key() < b.key(); });
        for (std::size_t i = 1; i < snapshot.files.size(); ++i)
            if (snapshot.files[i - 1].path == snapshot.files[i].path)
                return data_loss("the log holds the file '" + snapshot.files[i].path + "' twice");
        return snapshot;
    }

private:
    std::optional<DeltaProtocol> protocol_;
    std::optional<DeltaMetadata> metadata_;
    std::unordered_map<std::string, DeltaFile> files_;
};

Error in_log(Error error, const ObjectSource& source, const std::string& path) {
    if (error.context.empty()) error.context = "'" + source.url() + "/" + path + "'";
    return error;
}

Result<std::vector<DeltaAction>> read_actions(const ObjectSource& source, const std::string& path,
                                              const ReadCheckpoint& read_checkpoint) {
    if (path.ends_with(".parquet")) {
        Result<std::vector<DeltaAction>> actions = read_checkpoint(source, path);
        if (!actions) return in_log(std::move(actions).error(), source, path);
        return actions;
    }
    TUNE_TRY(text, read_object(source, path));
    Result<std::vector<DeltaAction>> actions = parse_commit(text);
    if (!actions) return in_log(std::move(actions).error(), source, path);
    return actions;
}

Result<void> replay_checkpoint(const ObjectSource& source, const LogSegment& segment,
                               const ReadCheckpoint& read_checkpoint, Replay& replay) {
    std::vector<std::string> sidecars;
    for (const std::string& name : segment.checkpoint) {
        TUNE_TRY(actions, read_actions(source, kLog + name, read_checkpoint));
        for (DeltaAction& action : actions) {
            if (action.sidecar) sidecars.push_back(*std::move(action.sidecar));
            replay.apply(std::move(action));
        }
    }
    if (sidecars.size() > kSidecarsMax) return data_loss("the checkpoint names too many sidecars");
    // Sidecars hold files only, so none can lead to another.
    for (const std::string& name : sidecars) {
        const std::string path = std::string(kLog) + "_sidecars/" + name;
        TUNE_TRY(actions, read_actions(source, path, read_checkpoint));
        for (DeltaAction& action : actions) {
            if (!action.add && !action.remove)
                if (action.sidecar || action.protocol || action.metadata)
                    return in_log(data_loss("a sidecar that holds more than files"), source, path);
            replay.apply(std::move(action));
        }
    }
    return {};
}

/// The newest version whose commit is not later than `time_ms`.
Result<std::int64_t> version_at(const ObjectSource& source, const std::vector<std::string>& names,
                                std::int64_t time_ms) {
    std::vector<std::int64_t> versions;
    for (const std::string& name : names)
        if (const auto version = commit_version(name)) versions.push_back(*version);
    std::sort(versions.begin(), versions.end());
    std::optional<std::int64_t> found;
    std::int64_t previous_ms = INT64_MIN;
    for (const std::int64_t version : versions) {
        const std::string path = kLog + commit_name(version);
        TUNE_TRY(actions, read_actions(source, path, {}));
        std::optional<std::int64_t> stated;
        for (const DeltaAction& action : actions)
            if (action.commit_time_ms) stated = action.commit_time_ms;
        if (!stated)
            return in_log(data_loss("the commit does not state its time; choose a version instead"),
                          source, path);
        previous_ms = std::max(*stated, previous_ms == INT64_MIN ? *stated : previous_ms + 1);
        if (previous_ms > time_ms) break;
        found = version;
    }
    if (found) return *found;
    return Error{Code::kResourceDoesNotExist,
                 "the log of '" + source.url() + "' holds no state as old as " + iso_time(time_ms)};
}

}  // namespace

Result<DeltaSnapshot> read_snapshot(const ObjectSource& source, std::optional<std::int64_t> version,
                                    const std::string& timestamp,
                                    const ReadCheckpoint& read_checkpoint) {
    if (version && !timestamp.empty())
        return invalid_parameter("give a version or a timestamp of the table, not both");
    TUNE_TRY(objects, source.list("_delta_log"));
    std::vector<std::string> names;
    for (const ObjectInfo& object : objects) {
        const std::size_t slash = object.path.rfind('/');
        const bool is_direct = object.path.find('/') == slash;  // not in _sidecars
        if (is_direct) names.push_back(object.path.substr(slash + 1));
    }
    if (!timestamp.empty()) {
        const auto time_ns = parse_time_ns(timestamp);
        if (!time_ns)
            return invalid_parameter("'" + timestamp +
                                     "' is no time; write for example 2026-01-31T12:00:00Z");
        TUNE_TRY(found, version_at(source, names, *time_ns / kMillisecond_ns));
        version = found;
    }
    Result<LogSegment> segment = choose_segment(names, version);
    if (!segment) return in_log(std::move(segment).error(), source, "_delta_log");
    Replay replay;
    TUNE_TRY_VOID(replay_checkpoint(source, *segment, read_checkpoint, replay));
    for (const std::int64_t commit : segment->commits) {
        TUNE_TRY(actions, read_actions(source, kLog + commit_name(commit), {}));
        // Of one commit the removes count first: it may replace a file by one of the same name.
        for (DeltaAction& action : actions)
            if (action.remove) replay.apply(std::move(action));
        for (DeltaAction& action : actions)
            if (!action.remove) replay.apply(std::move(action));
    }
    Result<DeltaSnapshot> snapshot = replay.finish(segment->version);
    if (!snapshot) return in_log(std::move(snapshot).error(), source, "_delta_log");
    return snapshot;
}

}  // namespace tune::loader
