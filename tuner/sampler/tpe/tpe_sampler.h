#pragma once
// TPE with the rules of Optuna 5.0.0; see tpe_sampler.cc. Private to tuner/sampler.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/decorators/seen_points.h"
#include "tuner/sampler/layout.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/pareto_split.h"
#include "tuner/sampler/tpe/parzen.h"
#include "tuner/sampler/tpe/tpe_options.h"
#include "tuner/sampler/tpe/trial_split.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

/// Two sources because optuna, which the golden files replay, has two generators; a study's are the
/// same counter.
struct TpeSources {
    std::unique_ptr<UniformSource> startup;
    std::unique_ptr<UniformSource> model;
};

class TpeSampler final : public Sampler {
public:
    /// `avoided`: points that it does not propose as long as it has others; null: none.
    TpeSampler(const Space& space, const TpeOptions& options, const Objectives& objectives,
               TpeSources sources, std::shared_ptr<const SeenPoints> avoided = nullptr);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    enum class Side { kNone, kGood, kBad };

    /// What is known of a trial that counts.
    struct Trial {
        Point point;
        bool is_finished = false;
        Rank rank;
        Side side = Side::kNone;
    };

    /// The two densities of one group of parameters.
    struct Model {
        std::vector<std::size_t> members;
        ParzenEstimator good;
        ParzenEstimator bad;
    };

    void forget(std::uint64_t number);
    void place(std::uint64_t number, Trial& trial, Side side);
    void insert_rows(std::uint64_t number, const Trial& trial, ParzenEstimator Model::*side);
    void erase_rows(std::uint64_t number, const Trial& trial, ParzenEstimator Model::*side);
    void enter_bad(std::uint64_t number, const Trial& trial);
    void leave_bad(std::uint64_t number, const Trial& trial);
    void settle_window();
    void rebalance();
    void move_sides(std::vector<std::uint64_t> good);
    void draw(const Group& group, std::uint64_t number, Point& point);
    void draw_candidates(const Group& group, const Model& model, std::uint64_t number,
                         std::uint64_t round);
    [[nodiscard]] std::vector<std::size_t> best_candidates(const Model& model);
    [[nodiscard]] bool is_wanted(const Point& point) const;
    void take(const Model& model, std::size_t candidate, Point& point) const;

    Space space_;
    Goal goal_;
    std::size_t startup_;
    std::size_t candidates_;
    bool sees_running_;
    std::size_t window_;  // bad ones in the model; 0: all
    TpeSources sources_;
    std::shared_ptr<const SeenPoints> avoided_;
    Point constants_;  // the values of what has one value and no condition
    std::vector<Group> groups_;
    std::vector<Model> models_;                // of the groups that are not fixed
    std::vector<std::size_t> model_of_group_;  // by the group's first member
    std::unordered_map<std::uint64_t, Trial> trials_;
    Ranking ranking_;
    std::optional<ParetoSplit> split_;  // several objectives: says which are good
    std::vector<std::uint64_t> good_;   // as last placed
    std::set<std::uint64_t> bad_;
    std::uint64_t kept_from_ = 0;  // bad ones of lower numbers are not in the model
    std::size_t dropped_ = 0;      // so many

    // Kept between asks for their memory only.
    std::vector<double> points_;  // [candidates][axes]
    std::vector<double> uniforms_;
    std::vector<std::size_t> rows_;  // of the good estimator, one a candidate
    std::vector<double> positions_;  // of the candidates on one axis
    std::vector<double> good_density_;
    std::vector<double> bad_density_;
};

}  // namespace tune::tuner
