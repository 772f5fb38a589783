// A search by metrics over rows reads one page of SQLite a run and metric; over columns it reads 8
// bytes of memory. The plan:
//
//   1. Conditions on metrics alone, joined to the rest by AND, are tested on columns. Whatever else
//      the filter has goes to SQL.
//   2. Without such a rest, all runs of the store are passed over in memory; the column of places
//      says which are in the wanted experiments. With it, or where the experiments are small, SQL
//      lists the runs in the order of ties, and columns test each.
//   3. RunRanking keeps the first of the page.
//
// Why the page is that of SQL: the columns are exact for the snapshot (metric_columns.h), and order
// and ties are defined once for both (search/order_by_ties.h). Tokens of both kinds have the same
// form; the property test compares page after page while writers change the runs.

#include "tracker/store/reads/columnar_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "tracker/search/order_by_ties.h"
#include "tracker/search/page_token.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/reads/runs/run_ranking.h"

namespace tune::tracker {
namespace {

/// Runs that are listed by SQL in less time than 100,000 are passed over in memory.
constexpr std::int64_t kFewRuns = 1'024;

using search::Clause;
using search::Comparator;
using search::Condition;
using search::ValueRank;

bool is_on_metrics(const Condition& condition) {
    bool is_all = true;
    search::for_each_clause(condition, [&is_all](const Clause& clause) {
        is_all = is_all && clause.entity == search::Entity::kMetric;
    });
    return is_all;
}

/// The filter as parts joined by AND.
std::vector<const Condition*> conjuncts(const Condition& filter) {
    if (filter.kind != Condition::Kind::kAnd) return {&filter};
    std::vector<const Condition*> parts;
    for (const Condition& part : filter.parts) parts.push_back(&part);
    return parts;
}

bool holds(double left, Comparator comparator, double right) {
    if (left == kNoMetric) return false;
    switch (comparator) {
        case Comparator::kEqual: return left == right;
        case Comparator::kNotEqual: return !(left == right);  // also of NaN
        case Comparator::kLess: return left < right;
        case Comparator::kLessEqual: return left <= right;
        case Comparator::kGreater: return left > right;
        case Comparator::kGreaterEqual: return left >= right;
        default: return false;
    }
}

/// All columns of a search, each once.
class Columns {
public:
    explicit Columns(const ReadSnapshot& snapshot) : snapshot_(snapshot) {}

    /// `Item`: a Clause or an OrderKey.
    template <class Item>
    Result<ColumnReader*> of(const Item& item) {
        const auto key = std::pair(item.key, column_of(item.aggregate));
        const auto known = readers_.find(key);
        if (known != readers_.end()) return &known->second;
        TUNE_TRY(find, snapshot_.connection.prepare("SELECT key_id FROM keys WHERE name = ?"));
        TUNE_TRY(has_key, find.with(item.key).step());
        const std::int64_t key_id = has_key ? find.integer(0) : 0;
        return &readers_.try_emplace(key, make(key_id, key.second)).first->second;
    }

    /// A column of kRunItself.
    ColumnReader of_runs(Column column) { return make(kRunItself, column); }

private:
    ColumnReader make(std::int64_t key_id, Column column) { return {snapshot_, key_id, column}; }

