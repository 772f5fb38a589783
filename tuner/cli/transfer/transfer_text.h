#pragma once
// What an import or export did, for people and for programs.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "tracker/transfer/importer.h"

namespace tune::cli {

[[nodiscard]] std::string report_text(const tracker::TransferReport& report, const char* done,
                                      const std::string& from, const std::string& to);
[[nodiscard]] Json report_json(const tracker::TransferReport& report);

/// Errors: kInvalidParameterValue for a word that is not copy, link or none.
[[nodiscard]] Result<tracker::ArtifactMode> artifact_mode(const std::string& word);

}  // namespace tune::cli
