#pragma once
// What `tune run` shows while a study runs: a line for each trial that ends, and on a terminal a
// live status below them with the running trials.

#include <cstdint>
#include <string>
#include <utility>

#include "base/json.h"

namespace tune::cli {

class Progress {
public:
    /// `page`: the study's address, shown in the status. `live`: redraw in place.
    Progress(std::string page, bool live);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Prints a line above the status.
    void print(const std::string& line);

    /// Redraws the status: `study` as the API gives it, `running` its running trials with their
    /// intermediate values.
    void show(const Json& study, const Json& running);

    /// A line of the status from the next show() on: what is waited for elsewhere. Empty: none.
    void set_note(std::string note) { note_ = std::move(note); }

    [[nodiscard]] bool is_live() const { return live_; }

    /// Removes the status.
    void clear();

private:
    [[nodiscard]] std::string status_of(const Json& study, const Json& running) const;

    std::string page_;
    std::string note_;
    bool live_;
    std::int64_t started_ms_;
    int lines_shown_ = 0;
    std::string last_status_;
};

}  // namespace tune::cli