    const ReadSnapshot& snapshot_;
    std::map<std::pair<std::string, Column>, ColumnReader> readers_;
};

/// A condition on metrics with its columns found.
struct Test {
    Condition::Kind kind = Condition::Kind::kAnd;
    ColumnReader* column = nullptr;
    Comparator comparator = Comparator::kEqual;
    double right = 0;
    std::vector<Test> parts = {};
};

Result<Test> make_test(const Condition& condition, Columns& columns) {
    Test test;
    test.kind = condition.kind;
    if (condition.kind == Condition::Kind::kClause) {
        TUNE_TRY(column, columns.of(condition.clause));
        test.column = column;
        test.comparator = condition.clause.comparator;
        test.right = std::get<double>(condition.clause.value);
    }
    for (const Condition& part : condition.parts) {
        TUNE_TRY(inner, make_test(part, columns));
        test.parts.push_back(std::move(inner));
    }
    return test;
}

Result<bool> matches(const Test& test, std::int64_t run_row) {
    if (test.kind == Condition::Kind::kClause) {
        TUNE_TRY(value, test.column->value(run_row));
        return holds(value, test.comparator, test.right);
    }
    if (test.kind == Condition::Kind::kNot) {
        TUNE_TRY(inner, matches(test.parts.front(), run_row));
        return !inner;
    }
    const bool is_or = test.kind == Condition::Kind::kOr;
    for (const Test& part : test.parts) {
        TUNE_TRY(one, matches(part, run_row));
        if (one == is_or) return is_or;
    }
    return !is_or;
}

/// Where a page begins: the values of the last run of the one before.
struct After {
    std::vector<double> values;
    std::int64_t start_time_ms = 0;
    std::string run_id;
};

Error damaged_token() {
    return {Code::kInvalidParameterValue, "Invalid page token, it was damaged"};
}

constexpr auto kRankMin = static_cast<std::int64_t>(ValueRank::kNumber);
constexpr auto kRankMax = static_cast<std::int64_t>(ValueRank::kMissing);

double value_of(ValueRank rank, const double* number) {
    if (rank == ValueRank::kNumber) return *number;
    return rank == ValueRank::kNan ? std::nan("") : kNoMetric;
}

Result<After> read_after(const ColumnSearch& search, std::uint64_t fingerprint) {
    const std::size_t key_count = search.keys.size();
    TUNE_TRY(token, search::read_page_token(fingerprint, search.page_token, 2 * key_count + 2));
    After after;
    for (std::size_t i = 0; i < key_count; ++i) {
        const auto* kind = std::get_if<std::int64_t>(&token[2 * i]);
        const auto* value = std::get_if<double>(&token[2 * i + 1]);
        if (kind == nullptr || *kind < kRankMin || *kind > kRankMax) return damaged_token();
        if (*kind == kRankMin && value == nullptr) return damaged_token();
        after.values.push_back(value_of(static_cast<ValueRank>(*kind), value));
    }
    const auto* start = std::get_if<std::int64_t>(&token[2 * key_count]);
    const auto* run_id = std::get_if<std::string>(&token[2 * key_count + 1]);
    if (start == nullptr || run_id == nullptr) return damaged_token();
    after.start_time_ms = *start;
    after.run_id = *run_id;
    return after;
}

Result<std::string> run_id_of(sqlite::Connection& connection, std::int64_t run_row) {
    TUNE_TRY(select, connection.prepare("SELECT run_id FROM runs WHERE run_row = ?"));
    TUNE_TRY(has_row, select.with(run_row).step());
    return has_row ? std::string(select.text(0)) : std::string();
}

/// Finds the runs of one page, from columns or from a listing of SQL.
class Finder {
public:
    Finder(const ReadSnapshot& snapshot, const search::SqlSchema& schema,
           const ColumnSearch& search)
        : connection_(snapshot.connection),
          schema_(schema),
          search_(search),
          columns_(snapshot),
          // One more than the page says whether another follows.
          page_(search.keys, static_cast<std::size_t>(search.max_results) + 1) {}

    /// `on_metrics`: conditions that all must hold.
    Result<void> prepare(const std::vector<const Condition*>& on_metrics,
                         std::optional<After> after) {
        for (const search::OrderKey& key : search_.keys) {
            TUNE_TRY(column, columns_.of(key));
            sort_columns_.push_back(column);
        }
        for (const Condition* part : on_metrics) {
            TUNE_TRY(one, make_test(*part, columns_));
            test_.parts.push_back(std::move(one));
        }
        values_.resize(sort_columns_.size());
        after_ = std::move(after);
        return {};
    }

