#include "tracker/store/reads/columnar_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "tracker/search/page_token.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {
namespace {

/// Runs that are listed by SQL in less time than 100,000 are passed over in memory.
constexpr std::int64_t kFewRuns = 1'024;
/// Runs of which columns do not decide which comes first; beyond it SQL lists them in order.
constexpr std::size_t kIdLookupsMax = 4'096;

using search::Clause;
using search::Comparator;
using search::Condition;

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
    explicit Columns(sqlite::Connection& connection) : connection_(connection) {}

    /// `Item`: a Clause or an OrderKey.
    template <class Item>
    Result<ColumnReader*> of(const Item& item) {
        const auto key = std::pair(item.key, column_of(item.aggregate));
        const auto known = readers_.find(key);
        if (known != readers_.end()) return &known->second;
        TUNE_TRY(find, connection_.prepare("SELECT key_id FROM keys WHERE name = ?"));
        TUNE_TRY(has_key, find.with(item.key).step());
        const std::int64_t key_id = has_key ? find.integer(0) : 0;
        return &readers_.try_emplace(key, make(key_id, key.second)).first->second;
    }

    /// A column of kRunItself.
    ColumnReader of_runs(Column column) { return make(kRunItself, column); }

private:
    ColumnReader make(std::int64_t key_id, Column column) {
        const auto& companion = connection_.companion();
        auto* cache = static_cast<MetricColumns*>(companion.object);
        return {connection_, cache, companion.mark, key_id, column};
    }

    sqlite::Connection& connection_;
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

/// A run in the order of the page: by its values, its start time (later first), its run id.
struct Candidate {
    std::int64_t run_row = 0;
    std::int64_t start_time_ms = 0;
    std::size_t place = 0;  // in the order of addition
    std::size_t slot = 0;   // in the list of values
};

using LoadId = std::function<Result<std::string>(std::int64_t run_row)>;

/// Numbers, then NaN, then nothing: as order_terms of search/sql.cc.
int class_of(double value) {
    return value == kNoMetric ? 2 : std::isnan(value) ? 1 : 0;
}

class Ranking {
public:
    /// Of a page of `count` runs.
    Ranking(const std::vector<search::OrderKey>& keys, std::size_t count)
        : keys_(keys), count_(count), prune_size_(4 * count + 1'024) {}

    void add(Candidate candidate, std::span<const double> values) {
        if (is_bound_ && compare(values, bound_values_) > 0) return;
        candidate.place = added_++;
        candidate.slot = candidates_.size();
        candidates_.push_back(candidate);
        values_.insert(values_.end(), values.begin(), values.end());
        if (candidates_.size() >= prune_size_) prune();
    }
    void clear() {
        candidates_.clear();
        values_.clear();
        is_bound_ = false;
    }

    /// The first `count` of the page in order; the rest is dropped. Runs with the same values and
    /// start time follow their ids; without `load` they were added in that order. False: so many
    /// ids would decide that SQL should list the runs.
    Result<bool> cut(const LoadId& load) {
        if (candidates_.size() > count_) drop_those_behind();
        std::sort(candidates_.begin(), candidates_.end(),
                  [this](const Candidate& a, const Candidate& b) { return is_before(a, b); });
        if (load != nullptr) {
            TUNE_TRY(is_sorted, sort_ties(load));
            if (!is_sorted) return false;
        }
        if (candidates_.size() > count_) candidates_.resize(count_);
        return true;
    }

    [[nodiscard]] int compare(std::span<const double> a, std::span<const double> b) const {
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            const int kind = class_of(a[i]) - class_of(b[i]);
            if (kind != 0) return kind;
            if (class_of(a[i]) != 0 || a[i] == b[i]) continue;
            return (a[i] < b[i]) == keys_[i].is_ascending ? -1 : 1;
        }
        return 0;
    }

    [[nodiscard]] std::span<const double> values_of(const Candidate& candidate) const {
        return std::span(values_).subspan(candidate.slot * keys_.size(), keys_.size());
    }
    [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }

private:
    /// Without ids.
    [[nodiscard]] int order(const Candidate& a, const Candidate& b) const {
        const int by_values = compare(values_of(a), values_of(b));
        if (by_values != 0 || a.start_time_ms == b.start_time_ms) return by_values;
        return a.start_time_ms > b.start_time_ms ? -1 : 1;
    }

    [[nodiscard]] bool is_before(const Candidate& a, const Candidate& b) const {
        const int by_time = order(a, b);
        return by_time != 0 ? by_time < 0 : a.place < b.place;
    }

    /// Keeps the first `count`, and all that tie with the last of them: they compete for its place.
    /// That one. REQUIRES: more candidates.
    Candidate drop_those_behind() {
        const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
        std::nth_element(
            candidates_.begin(), last, candidates_.end(),
            [this](const Candidate& a, const Candidate& b) { return is_before(a, b); });
        const Candidate bound = *last;
        const auto end = std::partition(last + 1, candidates_.end(), [&](const Candidate& one) {
            return order(one, bound) == 0;
        });
        candidates_.erase(end, candidates_.end());
        return bound;
    }

