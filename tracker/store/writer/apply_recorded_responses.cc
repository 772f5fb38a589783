// Keyed commands: a change and the record of its answer are one.

#include "tracker/store/reads/read_answers.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

/// Old answers that one new one may push out: the table shrinks faster than it grows.
constexpr std::int64_t kAnswersDroppedAtOnce = 16;

Result<void> check(const KeyedCommand& keyed) {
    TUNE_CHECK(keyed.command.size() == 1, "a keyed command holds one command");
    if (keyed.key.size() <= kAnswerKeyBytesMax) return {};
    return Error{Code::kInvalidParameterValue,
                 "The Idempotency-Key has " + std::to_string(keyed.key.size()) +
                     " characters; the limit is " + std::to_string(kAnswerKeyBytesMax) + "."};
}

/// Bytes of all answers ever recorded, up to the newest one that is still there.
Result<std::int64_t> recorded_bytes(WriteContext& context) {
    TUNE_TRY(select, context.connection.prepare("SELECT end_bytes FROM recorded_answers "
                                                "ORDER BY answer_row DESC LIMIT 1"));
    TUNE_TRY(has_row, select.step());
    return has_row ? select.integer(0) : 0;
}

/// Removes the oldest answers that are too old, too many or too large together.
Result<std::int64_t> drop_old(WriteContext& context, std::int64_t rows_max) {
    TUNE_TRY(end_bytes, recorded_bytes(context));
    TUNE_TRY(erase, context.connection.prepare(
                        "DELETE FROM recorded_answers WHERE answer_row IN (SELECT answer_row FROM "
                        "recorded_answers ORDER BY answer_row LIMIT ?1) AND (recorded_ms <= ?2 OR "
                        "end_bytes <= ?3 OR answer_row <= (SELECT max(answer_row) FROM "
                        "recorded_answers) - ?4)"));
    erase.with(rows_max, context.clock.now_ms() - kAnswerKeptMs, end_bytes - kAnswerBytesMax,
               kAnswersMax);
    TUNE_TRY_VOID(erase.run());
    return context.connection.changed_rows();
}

Result<void> record(WriteContext& context, const KeyedCommand& keyed, const std::string& text) {
    TUNE_TRY(end_bytes, recorded_bytes(context));
    // REPLACE: an answer of this key that is too old may still lie there.
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT OR REPLACE INTO recorded_answers (key, fingerprint, recorded_ms, "
                         "end_bytes, answer) VALUES (?, ?, ?, ?, ?)"));
    const auto bytes = static_cast<std::int64_t>(text.size());
    insert.with(keyed.key, keyed.fingerprint, context.clock.now_ms(), end_bytes + bytes, text);
    TUNE_TRY_VOID(insert.run());
    TUNE_TRY_VOID(drop_old(context, kAnswersDroppedAtOnce));
    return {};
}

}  // namespace

Result<Outcome> apply(WriteContext& context, KeyedCommand& keyed) {
    TUNE_TRY_VOID(check(keyed));
    TUNE_TRY(known, find_answer(context.connection, keyed.key, context.clock.now_ms()));
    TUNE_TRY(text, answer_for(keyed.key, keyed.fingerprint, std::move(known)));
    if (text) return Outcome(RecordedResponse{std::move(*text), true});
    TUNE_TRY(outcome, apply(context, keyed.command.front()));
    RecordedResponse answer{keyed.render ? keyed.render(outcome) : "{}", false};
    TUNE_TRY_VOID(record(context, keyed, answer.text));
    return Outcome(std::move(answer));
}

Result<Outcome> apply(WriteContext& context, SweepAnswers& command) {
    TUNE_TRY(count, drop_old(context, command.rows_max));
    return Outcome(PurgeProgress{.count = count, .is_done = count < command.rows_max});
}

}  // namespace tune::tracker
