#pragma once
// What trials of a study need where they run: what its configuration says, and where that is to be
// learnt, what trials before used. Pure.

#include "tuner/protocol.h"
#include "tuner/study/placement/peak_memory.h"
#include "tuner/study/study_definition.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

/// Not thread-safe: part of a Study. `definition` and `trials` outlive it.
class NeedsEstimate {
public:
    NeedsEstimate(const StudyDefinition& definition, const TrialTable& trials)
        : definition_(definition), trials_(trials) {}

    /// Of the trial that starts next. What is to be learnt is as much as trials before it used,
    /// once a few have ended; until then memory is not counted, and GPUs are whole.
    [[nodiscard]] TrialNeeds of_next() const;

    /// What the attempt of a running trial says of its memory at its end; the trial remembers the
    /// most. REQUIRES: the trial still has its progress.
    void note_peaks(Trial& trial, const FinishRequest& request);
    /// The same of a trial that was restored.
    void note_peaks(const Trial& trial);

private:
    const StudyDefinition& definition_;
    const TrialTable& trials_;
    PeakMemory memory_;
    PeakMemory gpu_memory_;
};

}  // namespace tune::tuner
