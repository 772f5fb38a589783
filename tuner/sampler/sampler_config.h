#pragma once
// Which sampler a study has, with its options. The options' structs stand beside their samplers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tuner/options/chosen.h"
#include "tuner/space/goal.h"

namespace tune::tuner {

struct SamplerKind;

/// Seeds above 2^53 would lose digits in JSON readers that hold numbers as doubles.
inline constexpr std::uint64_t kSeedMax = (std::uint64_t{1} << 53) - 1;

/// Trials of one study.
inline constexpr std::uint64_t kTrialsMax = 10'000'000;

/// What happens when a sampler proposes a point of a finite space that a trial has had.
enum class Duplicates {
    kResample,  // another one is drawn; the study ends when there is none
    kAllow,     // it is run again: for noisy objectives
    kReuse      // the trial gets the known value without running
};

/// The options of every sampler.
struct CommonSamplerOptions {
    std::optional<std::uint64_t> seed = {};  // none: the study draws one and records it
    Duplicates duplicates = Duplicates::kResample;

    [[nodiscard]] bool operator==(const CommonSamplerOptions&) const = default;
};

class SamplerConfig : public Chosen, public CommonSamplerOptions {
public:
    /// TPE.
    SamplerConfig();
    /// With its default options.
    explicit SamplerConfig(const SamplerKind& kind);
    /// `options`: the struct of the kind.
    template <class Options>
    SamplerConfig(const SamplerKind& kind, Options options)
        : SamplerConfig(kind, std::any(std::move(options))) {}
    SamplerConfig(const SamplerKind& kind, std::any options);

    [[nodiscard]] const SamplerKind& kind() const;

    [[nodiscard]] bool operator==(const SamplerConfig&) const = default;
};

/// Every sampler, in the order in which people see them (registry.cc).
[[nodiscard]] Kinds sampler_kinds();

/// The sampler of this name with its default options. REQUIRES: there is one.
[[nodiscard]] SamplerConfig sampler_named(std::string_view name);

/// Reads a study's `sampler`. Errors: kInvalidParameterValue with place, path and suggestion.
[[nodiscard]] Result<SamplerConfig> read_sampler(const Node& node, const std::string& path);

/// read_sampler reads it back to an equal config.
[[nodiscard]] Json to_json(const SamplerConfig& sampler);

/// `seed` and `duplicates`; the samplers that end by themselves have only the former.
[[nodiscard]] const OptionTable& common_sampler_options();

}  // namespace tune::tuner