    /// Over all runs of the store. False: too many ids would have to be looked up one by one.
    Result<bool> find_in_columns() {
        const std::vector<std::int64_t> places = wanted_places();
        ColumnReader place_column = columns_.of_runs(Column::kPlace);
        ColumnReader start_column = columns_.of_runs(Column::kStart);
        TUNE_TRY(run_row_max, greatest_row());
        for (std::int64_t chunk = 0; chunk <= run_row_max / kChunkRuns; ++chunk) {
            TUNE_TRY(place_values, place_column.values(chunk));
            TUNE_TRY(start_values, start_column.values(chunk));
            for (std::size_t i = 0; i < place_values->size(); ++i) {
                const auto place = std::bit_cast<std::int64_t>((*place_values)[i]);
                if (!std::binary_search(places.begin(), places.end(), place)) continue;
                const Candidate candidate{chunk * kChunkRuns + static_cast<std::int64_t>(i),
                                          std::bit_cast<std::int64_t>((*start_values)[i])};
                TUNE_TRY_VOID(offer(candidate, load_id_));
            }
            if (id_lookups_ > kIdLookupsMax) return false;
        }
        return page_.cut(load_id_);
    }

    /// Over those that SQL lets through.
    Result<void> find_in_listing() {
        page_.clear();
        std::string sql = "SELECT r.run_row, r.start_time_ms, r.run_id FROM runs r WHERE " +
                          search_.where + " ORDER BY ";
        for (const search::TieBreaker& tie : search::kRunTies)
            sql += (&tie == search::kRunTies.data() ? "" : ", ") +
                   schema_.attribute(tie.attribute) + (tie.is_ascending ? " ASC" : " DESC");
        TUNE_TRY(select, connection_.prepare(sql));
        for (std::size_t i = 0; i < search_.binder.values().size(); ++i)
            select.bind_value(static_cast<int>(i + 1), search_.binder.values()[i]);
        // Without keys this is the order of the page already.
        const std::size_t enough =
            search_.keys.empty() ? static_cast<std::size_t>(search_.max_results) + 1 : SIZE_MAX;
        while (page_.candidates().size() < enough) {
            TUNE_TRY(has_row, select.step());
            if (!has_row) break;
            TUNE_TRY_VOID(offer({select.integer(0), select.integer(1)}, [&select](std::int64_t) {
                return Result<std::string>(std::string(select.text(2)));
            }));
        }
        TUNE_TRY(unused, page_.cut(nullptr));
        static_cast<void>(unused);
        return {};
    }

    Result<RowPage> page(std::uint64_t fingerprint) {
        const auto limit = static_cast<std::size_t>(search_.max_results);
        RowPage rows;
        for (const Candidate& candidate : page_.candidates()) {
            if (rows.rows.size() == limit) break;
            rows.rows.push_back(candidate.run_row);
        }
        if (page_.candidates().size() > limit) {
            TUNE_TRY(token, token_of(fingerprint, page_.candidates()[limit - 1]));
            rows.next_page_token = std::move(token);
        }
        return rows;
    }

private:
    [[nodiscard]] std::vector<std::int64_t> wanted_places() const {
        std::vector<std::int64_t> places;
        for (const ExperimentId id : search_.experiment_ids) {
            if (search_.view != ViewType::kDeletedOnly) places.push_back(place_of(id, 0));
            if (search_.view != ViewType::kActiveOnly) places.push_back(place_of(id, 1));
        }
        std::sort(places.begin(), places.end());
        return places;
    }

    Result<std::int64_t> greatest_row() {
        TUNE_TRY(select, connection_.prepare("SELECT max(run_row) FROM runs"));
        TUNE_TRY_VOID(select.step());
        return select.is_null(0) ? std::int64_t{0} : select.integer(0);
    }

    /// Keeps the run if it matches and lies behind the page before.
    template <class Load>
    Result<void> offer(const Candidate& candidate, const Load& load) {
        TUNE_TRY(is_match, matches(test_, candidate.run_row));
        if (!is_match) return {};
        for (std::size_t i = 0; i < values_.size(); ++i) {
            TUNE_TRY(value, sort_columns_[i]->value(candidate.run_row));
            values_[i] = value;
        }
        if (after_) {
            TUNE_TRY(behind, is_behind(candidate, load));
            if (!behind) return {};
        }
        page_.add(candidate, values_);
        return {};
    }

