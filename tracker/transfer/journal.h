#pragma once
// What imports have moved, kept in the store's own documents and written in the transaction of the
// rows: an interrupted import resumes where it was, a second one moves only what is new.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "tracker/store/store.h"

namespace tune::tracker {

struct JournalEntry {
    /// False: begun; the run is in the store, hidden, and perhaps not whole.
    bool is_done = false;
    std::string digest = {};
    std::string stamp = {};
    std::int64_t points = 0;
};

/// About 300 bytes per run. One thread.
class Journal {
public:
    /// `location`: of the source; each has a journal of its own.
    [[nodiscard]] static Result<Journal> load(const Store& store, const std::string& location);

    enum class Kind : char { kExperiment = 'e', kRun = 'r', kModel = 'm', kRegistered = 'g' };

    [[nodiscard]] const JournalEntry* find(Kind kind, std::string_view id) const;
    /// Remembers the entry and gives the command that writes it.
    [[nodiscard]] PutDocument put(Kind kind, std::string_view id, JournalEntry entry);

    /// The id that an experiment of the source has here.
    [[nodiscard]] std::optional<ExperimentId> target_of(ExperimentId experiment) const;
    [[nodiscard]] PutDocument put_target(ExperimentId experiment, ExperimentId target);

private:
    [[nodiscard]] std::string key_of(Kind kind, std::string_view id) const;

    std::string prefix_;
    std::unordered_map<std::string, JournalEntry> entries_;  // by key; targets in `digest`
};

}  // namespace tune::tracker
