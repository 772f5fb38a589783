#include "tracker/store/metrics/metric_aggregates.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tracker/search/grammar/identifier.h"
#include "tracker/store/metrics/metric_goal.h"

namespace tune::tracker {
namespace {

using search::Aggregate;

struct Meaning {
    std::string key;
    Aggregate aggregate = Aggregate::kLatest;
};

/// "loss.min" -> (loss, kMin); nothing for a name without such an ending. The name before the
/// ending may be quoted by itself: `val loss`.min.
std::optional<Meaning> split(std::string_view key) {
    constexpr std::array<std::pair<std::string_view, Aggregate>, 4> kEndings = {{
        {".min", Aggregate::kMin},
        {".max", Aggregate::kMax},
        {".last", Aggregate::kLatest},
        {".best", Aggregate::kBest},
    }};
    for (const auto& [ending, aggregate] : kEndings) {
        if (!key.ends_with(ending) || key.size() == ending.size()) continue;
        std::string_view name = key.substr(0, key.size() - ending.size());
        search::strip_quotes(name, "`\"");
        return Meaning{std::string(name), aggregate};
    }
    return std::nullopt;
}

class Resolver {
public:
    Resolver(sqlite::Connection& connection, std::span<const ExperimentId> experiment_ids)
        : connection_(connection), experiment_ids_(experiment_ids) {}

    /// `Item`: a Clause or an OrderKey.
    template <class Item>
    Result<void> resolve(Item& item) {
        if (item.entity != search::Entity::kMetric || item.is_quoted) return {};
        const auto known = known_.find(item.key);
        if (known == known_.end()) {
            TUNE_TRY(meaning, meaning_of(item.key));
            known_[item.key] = meaning;
            item.aggregate = meaning.aggregate;
            item.key = std::move(meaning.key);
            return {};
        }
        const Meaning& meaning = known->second;
        item.aggregate = meaning.aggregate;
        item.key = meaning.key;
        return {};
    }

private:
    Result<Meaning> meaning_of(const std::string& key) {
        std::optional<Meaning> meaning = split(key);
        if (!meaning) return Meaning{key};
        TUNE_TRY(literally, is_logged(key));
        if (literally) return Meaning{key};
        if (meaning->aggregate == Aggregate::kBest) {
            TUNE_TRY(best, best_of(meaning->key));
            meaning->aggregate = best;
        }
        return std::move(*meaning);
    }

    /// Whether a run of the experiments has a metric of just this name.
    Result<bool> is_logged(const std::string& key) {
        TUNE_TRY(find, connection_.prepare("SELECT key_id FROM keys WHERE name = ?"));
        TUNE_TRY(has_key, find.with(key).step());
        if (!has_key) return false;
        const std::int64_t key_id = find.integer(0);
        for (const ExperimentId id : experiment_ids_) {
            TUNE_TRY(select,
                     connection_.prepare("SELECT 1 FROM runs r JOIN latest_metrics m ON m.run_row "
                                         "= r.run_row AND m.key_id = ?2 WHERE r.experiment_id = ?1 "
                                         "LIMIT 1"));
            TUNE_TRY(has_metric, select.with(id, key_id).step());
            if (has_metric) return true;
        }
        return false;
    }

    Result<Aggregate> best_of(const std::string& key) {
        const std::string tag = std::string(kMetricGoalTag) + key;
        std::optional<Aggregate> goal;
        ExperimentId from = 0;
        for (const ExperimentId id : experiment_ids_) {
            TUNE_TRY(select, connection_.prepare("SELECT value FROM experiment_tags "
                                                 "WHERE experiment_id = ? AND key = ?"));
            TUNE_TRY(has_tag, select.with(id, tag).step());
            if (!has_tag) continue;
            const std::string text(select.text(0));
            if (text != "min" && text != "max")
                return invalid_parameter("The tag '" + tag + "' of experiment " +
                                         std::to_string(id) +
                                         " must be 'min' or 'max' for metrics." + key +
                                         ".best; it is '" + search::shorten(text) + "'.");
            const Aggregate found = text == "min" ? Aggregate::kMin : Aggregate::kMax;
            if (goal && *goal != found)
                return invalid_parameter("Experiments " + std::to_string(from) + " and " +
                                         std::to_string(id) + " have opposite goals for metrics." +
                                         key + ".best (tag '" + tag +
                                         "'); search them one by one, or by .min or .max.");
            goal = found;
            from = id;
        }
        if (goal) return *goal;
        return invalid_parameter(
            "metrics." + key + ".best: none of the experiments says whether less or more of '" +
            key + "' is better. Set the tag '" + tag +
            "' of the experiment to 'min' or 'max' (a study sets it for its objective).");
    }

    sqlite::Connection& connection_;
    const std::span<const ExperimentId> experiment_ids_;
    std::map<std::string, Meaning> known_;
};

}  // namespace

Result<void> resolve_aggregates(sqlite::Connection& connection,
                                std::span<const ExperimentId> experiment_ids,
                                search::Condition& filter, std::vector<search::OrderKey>& keys) {
    Resolver resolver(connection, experiment_ids);
    Result<void> result;
    search::for_each_clause(filter, [&](search::Clause& clause) {
        if (result) result = resolver.resolve(clause);
    });
    TUNE_TRY_VOID(result);
    for (search::OrderKey& key : keys) TUNE_TRY_VOID(resolver.resolve(key));
    return {};
}

}  // namespace tune::tracker
