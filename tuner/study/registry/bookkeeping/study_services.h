#pragma once
// What parts of Studies are made from. Each keeps what it needs of it.

#include "base/clock.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/registry/bookkeeping/observed_commits.h"
#include "tuner/study/registry/bookkeeping/study_book.h"
#include "tuner/study/registry/bookkeeping/study_events.h"
#include "tuner/study/registry/bookkeeping/study_waits.h"
#include "tuner/study/registry/bookkeeping/study_writer.h"
#include "tuner/study/registry/suggestions/suggestions.h"

namespace tune::tuner {

struct StudyServices {
    const StudiesOptions& options;
    const Clock& clock;
    tracker::Store& store;
    StudyLock& lock;
    const Phase& phase;
    StudyEvents& events;
    StudyBook& book;
    ObservedCommits& commits;
    StudyWaits& waits;
    StudyWriter& writer;
    Suggestions& suggestions;
};

}  // namespace tune::tuner
