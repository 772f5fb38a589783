// Reads and writes Optuna's SQLite storage, schema v3.2.0.a. A file to write is made under another
// name, in one transaction, synced and renamed, so that it exists whole or not at all. A file to
// read is opened read-only, its schema version is checked, and all values are taken as untrusted:
// types, counts and references are checked row by row.

#include "tuner/interop/optuna/optuna_db.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/text/time_text.h"
#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/transaction.h"

namespace tune::tuner {
namespace {

namespace sqlite = tracker::sqlite;

constexpr std::string_view kSchema =
#include "optuna_schema.inc"
    ;

/// Trials of one file at most; more are not one study of a person.
constexpr std::size_t kRowsMax = 10'000'000;
/// Of a file that may be a journal; its first line is shorter.
constexpr std::size_t kJournalLineStart = 4096;

std::string time_text(std::int64_t time_ms) {
    return local_text(time_ms, "%Y-%m-%d %H:%M:%S.") + microseconds_text(time_ms);
}

/// 0 for what is no time.
std::int64_t time_from(std::string_view text) {
    std::tm local{};
    local.tm_isdst = -1;
    int micros = 0;
    const std::string owned(text);
    const int read =
        std::sscanf(owned.c_str(), "%4d-%2d-%2d %2d:%2d:%2d.%6d", &local.tm_year, &local.tm_mon,
                    &local.tm_mday, &local.tm_hour, &local.tm_min, &local.tm_sec, &micros);
    if (read < 6) return 0;
    local.tm_year -= 1900;
    local.tm_mon -= 1;
    const std::time_t seconds = std::mktime(&local);
    return seconds < 0 ? 0 : static_cast<std::int64_t>(seconds) * 1000 + micros / 1000;
}

const char* value_type(double value) {
    if (std::isnan(value)) return "NAN";
    if (std::isinf(value)) return value > 0 ? "INF_POS" : "INF_NEG";
    return "FINITE";
}

Result<double> value_from(const sqlite::Statement& row, int value, int type) {
    const std::string_view name = row.text(type);
    if (name == "FINITE" && !row.is_null(value)) return row.real(value);
    if (name == "INF_POS") return std::numeric_limits<double>::infinity();
    if (name == "INF_NEG") return -std::numeric_limits<double>::infinity();
    if (name == "NAN") return std::numeric_limits<double>::quiet_NaN();
    return Error{Code::kDataLoss, "a value of a trial has the type '" + std::string(name) + "'"};
}

// --- writing -------------------------------------------------------------------------------------

/// Inserts with bound values; each statement is prepared once by the connection.
class Writer {
public:
    explicit Writer(sqlite::Connection& connection) : connection_(connection) {}

    Result<void> add_study(const OptunaStudy& study) {
        TUNE_TRY_VOID(insert("INSERT INTO studies VALUES (1, ?)", std::string_view(study.name)));
        for (std::size_t i = 0; i < study.is_maximized.size(); ++i)
            TUNE_TRY_VOID(insert(
                "INSERT INTO study_directions (direction, study_id, objective) VALUES (?, 1, ?)",
                std::string_view(study.is_maximized[i] ? "MAXIMIZE" : "MINIMIZE"),
                static_cast<std::int64_t>(i)));
        for (const auto& [key, json] : study.user_attributes)
            TUNE_TRY_VOID(
                insert("INSERT INTO study_user_attributes (study_id, \"key\", value_json) "
                       "VALUES (1, ?, ?)",
                       std::string_view(key), std::string_view(json)));
        for (const auto& [key, json] : study.system_attributes)
            TUNE_TRY_VOID(
                insert("INSERT INTO study_system_attributes (study_id, \"key\", value_json) "
                       "VALUES (1, ?, ?)",
                       std::string_view(key), std::string_view(json)));
        for (const OptunaTrial& trial : study.trials) TUNE_TRY_VOID(add_trial(trial));
        return {};
    }

private:
    Result<void> add_trial(const OptunaTrial& trial) {
        const std::int64_t id = trial.number + 1;
        TUNE_TRY(row, connection_.prepare("INSERT INTO trials VALUES (?, ?, 1, ?, ?, ?)"));
        const std::string start = time_text(trial.start_ms);
        const std::string complete = time_text(trial.complete_ms);
        row.with(id, trial.number, std::string_view(trial.state));
        if (trial.start_ms == 0) row.bind_null(4);
        if (trial.start_ms != 0) row.bind(4, std::string_view(start));
        if (trial.complete_ms == 0) row.bind_null(5);
        if (trial.complete_ms != 0) row.bind(5, std::string_view(complete));
        TUNE_TRY_VOID(row.run());
        for (std::size_t i = 0; i < trial.values.size(); ++i)
            TUNE_TRY_VOID(
                add_value("INSERT INTO trial_values (trial_id, objective, value, "
                          "value_type) VALUES (?, ?, ?, ?)",
                          id, static_cast<std::int64_t>(i), trial.values[i]));
        for (const auto& [step, value] : trial.intermediate)
            TUNE_TRY_VOID(
                add_value("INSERT INTO trial_intermediate_values (trial_id, step, "
                          "intermediate_value, intermediate_value_type) "
                          "VALUES (?, ?, ?, ?)",
                          id, step, value));
        for (const OptunaParam& param : trial.params)
            TUNE_TRY_VOID(
                insert("INSERT INTO trial_params (trial_id, param_name, param_value, "
                       "distribution_json) VALUES (?, ?, ?, ?)",
                       id, std::string_view(param.name), param.value,
                       std::string_view(param.distribution_json)));
        for (const auto& [key, json] : trial.user_attributes)
            TUNE_TRY_VOID(
                insert("INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) "
                       "VALUES (?, ?, ?)",
                       id, std::string_view(key), std::string_view(json)));
        for (const auto& [key, json] : trial.system_attributes)
            TUNE_TRY_VOID(
                insert("INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) "
                       "VALUES (?, ?, ?)",
                       id, std::string_view(key), std::string_view(json)));
        return {};
    }

