#pragma once
// TPE with one model a constraint; see ctpe_sampler.cc. Private to tuner/sampler.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tuner/sampler/layout.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/parzen.h"
#include "tuner/sampler/tpe/tpe_options.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

class CtpeSampler final : public Sampler {
public:
    CtpeSampler(const Space& space, const TpeOptions& options, Goal goal, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    struct Trial {
        Point point;
        bool is_complete = false;
        double loss = 0;
        double violation = 0;
        std::vector<double> violations;
    };
    using Numbers = std::vector<std::uint64_t>;

    /// The objective or a constraint: the trials that are good in it and the others, their
    /// densities for each group.
    struct Model {
        std::map<std::uint64_t, bool> sides;  // number -> good
        double share = 0;                     // of complete trials that are good
        std::vector<ParzenEstimator> good;
        std::vector<ParzenEstimator> bad;
    };

    void forget(std::uint64_t number);
    void insert(ParzenEstimator& into, std::size_t group, std::uint64_t number) const;
    void take_out(Model& model, std::uint64_t number);
    void place(Model& model, std::uint64_t number, bool is_good);
    void settle_objective(std::uint64_t without);
    void settle_constraint(std::size_t constraint, std::uint64_t without);
    [[nodiscard]] Model new_model() const;
    void draw(std::size_t group, std::uint64_t number, Point& point);
    [[nodiscard]] std::vector<double> candidates_of(std::size_t group, std::uint64_t number) const;

    Space space_;
    Goal goal_;
    std::size_t startup_;
    std::size_t candidates_;
    CounterSource source_;
    std::vector<Group> groups_;
    std::map<std::uint64_t, Trial> trials_;
    std::vector<Model> models_;  // the objective's, then one a constraint
};

}  // namespace tune::tuner
