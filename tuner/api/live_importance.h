#pragma once
// The importance of parameters while a study runs, for the page: each request takes in only the
// trials that have ended since the last one.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/importance/ped_anova.h"
#include "tuner/study/registry/studies.h"

namespace tune::tuner {

/// Thread-safe. Bounded: the state of kStudiesMax objectives of studies, the least recently asked
/// one goes first and is built anew when it is asked for again (about 1 us a trial and parameter).
class LiveImportance {
public:
    static constexpr std::size_t kStudiesMax = 16;

    /// {study, metric, method, trials, importances: [{name, share, value}]}, the most important
    /// first. `metric`: an objective; empty: the first one. Errors: those of Studies::read;
    /// kInvalidParameterValue for what is no objective. Cost: O(trials) once, later O(new trials),
    /// of which the lock of the studies is held for copies of the new ones.
    [[nodiscard]] Result<Json> read(const Studies& studies, const std::string& name,
                                    const std::string& metric = {});

private:
    /// Of one objective of one study.
    struct Entry {
        std::string study_id;
        MetricConfig metric;
        PedAnova importance;
        std::vector<bool> is_known;  // by trial number
        std::size_t first_open = 0;  // all trials before it are known
    };
    struct Ended {
        Point point;
        double loss = 0;
    };
    /// Some of the trials that have ended since, copied.
    struct Ends {
        std::string study_id;
        std::shared_ptr<const StudyConfig> config;
        std::size_t objective = 0;  ///< its index
        std::vector<Ended> trials;
        std::size_t next = 0;  ///< where the others begin
        bool is_all = true;
    };
    Entry& entry_of(const Ends& ends);
    static void copy_ended(Entry& entry, const Study& study, std::size_t begin, Ends& ends);

    std::mutex mutex_;
    std::list<Entry> entries_;  // guarded by mutex_; the last asked first
};

}  // namespace tune::tuner
