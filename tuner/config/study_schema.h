#pragma once
// The published JSON Schema (draft 7) of study files, for editors and other programs.

#include <string_view>

namespace tune::tuner {

/// The text of study.schema.json. It says less than the readers check, never anything else: what
/// they accept it accepts.
[[nodiscard]] std::string_view study_schema();

}  // namespace tune::tuner
