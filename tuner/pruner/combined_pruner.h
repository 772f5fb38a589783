#pragma once
// Several pruners as one. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/pruner/pruner.h"

namespace tune::tuner {

class CombinedPruner final : public Pruner {
public:
    /// `needs_all`: all of them must say prune; else one is enough.
    CombinedPruner(std::vector<std::unique_ptr<Pruner>> parts, bool needs_all)
        : parts_(std::move(parts)), needs_all_(needs_all) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    std::vector<std::unique_ptr<Pruner>> parts_;
    bool needs_all_;
};

}  // namespace tune::tuner
