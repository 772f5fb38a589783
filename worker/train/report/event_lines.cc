// Events are made of the finished lines, on the thread that writes these: a step knows nothing of
// it, and both always say the same.

#include "worker/train/report/event_lines.h"

#include <fcntl.h>

#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tracker/tensorboard/event.h"
#include "tracker/tensorboard/event_file.h"

namespace tune::train {
namespace {

namespace fs = std::filesystem;
using tensorboard::EventFile;
using tensorboard::RecordReader;

/// The largest step of each tag.
using LastSteps = std::map<std::string, std::int64_t, std::less<>>;

double now_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// Up to what is damaged, as everybody reads these files.
Result<void> add_steps(const fs::path& path, LastSteps& steps) {
    RecordReader reader(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    std::string record;
    while (true) {
        TUNE_TRY(next, reader.next(record));
        if (next == RecordReader::Next::kTooLong) continue;
        if (next != RecordReader::Next::kRecord) return {};
        const Result<tensorboard::Event> event = tensorboard::parse_event(record);
        if (!event) return {};
        for (const tensorboard::Value& value : event->values) {
            if (!value.number) continue;
            const auto at = steps.try_emplace(std::string(value.tag), event->step).first;
            at->second = std::max(at->second, event->step);
        }
    }
}

/// Of the files that an earlier process of this program left. Nothing: there are none.
Result<std::optional<LastSteps>> steps_in(const fs::path& folder) {
    std::optional<LastSteps> steps;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
        const std::string name = entry.path().filename();
        if (!tensorboard::is_event_file_name(name) || !name.ends_with(".tune")) continue;
        if (!steps) steps.emplace();
        TUNE_TRY_VOID(add_steps(entry.path(), *steps));
    }
    return steps;
}

class EventLines {
public:
    EventLines(LineSink lines, EventFile file, LastSteps last)
        : lines_(std::move(lines)), file_(std::move(file)), last_(std::move(last)) {}

    bool take(const std::string& text) {
        for (std::size_t begin = 0; begin < text.size() && file_;) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            take_line(std::string_view(text).substr(begin, end - begin));
            begin = end + 1;
        }
        return lines_(text);
    }

private:
    void take_line(std::string_view line) {
        constexpr std::string_view kMark = "tune: ";
        if (!line.starts_with(kMark)) return;
        const Result<Json> json = parse_json(std::string(line.substr(kMark.size())));
        if (!json || !json->is_object() || !json->contains("step")) return;
        const auto step = json->at("step").get<std::int64_t>();
        std::vector<tensorboard::Scalar> scalars;
        for (const auto& [name, value] : json->items()) {
            if (name == "step" || is_written(name, step)) continue;
            scalars.push_back({name, number_of(value)});
        }
        if (scalars.empty()) return;
        const Result<void> written =
            file_->write(tensorboard::scalar_event(now_s(), step, scalars));
        if (written) return;
        std::fprintf(stderr, "warning: %s; no more events of TensorBoard are written\n",
                     written.error().text().c_str());
        file_.reset();
    }

    /// Marks it as written.
    bool is_written(const std::string& name, std::int64_t step) {
        const auto [at, is_new] = last_.try_emplace(name, step);
        if (is_new) return false;
        if (step <= at->second) return true;
        at->second = step;
        return false;
    }

    /// As metric_line() wrote it.
    static double number_of(const Json& value) {
        if (value.is_number()) return value.get<double>();
        const double infinity = std::numeric_limits<double>::infinity();
        if (value == "Infinity") return infinity;
        return value == "-Infinity" ? -infinity : std::numeric_limits<double>::quiet_NaN();
    }

    const LineSink lines_;
    std::optional<EventFile> file_;
    LastSteps last_;
};

}  // namespace

Result<LineSink> with_events(LineSink lines, const fs::path& folder, bool goes_on) {
    TUNE_TRY(earlier, steps_in(folder));
    TUNE_TRY(file, EventFile::create(folder, now_s()));
    if (earlier && !goes_on) TUNE_TRY_VOID(file.write(tensorboard::start_event(now_s(), 0)));
    const auto events = std::make_shared<EventLines>(
        std::move(lines), std::move(file),
        goes_on ? std::move(earlier).value_or(LastSteps()) : LastSteps());
    return LineSink([events](const std::string& text) { return events->take(text); });
}

}  // namespace tune::train
