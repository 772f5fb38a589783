#pragma once
// The importance of parameters while a study runs, for the page: each request takes in only the
// trials that have ended since the last one.

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/importance/ped_anova.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Thread-safe. Bounded: the state of kStudiesMax studies, the least recently asked one goes first
/// and is built anew when it is asked for again (about 1 us a trial and parameter).
class LiveImportance {
public:
    static constexpr std::size_t kStudiesMax = 16;

    /// {study, metric, method, trials, importances: [{name, share, value}]}, the most important
    /// first. To be called within Studies::read. Cost: O(trials) once, later O(new trials).
    [[nodiscard]] Json read(const Study& study);

private:
    struct Entry {
        std::string study_id;
        PedAnova importance;
        std::vector<bool> is_known;  // by trial number
        std::size_t first_open = 0;  // all trials before it are known
    };
    Entry& entry_of(const Study& study);
    static void take_ended(Entry& entry, const Study& study);

    std::mutex mutex_;
    std::list<Entry> entries_;  // guarded by mutex_; the last asked first
};

}  // namespace tune::tuner
