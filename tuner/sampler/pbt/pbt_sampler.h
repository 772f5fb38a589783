#pragma once
// Population based training; see pbt_sampler.cc. Private to tuner/sampler.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tuner/sampler/layout.h"
#include "tuner/sampler/nsga/nsga_selection.h"
#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

class PbtSampler final : public Sampler {
public:
    PbtSampler(const Space& space, const PbtOptions& options, Goal goal, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] std::optional<Origin> origin(std::uint64_t number) override;
    [[nodiscard]] bool is_exhausted() const override { return !free_member(); }

private:
    struct Seen {
        std::uint64_t number = 0;
        Observation::State state = Observation::State::kRunning;
        Point point;
        double loss = 0;
        Origin origin;
    };
    struct Plan {
        Origin origin;
        const Seen* parent = nullptr;
        bool explores = false;
    };
    using Numbers = std::set<std::uint64_t>;

    [[nodiscard]] const Seen* newest(std::size_t member) const;
    [[nodiscard]] const Seen* last_complete(std::size_t member) const;
    [[nodiscard]] bool is_finished(const Seen& seen) const;
    [[nodiscard]] bool is_free(std::size_t member) const;
    [[nodiscard]] std::optional<std::size_t> free_member() const;
    [[nodiscard]] std::vector<const Seen*> ranked() const;
    [[nodiscard]] std::vector<const Seen*> worth_copying(
        const std::vector<const Seen*>& ranked) const;
    [[nodiscard]] std::size_t quantile_size(std::size_t known) const;
    [[nodiscard]] Plan plan(std::uint64_t number) const;
    [[nodiscard]] Point inherited(const Plan& plan, std::uint64_t number, const Point& fixed) const;

    Space space_;
    PbtOptions options_;
    Goal goal_;
    std::uint64_t seed_;
    std::vector<Group> groups_;
    std::map<std::uint64_t, Seen> seen_;
    std::vector<Numbers> members_;  // the trials of each
};

}  // namespace tune::tuner
