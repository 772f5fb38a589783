#pragma once
// Commands that keep the store itself in order: changes that are made once however often they are
// sent, and the removal for good of what was deleted.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tracker/store/types.h"

namespace tune::tracker {

struct Command;
struct Outcome;

/// Answers of keyed commands are kept this long, and at most this many and this many bytes of them;
/// then the oldest go. A day covers every retry and a night's outage.
inline constexpr std::int64_t kAnswerKeptMs = 24LL * 3600 * 1000;
inline constexpr std::int64_t kAnswersMax = 100'000;
inline constexpr std::int64_t kAnswerBytesMax = 64LL << 20;
/// Characters of a key.
inline constexpr std::size_t kAnswerKeyBytesMax = 255;

/// Applies `command` (exactly one) and records the answer in the same transaction,
/// or, when the key is known, changes nothing. A refused command records nothing: it changed
/// nothing. Outcome: RecordedResponse. Errors: those of the command; kInvalidParameterValue when
/// the key was used with another `fingerprint`. `render` runs on the writer thread; pure.
struct KeyedCommand {
    std::string key;
    std::string fingerprint;
    std::vector<Command> command;
    std::function<std::string(const Outcome&)> render;
};

struct RecordedResponse {
    std::string text;
    bool is_repeat = false;
};

/// Removes for good, and hides at once: those runs of the list that are deleted since
/// `deleted_until_ms` or longer (others are passed over). Their rows are removed by PurgeRows.
/// Outcome: PurgeProgress, `count` runs. At most kPurgeIdsMax.
struct PurgeRuns {
    std::vector<std::string> run_ids;
    std::int64_t deleted_until_ms = 0;
};

/// The same for logged models that are deleted, or that belong to a deleted experiment.
struct PurgeModels {
    std::vector<std::string> model_ids;
    std::int64_t deleted_until_ms = 0;
};

/// Removes the experiment if it is deleted long enough and no run or logged model is left in it.
/// Outcome: PurgeProgress, `count` 0 or 1.
struct PurgeExperiment {
    ExperimentId experiment_id = 0;
    std::int64_t deleted_until_ms = 0;
};

/// Removes rows of what was hidden, at most `rows_max` (a block of metric points is a row).
/// Outcome: PurgeProgress, `count` rows; is_done when nothing hidden is left.
struct PurgeRows {
    std::int64_t rows_max = 0;
};

/// Removes those of these blocks of metric points that belong to hidden runs, from the first on, as
/// many as kPurgeTurn allows (at least one). Outcome: PurgeProgress, `count` blocks removed, `next`
/// of the list looked at; is_done when that is all of them. At most kPurgeBlocksMax.
struct PurgeBlocks {
    std::vector<std::int64_t> block_ids;
};

/// The folders with these numbers (see read_garbage.h) are gone from the disk.
struct ForgetFolders {
    std::vector<std::int64_t> folder_rows;
};

/// Removes, among the next `rows_max` datasets after `after_row`, those that no run uses. Outcome:
/// PurgeProgress with `next` to continue from.
struct SweepDatasets {
    std::int64_t after_row = 0;
    std::int64_t rows_max = 0;
};

/// From now on the writer remembers which names of metrics, params and tags are used, so that
/// SweepKeys cannot remove one that came into use after its caller looked. A second one starts
/// anew.
struct BeginKeySweep {};

/// Removes these names, except those used since BeginKeySweep. With `is_last` the writer stops
/// remembering. Outcome: PurgeProgress, `count` names. Errors: kInvalidState without BeginKeySweep
/// (e.g. after a failed transaction): begin again.
struct SweepKeys {
    std::vector<std::int64_t> key_ids;
    bool is_last = false;
};

/// Removes recorded answers that are too old. Outcome: PurgeProgress.
struct SweepAnswers {
    std::int64_t rows_max = 0;
};

/// Gives up to `pages_max` free pages of the file (4 kB each) back to the disk, or as many as
/// kPurgeTurn allows. Outcome: PurgeProgress, `count` pages; is_done when no more can be given
/// back.
struct ShrinkFile {
    std::int64_t pages_max = 0;
};

/// Identifiers in one PurgeRuns or PurgeModels: about 2 ms of the writer's time.
inline constexpr std::size_t kPurgeIdsMax = 64;

/// Blocks in one PurgeBlocks: more than a turn removes.
inline constexpr std::size_t kPurgeBlocksMax = 2'048;
/// What PurgeBlocks and ShrinkFile take of the writer's time before their commit: other writes may
/// have to wait for it.
inline constexpr std::chrono::microseconds kPurgeTurn{1'000};

struct PurgeProgress {
    std::int64_t count = 0;
    std::int64_t metric_points = 0;
    std::int64_t next = 0;
    bool is_done = false;
};

using OperationVariant =
    std::variant<KeyedCommand, PurgeRuns, PurgeModels, PurgeExperiment, PurgeRows, PurgeBlocks,
                 ForgetFolders, SweepDatasets, BeginKeySweep, SweepKeys, SweepAnswers, ShrinkFile>;

/// One of these.
struct Operation : OperationVariant {
    using OperationVariant::OperationVariant;
    Operation();
    Operation(const Operation&);
    Operation(Operation&&) noexcept;
    Operation& operator=(const Operation&);
    Operation& operator=(Operation&&) noexcept;
    ~Operation();
};

}  // namespace tune::tracker
