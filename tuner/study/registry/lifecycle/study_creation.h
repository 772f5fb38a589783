#pragma once
// Studies that are to be made or gone on with.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/lifecycle/study_lifecycle.h"
#include "tuner/study/registry/lifecycle/study_loader.h"

namespace tune::tuner {

/// Thread-safe; takes the lock of Studies itself.
class StudyCreation {
public:
    using Created = Studies::Created;
    using CreateOptions = Studies::CreateOptions;

    StudyCreation(const StudyServices& in, StudyLoader& loader, StudyLifecycle& lifecycle)
        : options_(in.options),
          clock_(in.clock),
          store_(in.store),
          lock_(in.lock),
          events_(in.events),
          book_(in.book),
          writer_(in.writer),
          loader_(loader),
          lifecycle_(lifecycle) {}

    /// As Studies::create.
    void create(StudyConfig config, CreateOptions options, Done<Created> done);

private:
    /// A study on its way through the store.
    struct Wanted {
        StudyConfig config;
        CreateOptions options;
        Done<Created> done;
        std::string replaced = {};  ///< how the study that was erased for this one differed
        Extension extension = {};   ///< of the one that is extended
    };
    void extend(Wanted wanted);
    void find_experiment(Wanted wanted);
    void experiment_made(Wanted& wanted, const Result<tracker::Outcome>& outcome);
    void create_in_experiment(Wanted wanted, std::int64_t experiment_id);
    void add_study(LockedBatch& locked, std::unique_ptr<Study> made,
                   const std::vector<Trial*>& first, Done<Created> done, std::string replaced);
    [[nodiscard]] std::vector<Trial*> begin_warm(Study& study) const;
    Result<void> fill_warm_start(StudyConfig& config) const;
    /// A trial that another study may learn from.
    struct Finished {
        Point point;
        double value = 0;
        std::vector<double> more_values;
        std::vector<double> constraint_values;
    };
    struct Results {
        std::shared_ptr<const StudyConfig> config = {};
        std::vector<Finished> trials = {};
        std::size_t seen = 0;  ///< so many trials were looked at
    };
    [[nodiscard]] Result<Results> take_results(const std::string& name) const;
    [[nodiscard]] static bool take_slice(const Study& study, Results& results);

    void resume(LockedBatch& locked, Study& study, Wanted wanted);
    static Result<void> take_other_config(Study& study, StudyConfig config,
                                          const CreateOptions& options, Extension begun);
    /// Whether the study gives way to the wanted one (CreateOptions::replace).
    [[nodiscard]] bool is_replaced(const Study& study, const Wanted& wanted) const;
    void replace(LockedBatch& locked, Study& study, Wanted wanted);

    const StudiesOptions& options_;
    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    StudyEvents& events_;
    StudyBook& book_;
    StudyWriter& writer_;
    StudyLoader& loader_;
    StudyLifecycle& lifecycle_;
};

}  // namespace tune::tuner
