#pragma once
// What the tables of a study's keys and options say, as documents for others: the JSON Schema for
// editors, the page of the documentation, the description of the API.

#include <string>
#include <string_view>

namespace tune::tuner {

/// The JSON Schema (draft 7) of study files. It says less than the readers check, never anything
/// else: what they accept it accepts. Built once.
[[nodiscard]] std::string_view study_schema();

/// docs/study_file_options.md.
[[nodiscard]] std::string study_options_page();

/// The schemas of sampler, pruner, budget and metric as tracker/openapi/description.h reads them.
[[nodiscard]] std::string study_api_description();

}  // namespace tune::tuner