    template <class Load>
    Result<bool> is_behind(const Candidate& candidate, const Load& load) {
        const int by_values = page_.compare(values_, after_->values);
        if (by_values != 0) return by_values > 0;
        const int by_time = compare_start_times(candidate.start_time_ms, after_->start_time_ms);
        if (by_time != 0) return by_time > 0;
        TUNE_TRY(run_id, load(candidate.run_row));
        return compare_run_ids(run_id, after_->run_id) > 0;
    }

    Result<std::string> token_of(std::uint64_t fingerprint, const Candidate& last) {
        std::vector<search::TokenValue> token;
        for (const double value : page_.values_of(last)) {
            const ValueRank rank = rank_of(value);
            token.emplace_back(static_cast<std::int64_t>(rank));
            token.push_back(rank == ValueRank::kNumber ? search::TokenValue(value)
                            : rank == ValueRank::kNan  ? search::TokenValue("NaN")
                                                       : search::TokenValue());
        }
        TUNE_TRY(run_id, run_id_of(connection_, last.run_row));
        token.emplace_back(last.start_time_ms);
        token.emplace_back(std::move(run_id));
        return search::make_page_token(fingerprint, token);
    }

    sqlite::Connection& connection_;
    const search::SqlSchema& schema_;
    const ColumnSearch& search_;
    Columns columns_;
    std::vector<ColumnReader*> sort_columns_;
    Test test_;  // an AND of all
    std::optional<After> after_;
    RunRanking page_;
    std::vector<double> values_;
    std::size_t id_lookups_ = 0;
    const LoadRunId load_id_ = [this](std::int64_t run_row) {
        ++id_lookups_;
        return run_id_of(connection_, run_row);
    };
};

/// Whether the experiments have so few runs that listing them costs less than a pass over all runs
/// of the store.
Result<bool> has_few_runs(sqlite::Connection& connection, const ColumnSearch& search,
                          const search::Binder& binder) {
    const std::string sql = "SELECT count(*) FROM (SELECT 1 FROM runs r WHERE " + search.where +
                            " LIMIT " + std::to_string(kFewRuns) + ")";
    TUNE_TRY(select, connection.prepare(sql));
    for (std::size_t i = 0; i < binder.values().size(); ++i)
        select.bind_value(static_cast<int>(i + 1), binder.values()[i]);
    TUNE_TRY_VOID(select.step());
    return select.integer(0) < kFewRuns;
}

}  // namespace

bool suits_columns(const Condition& filter, const std::vector<search::OrderKey>& keys) {
    bool is_useful = !keys.empty();
    for (const search::OrderKey& key : keys)
        if (key.entity != search::Entity::kMetric) return false;
    for (const Condition* part : conjuncts(filter)) is_useful = is_useful || is_on_metrics(*part);
    return is_useful;
}

Result<RowPage> columnar_search(const ReadSnapshot& snapshot, const search::SqlSchema& schema,
                                ColumnSearch search) {
    TUNE_TRY(is_small, has_few_runs(snapshot.connection, search, search.binder));
    std::vector<const Condition*> on_metrics;
    bool needs_sql = is_small;
    for (const Condition* part : conjuncts(search.filter)) {
        if (is_on_metrics(*part)) {
            on_metrics.push_back(part);
            continue;
        }
        needs_sql = true;
        search.where += " AND " + search::compile_filter(schema, *part, search.binder);
    }
    const std::uint64_t fingerprint = search::query_fingerprint(search.canonical_query);
    std::optional<After> after;
    if (!search.page_token.empty()) {
        TUNE_TRY(read, read_after(search, fingerprint));
        after = std::move(read);
    }
    Finder finder(snapshot, schema, search);
    TUNE_TRY_VOID(finder.prepare(on_metrics, std::move(after)));
    if (!needs_sql) {
        TUNE_TRY(is_found, finder.find_in_columns());
        if (is_found) return finder.page(fingerprint);
    }
    TUNE_TRY_VOID(finder.find_in_listing());
    return finder.page(fingerprint);
}

}  // namespace tune::tracker
