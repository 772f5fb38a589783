#pragma once
// Bayesian optimisation with a Gaussian process. Private to tuner/sampler; see gp_sampler.cc.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tuner/sampler/gp/encoding.h"
#include "tuner/sampler/gp/factor.h"
#include "tuner/sampler/gp/gp_options.h"
#include "tuner/sampler/gp/kernel.h"
#include "tuner/sampler/gp/search.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/qmc_sampler.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

class GpSampler final : public Sampler {
public:
    GpSampler(const Space& space, const GpOptions& options, Goal goal, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    /// What is known of a trial that counts.
    struct Trial {
        std::vector<double> row;
        std::optional<double> value;  // lower is better; none: it runs
        bool is_pruned = false;
    };

    /// Trials as the model sees them, in order of number.
    struct View {
        std::vector<const Trial*> finished;
        std::vector<const Trial*> pending;
    };

    /// Standardised; `unit`: of the objective, that 1 stands for.
    struct Values {
        std::vector<double> values;
        double unit = 0;
    };

    /// What one suggestion's model is made of.
    struct Rows {
        std::vector<std::vector<double>> rows;
        std::vector<double> values;  // standardised
        KernelParameters kernel;
        std::size_t base = 0;     // rows that are factored at once
        std::vector<double> low;  // where numbers may lie
        std::vector<double> high;
    };

    [[nodiscard]] View view(std::uint64_t number) const;
    [[nodiscard]] Rows whole(const View& view);
    [[nodiscard]] Rows neighbourhood(const View& view) const;
    [[nodiscard]] bool may_look_near(const View& view);
    [[nodiscard]] static bool is_known(const View& view, const std::vector<double>& row);
    [[nodiscard]] std::vector<double> best_row(Rows chosen, CovarianceFactor& factor,
                                               const View& view, std::uint64_t number,
                                               const Point& fixed);
    void hold_given(const Point& fixed, FixedFeatures& held) const;
    [[nodiscard]] static Values values_of(const View& view, std::size_t count);
    [[nodiscard]] FitSettings fit_settings(double unit) const;
    [[nodiscard]] const KernelParameters& kernel_of(const View& view, const Values& of);

    Space space_;
    Goal goal_;
    std::size_t startup_;
    WarpUse warp_;
    std::optional<double> noise_;  // deviation, in the objective's unit; none: learnt
    Encoding encoding_;
    CategoryMask is_category_;
    QmcSampler first_;
    CounterSource source_;
    std::map<std::uint64_t, Trial> trials_;

    // The last fit, and what it was a fit of.
    std::vector<double> fitted_to_;
    KernelParameters kernel_;
    CovarianceFactor factor_{CategoryMask()};  // of the rows of the last suggestion
};

}  // namespace tune::tuner
