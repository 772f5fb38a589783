#pragma once
// Several pruners as one. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/pruner/pruner_kind.h"

namespace tune::tuner {

struct CombinedOptions {
    std::vector<PrunerConfig> of = {};  // at least one

    [[nodiscard]] bool operator==(const CombinedOptions&) const = default;
};

class CombinedPruner final : public Pruner {
public:
    /// `needs_all`: all of them must say prune; else one is enough.
    CombinedPruner(std::vector<std::unique_ptr<Pruner>> parts, bool needs_all)
        : parts_(std::move(parts)), needs_all_(needs_all) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    std::vector<std::unique_ptr<Pruner>> parts_;
    bool needs_all_;
};

/// "any" and "all" in a study.
[[nodiscard]] const PrunerKind& any_pruner();
[[nodiscard]] const PrunerKind& all_pruner();

/// The list of pruners under `of`, which is there. `expectation`: the error for anything but 1 to
/// `count_max` of them. Errors: kInvalidParameterValue.
[[nodiscard]] Result<std::vector<PrunerConfig>> read_parts(const Fields& fields,
                                                           std::size_t count_max,
                                                           const std::string& expectation);

/// Refuses pruners that are nested too deep. REQUIRES: there is an `of`.
[[nodiscard]] Result<void> check_depth(const Fields& fields);

void write_parts(const std::vector<PrunerConfig>& parts, Json& json);

[[nodiscard]] std::vector<std::unique_ptr<Pruner>> make_parts(
    const std::vector<PrunerConfig>& parts, const PrunerContext& context);

}  // namespace tune::tuner
