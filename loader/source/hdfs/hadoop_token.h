#pragma once
// Delegation tokens as Hadoop's tools keep them in files.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// The token for HDFS in a file that `hdfs fetchdt` or a scheduler of Hadoop wrote, as WebHDFS's
/// parameter `delegation` has it. `services`: what the cluster may be called there ("host:9870",
/// the name of a name service); where none of them is named, the file's only token for any HDFS.
/// Errors: kInvalidParameterValue for bytes of another kind, kUnauthenticated when there is no such
/// token; the message does not name the file.
[[nodiscard]] Result<std::string> hadoop_token(std::string_view file,
                                               const std::vector<std::string>& services);

}  // namespace tune::loader
