// TensorBoard's own reading, record by record: a file ends for it where a record is damaged, a
// tag's plugin is that of its first value, and a writer that began anew takes back what it will
// write again.

#include "tracker/transfer/events/run_events.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tracker/tensorboard/event.h"
#include "tracker/tensorboard/event_file.h"
#include "tracker/transfer/events/events_source.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

using tensorboard::RecordReader;

/// Tags whose plugin is remembered; beyond it a tag's values must name it themselves.
constexpr std::size_t kPluginTagsMax = 1'000'000;
/// What a time in seconds may be, so that it is one in milliseconds.
constexpr double kTimeMax_s = 9e15;

std::int64_t milliseconds(double seconds) {
    if (!(seconds >= 0 && seconds < kTimeMax_s)) return 0;
    return std::llround(seconds * 1000);
}

}  // namespace

Result<void> RunEvents::add_file(UniqueFd file, const std::string& name) {
    RecordReader reader(std::move(file));
    std::string record;
    const auto note = [&](const std::string& what) {
        notes_.push_back("'" + shown(name) + "' " + what + " at byte " +
                         std::to_string(reader.offset()) + "; what was before it is read");
    };
    while (true) {
        TUNE_TRY(next, reader.next(record));
        switch (next) {
            case RecordReader::Next::kRecord:
                if (const auto added = add_event(record, name); !added) {
                    if (point_count_ >= kEventPointsMax) return added;
                    note("has a record that is no event");
                    return {};
                }
                break;
            case RecordReader::Next::kTooLong: ++left_out_["records above 64 MiB"]; break;
            case RecordReader::Next::kEnd: return {};
            case RecordReader::Next::kTruncated:
                note("ends within a record, as its writer was killed or is still writing,");
                return {};
            case RecordReader::Next::kDamaged: note("is damaged (a checksum is wrong)"); return {};
        }
    }
}

Result<void> RunEvents::add_event(std::string_view record, const std::string& name) {
    TUNE_TRY(event, tensorboard::parse_event(record));
    const std::int64_t time_ms = milliseconds(event.wall_time_s);
    if (event.starts_session) restart(event.step);
    if (time_ms > 0) {
        first_ms_ = std::min(first_ms_.value_or(time_ms), time_ms);
        last_ms_ = std::max(last_ms_.value_or(time_ms), time_ms);
    }
    for (const tensorboard::Value& value : event.values) {
        if (value.plugin == tensorboard::kHparamsPlugin) {
            add_session(value.plugin_content);
            continue;
        }
        if (!value.plugin.empty() && plugins_.size() < kPluginTagsMax)
            plugins_.try_emplace(std::string(value.tag), value.plugin);
        std::string_view plugin = value.plugin;
        if (const auto known = plugins_.find(value.tag); known != plugins_.end())
            plugin = known->second;
        if (value.number && (value.is_simple || plugin == "scalars")) {
            const Result<void> added = add_scalar(value.tag, {time_ms, event.step, *value.number});
            if (!added)
                return Error{added.error().code, "'" + shown(name) + "': " + added.error().message};
            continue;
        }
        const std::string_view what = !value.kind.empty() ? value.kind : plugin;
        ++left_out_[what.empty() ? "values without a plugin" : shown(what)];
    }
    return {};
}

Result<void> RunEvents::add_scalar(std::string_view tag, const Point& point) {
    if (++point_count_ > kEventPointsMax)
        return Error{Code::kDataLoss,
                     "the run has more than " + std::to_string(kEventPointsMax) + " points"};
    if (keeps_) series_[std::string(tag)].push_back(point);
    return {};
}

void RunEvents::add_session(std::string_view content) {
    const auto session = tensorboard::parse_session(content);
    if (!session) {
        ++left_out_["damaged events of hparams"];
        return;
    }
    for (const auto& [name, text] : session->params)
        if (keeps_) params_.insert_or_assign(name, text);
    status_ = session->status.value_or(status_);
}

void RunEvents::restart(std::int64_t step) {
    for (auto& [tag, points] : series_)
        std::erase_if(points, [&](const Point& point) { return point.step >= step; });
}

}  // namespace tune::tracker