    /// Between additions: what cannot come on the page any more makes room.
    void prune() {
        const Candidate bound = drop_those_behind();
        bound_values_.assign(values_of(bound).begin(), values_of(bound).end());
        is_bound_ = true;
        std::vector<double> values;
        values.reserve(prune_size_ * keys_.size());
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const auto own = values_of(candidates_[i]);
            values.insert(values.end(), own.begin(), own.end());
            candidates_[i].slot = i;
        }
        values_ = std::move(values);
        prune_size_ = std::max(prune_size_, 2 * candidates_.size());
    }

    Result<bool> sort_ties(const LoadId& load) {
        std::size_t lookups = 0;
        for (std::size_t i = 0; i < candidates_.size();) {
            std::size_t end = i + 1;
            while (end < candidates_.size() && order(candidates_[i], candidates_[end]) == 0) ++end;
            if (end - i > 1) {
                lookups += end - i;
                if (lookups > kIdLookupsMax) return false;
                TUNE_TRY_VOID(sort_by_id(std::span(candidates_).subspan(i, end - i), load));
            }
            i = end;
        }
        return true;
    }

    static Result<void> sort_by_id(std::span<Candidate> ties, const LoadId& load) {
        std::vector<std::pair<std::string, Candidate>> named;
        for (const Candidate& one : ties) {
            TUNE_TRY(run_id, load(one.run_row));
            named.emplace_back(std::move(run_id), one);
        }
        std::sort(named.begin(), named.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t i = 0; i < ties.size(); ++i) ties[i] = named[i].second;
        return {};
    }

    const std::vector<search::OrderKey>& keys_;
    const std::size_t count_;
    std::size_t prune_size_;
    std::size_t added_ = 0;
    std::vector<Candidate> candidates_;
    std::vector<double> values_;
    bool is_bound_ = false;  // whether `count` come before what is behind bound_values_
    std::vector<double> bound_values_;
};

/// Where a page begins: the values of the last run of the one before.
struct After {
    std::vector<double> values;
    std::int64_t start_time_ms = 0;
    std::string run_id;
};

Error damaged_token() {
    return {Code::kInvalidParameterValue, "Invalid page token, it was damaged"};
}

Result<After> read_after(const ColumnSearch& search, std::uint64_t fingerprint) {
    const std::size_t key_count = search.keys.size();
    TUNE_TRY(token, search::read_page_token(fingerprint, search.page_token, 2 * key_count + 2));
    After after;
    for (std::size_t i = 0; i < key_count; ++i) {
        const auto* kind = std::get_if<std::int64_t>(&token[2 * i]);
        const auto* value = std::get_if<double>(&token[2 * i + 1]);
        if (kind == nullptr || *kind < 0 || *kind > 2 || (*kind == 0 && value == nullptr))
            return damaged_token();
        after.values.push_back(*kind == 0 ? *value : *kind == 1 ? std::nan("") : kNoMetric);
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
    Finder(sqlite::Connection& connection, const ColumnSearch& search)
        : connection_(connection),
          search_(search),
          columns_(connection),
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
        const std::string sql = "SELECT r.run_row, r.start_time_ms, r.run_id FROM runs r WHERE " +
                                search_.where + " ORDER BY r.start_time_ms DESC, r.run_id";
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
        const int order = page_.compare(values_, after_->values);
        if (order != 0) return order > 0;
        if (candidate.start_time_ms != after_->start_time_ms)
            return candidate.start_time_ms < after_->start_time_ms;
        TUNE_TRY(run_id, load(candidate.run_row));
        return run_id > after_->run_id;
    }

    Result<std::string> token_of(std::uint64_t fingerprint, const Candidate& last) {
        std::vector<search::TokenValue> token;
        for (const double value : page_.values_of(last)) {
            const int kind = class_of(value);
            token.emplace_back(std::int64_t{kind});
            token.push_back(kind == 0   ? search::TokenValue(value)
                            : kind == 1 ? search::TokenValue("NaN")
                                        : search::TokenValue());
        }
        TUNE_TRY(run_id, run_id_of(connection_, last.run_row));
        token.emplace_back(last.start_time_ms);
        token.emplace_back(std::move(run_id));
        return search::make_page_token(fingerprint, token);
    }

    sqlite::Connection& connection_;
    const ColumnSearch& search_;
    Columns columns_;
    std::vector<ColumnReader*> sort_columns_;
    Test test_;  // an AND of all
    std::optional<After> after_;
    Ranking page_;
    std::vector<double> values_;
    std::size_t id_lookups_ = 0;
    const LoadId load_id_ = [this](std::int64_t run_row) {
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

Result<RowPage> find_by_columns(sqlite::Connection& connection, const search::SqlSchema& schema,
                                ColumnSearch search) {
    TUNE_TRY(is_small, has_few_runs(connection, search, search.binder));
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
    Finder finder(connection, search);
    TUNE_TRY_VOID(finder.prepare(on_metrics, std::move(after)));
    if (!needs_sql) {
        TUNE_TRY(is_found, finder.find_in_columns());
        if (is_found) return finder.page(fingerprint);
    }
    TUNE_TRY_VOID(finder.find_in_listing());
    return finder.page(fingerprint);
}

}  // namespace tune::tracker
