#pragma once
// The settings of the genetic samplers. Private to tuner/space.

#include <string>
#include <vector>

#include "tuner/config/fields.h"
#include "tuner/config/study_config.h"

namespace tune::tuner {

[[nodiscard]] bool is_genetic(SamplerType type);

/// The keys of such a sampler but `duplicates`.
[[nodiscard]] std::vector<std::string> genetic_keys(SamplerType type);

[[nodiscard]] Result<void> read_genetic(const Fields& fields, SamplerConfig& sampler);

void write_genetic(const SamplerConfig& sampler, Json& json);

}  // namespace tune::tuner