    Result<void> add_value(const char* sql, std::int64_t trial, std::int64_t place, double value) {
        TUNE_TRY(row, connection_.prepare(sql));
        row.with(trial, place);
        if (std::isfinite(value))
            row.bind(3, value);
        else
            row.bind_null(3);
        row.bind(4, std::string_view(value_type(value)));
        return row.run();
    }

    template <class... Values>
    Result<void> insert(const char* sql, const Values&... values) {
        TUNE_TRY(row, connection_.prepare(sql));
        return row.with(values...).run();
    }

    sqlite::Connection& connection_;
};

Result<void> write_to(const std::filesystem::path& file, const OptunaStudy& study) {
    sqlite::ConnectionOptions writing;
    writing.access = sqlite::Access::kWriteOnce;
    TUNE_TRY(connection, sqlite::Connection::open(file.string(), writing));
    TUNE_TRY(transaction, sqlite::Transaction::begin_write(*connection));
    TUNE_TRY_VOID(connection->execute(std::string(kSchema)));
    TUNE_TRY_VOID(Writer(*connection).add_study(study));
    return transaction.commit();
}

Result<void> put_on_disk(const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
    if (descriptor >= 0) ::close(descriptor);
    if (synced) return {};
    return Error{Code::kTemporarilyUnavailable, "cannot write " + file.string()};
}

// --- reading -------------------------------------------------------------------------------------

Result<bool> holds_studies(sqlite::Connection& connection) {
    TUNE_TRY(tables, connection.prepare("SELECT count(*) FROM sqlite_master WHERE type = 'table' "
                                        "AND name IN ('studies', 'trials', 'trial_params', "
                                        "'alembic_version')"));
    TUNE_TRY(has_row, tables.step());
    return has_row && tables.integer(0) == 4;
}

class Reader {
public:
    explicit Reader(sqlite::Connection& connection) : connection_(connection) {}

    Result<void> check_version() {
        TUNE_TRY(has_studies, holds_studies(connection_));
        if (!has_studies)
            return Error{Code::kInvalidParameterValue, "it holds no studies of Optuna"};
        TUNE_TRY(version, connection_.prepare("SELECT version_num FROM alembic_version"));
        TUNE_TRY(has_version, version.step());
        const std::string found(has_version ? version.text(0) : std::string_view());
        // v3.2.0.a only adds an index.
        if (found == "v3.2.0.a" || found == "v3.0.0.d") return {};
        return Error{Code::kInvalidParameterValue,
                     "its schema is '" + found +
                         "', and 'v3.2.0.a' of Optuna 3.2 to 5.0 is expected; bring it up with "
                         "`optuna storage upgrade --storage sqlite:///FILE`"};
    }

