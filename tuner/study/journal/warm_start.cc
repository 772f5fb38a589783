// Points of an earlier study are matched by name; a value outside the new domain is left to the
// sampler, and the same note about many points is counted once. Trials are ranked by non-dominated
// sorting, which for one objective is the order of losses; the best are placed last in the history,
// where samplers that weigh by age give them the most weight.

#include "tuner/study/journal/warm_start.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text/counted.h"
#include "tuner/sampler/nsga/pareto.h"
#include "tuner/sampler/simple/finite_points.h"
#include "tuner/space/expression/rules.h"
#include "tuner/study/journal/carry_over.h"

namespace tune::tuner {
namespace {

/// How often something was met, by its sentence, in order of the first time.
class Notes {
public:
    void add(const std::string& sentence) {
        const auto [place, is_new] = counts_.try_emplace(sentence, 0);
        if (is_new) order_.push_back(sentence);
        ++place->second;
    }
    [[nodiscard]] std::vector<std::string> sentences(std::size_t of) const {
        std::vector<std::string> all;
        for (const std::string& sentence : order_)
            all.push_back(sentence + " (" + std::to_string(counts_.at(sentence)) + " of " +
                          counted(static_cast<std::int64_t>(of), "point") + ")");
        return all;
    }

private:
    std::map<std::string, std::size_t> counts_;
    std::vector<std::string> order_;
};

Point fitting_point(const Json& params, const Space& space, Notes& notes) {
    Point point = space.empty_point();
    for (const auto& [name, value] : params.items())
        if (!space.find(name) && !(space.rules() != nullptr && space.rules()->has_derived(name)))
            notes.add("'" + name + "' is not in this space and is dropped");
    for (const std::size_t index : space.parents_first()) {
        const Parameter& parameter = space[index];
        const auto found = params.find(parameter.name);
        if (found == params.end()) {
            if (parameter.when.empty())
                notes.add("'" + parameter.name + "' is new and is left to the sampler");
            continue;
        }
        const Result<double> internal = parameter.internal(*found);
        if (internal)
            point[index] = *internal;
        else
            notes.add("'" + parameter.name + "' lies outside and is left to the sampler");
    }
    return point;
}

}  // namespace

void rank_earlier(WarmStartConfig& warm_start, const StudyConfig& config) {
    auto& trials = warm_start.trials;
    const auto wanted = static_cast<std::size_t>(std::max(warm_start.top, warm_start.history));
    const std::vector<Goal> goals = objectives_of(config).goals;
    LossTable losses(goals.size());
    for (const EarlierTrial& trial : trials)
        losses.add(losses_of(trial.value, trial.more_values, goals));
    const std::vector<std::size_t> ranks = domination_ranks(losses, wanted);
    std::vector<std::size_t> order(trials.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&ranks](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
    std::vector<EarlierTrial> ordered;
    for (const std::size_t at : order) ordered.push_back(std::move(trials[at]));
    trials = std::move(ordered);
    if (trials.size() > wanted) trials.resize(wanted);
}

WarmStart plan_warm_start(const StudyConfig& config) {
    WarmStart plan;
    const WarmStartConfig& from = *config.warm_start;
    Notes notes;
    const std::size_t top = std::min(from.trials.size(), static_cast<std::size_t>(from.top));
    for (std::size_t i = 0; i < top; ++i) {
        const Result<Json> params = parse_json(from.trials[i].params_json);
        if (!params || !params->is_object()) continue;
        Point point = fitting_point(*params, config.space, notes);
        const bool says_something = std::any_of(point.begin(), point.end(), is_active);
        const bool is_known =
            std::any_of(plan.first.begin(), plan.first.end(),
                        [&point](const Point& other) { return PointEqual()(other, point); });
        if (says_something && !is_known) plan.first.push_back(std::move(point));
    }
    plan.notes = notes.sentences(top);
    const auto history = std::min(from.trials.size(), static_cast<std::size_t>(from.history));
    const std::size_t kept = warm_history(config, config.space).size();
    if (kept < history)
        plan.notes.push_back(std::to_string(history - kept) + " of " +
                             counted(static_cast<std::int64_t>(history), "trial") +
                             (history == 1 ? " does" : " do") + " not fit the space whole and " +
                             (history == 1 ? "is" : "are") +
                             " no history for the "
                             "sampler; a parameter that is new needs an `init`");
    return plan;
}

std::vector<Observation> warm_history(const StudyConfig& config, const Space& space) {
    std::vector<Observation> history;
    if (!config.warm_start) return history;
    const WarmStartConfig& from = *config.warm_start;
    const std::size_t count = std::min(from.trials.size(), static_cast<std::size_t>(from.history));
    for (std::size_t i = count; i-- > 0;) {
        const Result<Json> params = parse_json(from.trials[i].params_json);
        if (!params || !params->is_object()) continue;
        Result<Point> point = point_of_params(*params, space);
        if (!point) continue;
        Observation seen;
        seen.number = history.size();
        seen.state = Observation::State::kComplete;
        seen.point = std::move(*point);
        seen.value = from.trials[i].value;
        seen.more_values = from.trials[i].more_values;
        history.push_back(std::move(seen));
    }
    return history;
}

}  // namespace tune::tuner
