#include "tracker/store/reads/read_answers.h"

#include "tracker/store/commands/maintenance_commands.h"

namespace tune::tracker {

Result<std::optional<KnownAnswer>> find_answer(sqlite::Connection& connection, std::string_view key,
                                               std::int64_t now_ms) {
    TUNE_TRY(select, connection.prepare("SELECT fingerprint, answer FROM recorded_answers "
                                        "WHERE key = ? AND recorded_ms > ?"));
    TUNE_TRY(has_row, select.with(key, now_ms - kAnswerKeptMs).step());
    if (!has_row) return std::optional<KnownAnswer>();
    return std::optional<KnownAnswer>({std::string(select.text(0)), std::string(select.text(1))});
}

Result<std::optional<std::string>> answer_for(std::string_view key, std::string_view fingerprint,
                                              std::optional<KnownAnswer> known) {
    if (!known) return std::optional<std::string>();
    if (known->fingerprint == fingerprint) return std::optional(std::move(known->text));
    return Error{Code::kInvalidParameterValue,
                 "The Idempotency-Key '" + std::string(key) +
                     "' was used for another request (another path or body). Use a new key for "
                     "each request, and the same one only to repeat it."};
}

}  // namespace tune::tracker