    Result<OptunaStudy> read(const std::string& name) {
        OptunaStudy study;
        TUNE_TRY(id, find_study(name, study.name));
        TUNE_TRY(directions, connection_.prepare("SELECT direction FROM study_directions WHERE "
                                                 "study_id = ? ORDER BY objective"));
        directions.with(id);
        while (true) {
            TUNE_TRY(more, directions.step());
            if (!more) break;
            study.is_maximized.push_back(directions.text(0) == "MAXIMIZE");
        }
        TUNE_TRY_VOID(
            attributes("SELECT 0, \"key\", value_json FROM study_user_attributes WHERE "
                       "study_id = ? ORDER BY 2",
                       id, [&](std::int64_t) { return &study.user_attributes; }));
        TUNE_TRY_VOID(
            attributes("SELECT 0, \"key\", value_json FROM study_system_attributes "
                       "WHERE study_id = ? ORDER BY 2",
                       id, [&](std::int64_t) { return &study.system_attributes; }));
        TUNE_TRY_VOID(read_trials(id, study));
        TUNE_TRY_VOID(read_values(id));
        TUNE_TRY_VOID(read_params(id));
        const auto user = [&](std::int64_t trial) { return &by_id_.at(trial)->user_attributes; };
        const auto system = [&](std::int64_t trial) {
            return &by_id_.at(trial)->system_attributes;
        };
        TUNE_TRY_VOID(
            attributes("SELECT t.trial_id, a.\"key\", a.value_json FROM trials t JOIN "
                       "trial_user_attributes a USING (trial_id) WHERE t.study_id = ? "
                       "ORDER BY 1, 2",
                       id, user));
        TUNE_TRY_VOID(
            attributes("SELECT t.trial_id, a.\"key\", a.value_json FROM trials t JOIN "
                       "trial_system_attributes a USING (trial_id) WHERE t.study_id = ? "
                       "ORDER BY 1, 2",
                       id, system));
        return study;
    }

private:
    Result<std::int64_t> find_study(const std::string& name, std::string& found_name) {
        TUNE_TRY(rows, connection_.prepare("SELECT study_id, study_name FROM studies ORDER BY 1"));
        std::optional<std::int64_t> found;
        std::size_t count = 0;
        std::string names;
        while (true) {
            TUNE_TRY(more, rows.step());
            if (!more) break;
            const std::string one(rows.text(1));
            if (++count <= 20) names += (names.empty() ? "'" : ", '") + one + "'";
            if (!name.empty() && one != name) continue;
            found = rows.integer(0);
            found_name = one;
        }
        if (found && (!name.empty() || count == 1)) return *found;
        const std::string there = names.empty() ? "none" : names;
        return Error{Code::kResourceDoesNotExist,
                     name.empty()
                         ? "it holds several studies; choose one with --study NAME: " + there
                         : "it has no study '" + name + "'; there are: " + there};
    }

    Result<void> read_trials(std::int64_t study_id, OptunaStudy& study) {
        TUNE_TRY(rows, connection_.prepare(
                           "SELECT trial_id, number, state, datetime_start, datetime_complete "
                           "FROM trials WHERE study_id = ? ORDER BY number, trial_id"));
        rows.with(study_id);
        std::vector<std::int64_t> ids;
        while (true) {
            TUNE_TRY(more, rows.step());
            if (!more) break;
            if (ids.size() == kRowsMax)
                return Error{Code::kInvalidParameterValue, "it has more than 10,000,000 trials"};
            OptunaTrial trial;
            trial.number = rows.integer(1);
            trial.state = rows.text(2);
            trial.start_ms = time_from(rows.text(3));
            trial.complete_ms = time_from(rows.text(4));
            ids.push_back(rows.integer(0));
            study.trials.push_back(std::move(trial));
        }
        for (std::size_t i = 0; i < ids.size(); ++i) by_id_[ids[i]] = &study.trials[i];
        return {};
    }

    Result<void> read_values(std::int64_t study_id) {
        TUNE_TRY(values,
                 connection_.prepare("SELECT t.trial_id, v.value, v.value_type FROM trials t JOIN "
                                     "trial_values v USING (trial_id) WHERE t.study_id = ? "
                                     "ORDER BY t.trial_id, v.objective"));
        values.with(study_id);
        while (true) {
            TUNE_TRY(more, values.step());
            if (!more) break;
            TUNE_TRY(value, value_from(values, 1, 2));
            by_id_.at(values.integer(0))->values.push_back(value);
        }
        TUNE_TRY(steps, connection_.prepare(
                            "SELECT t.trial_id, v.step, v.intermediate_value, "
                            "v.intermediate_value_type FROM trials t JOIN "
                            "trial_intermediate_values v USING (trial_id) WHERE t.study_id = ? "
                            "ORDER BY t.trial_id, v.step"));
        steps.with(study_id);
        while (true) {
            TUNE_TRY(more, steps.step());
            if (!more) break;
            TUNE_TRY(value, value_from(steps, 2, 3));
            by_id_.at(steps.integer(0))->intermediate.emplace_back(steps.integer(1), value);
        }
        return {};
    }

