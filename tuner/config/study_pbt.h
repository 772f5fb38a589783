#pragma once
// The settings of population based training. Private to tuner/space.

#include <string>
#include <vector>

#include "tuner/config/fields.h"
#include "tuner/config/study_config.h"

namespace tune::tuner {

/// Members unless the study says otherwise.
inline constexpr int kPbtPopulation = 10;

[[nodiscard]] std::vector<std::string> pbt_keys();

[[nodiscard]] Result<void> read_pbt(const Fields& fields, SamplerConfig& sampler);

void write_pbt(const SamplerConfig& sampler, Json& json);

}  // namespace tune::tuner