    Result<void> read_params(std::int64_t study_id) {
        TUNE_TRY(rows, connection_.prepare(
                           "SELECT t.trial_id, p.param_name, p.param_value, p.distribution_json "
                           "FROM trials t JOIN trial_params p USING (trial_id) WHERE t.study_id = "
                           "? ORDER BY t.trial_id, p.param_id"));
        rows.with(study_id);
        while (true) {
            TUNE_TRY(more, rows.step());
            if (!more) return {};
            by_id_.at(rows.integer(0))
                ->params.push_back(
                    {std::string(rows.text(1)), rows.real(2), std::string(rows.text(3))});
        }
    }

    template <class Find>
    Result<void> attributes(const char* sql, std::int64_t study_id, const Find& find) {
        TUNE_TRY(rows, connection_.prepare(sql));
        rows.with(study_id);
        while (true) {
            TUNE_TRY(more, rows.step());
            if (!more) return {};
            find(rows.integer(0))->emplace_back(rows.text(1), rows.text(2));
        }
    }

    sqlite::Connection& connection_;
    std::unordered_map<std::int64_t, OptunaTrial*> by_id_;
};

}  // namespace

Result<void> write_optuna_db(const std::filesystem::path& file, const OptunaStudy& study) {
    std::error_code error;
    if (std::filesystem::exists(file, error))
        return Error{Code::kResourceAlreadyExists,
                     file.string() + " already exists; choose another file"};
    std::filesystem::path partial = file;
    partial += ".part" + std::to_string(::getpid());
    std::filesystem::remove(partial, error);
    Result<void> written = write_to(partial, study);
    if (written) written = put_on_disk(partial);
    if (written) {
        std::filesystem::rename(partial, file, error);
        if (!error) return {};
        written = Error{Code::kTemporarilyUnavailable,
                        "cannot name the file " + file.string() + ": " + error.message()};
    }
    std::filesystem::remove(partial, error);
    return written;
}

OptunaFile optuna_file_kind(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return OptunaFile::kNone;
    // A journal is a line of JSON an operation; the first one creates a study.
    std::string line(kJournalLineStart, '\0');
    std::ifstream stream(file, std::ios::binary);
    stream.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<std::size_t>(stream.gcount()));
    if (line.starts_with('{') && line.substr(0, line.find('\n')).find("\"op_code\"") != line.npos)
        return OptunaFile::kJournal;
    if (!line.starts_with("SQLite format 3")) return OptunaFile::kNone;
    sqlite::ConnectionOptions reading;
    reading.access = sqlite::Access::kReadOnly;
    reading.is_foreign = true;
    auto connection = sqlite::Connection::open(file.string(), reading);
    if (!connection) return OptunaFile::kNone;
    const Result<bool> has_studies = holds_studies(**connection);
    return has_studies && *has_studies ? OptunaFile::kDb : OptunaFile::kNone;
}

Result<OptunaStudy> read_optuna_db(const std::filesystem::path& file, const std::string& name) {
    std::error_code missing;
    if (!std::filesystem::is_regular_file(file, missing))
        return Error{Code::kResourceDoesNotExist, "there is no file " + file.string()};
    sqlite::ConnectionOptions reading;
    reading.access = sqlite::Access::kReadOnly;
    reading.is_foreign = true;
    const auto in_file = [&file](Error reason) {
        reason.message = file.string() + ": " + reason.message;
        return reason;
    };
    auto connection = sqlite::Connection::open(file.string(), reading);
    if (!connection) return in_file(connection.error());
    auto transaction = sqlite::Transaction::begin_read(**connection);
    if (!transaction) return in_file(transaction.error());
    Reader reader(**connection);
    const Result<void> known = reader.check_version();
    if (!known) return in_file(known.error());
    Result<OptunaStudy> study = reader.read(name);
    if (!study) return in_file(study.error());
    return study;
}

}  // namespace tune::tuner
