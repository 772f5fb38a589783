#pragma once
// The lines of a training run as a file of TensorBoard's events beside them.

#include <filesystem>

#include "base/result.h"
#include "worker/train/recorder.h"

namespace tune::train {

/// `lines`, and for each line of metrics an event in a new file in `folder`, which is made where it
/// is missing. An event is with the system when the sink returns, and a run that is killed leaves
/// at most a part of its last one, which readers leave out. When the run `goes_on`, points that its
/// earlier files in the folder have are not written again; otherwise their points are marked as
/// replaced. A folder that can no longer be written costs a warning on stderr, not the run. Errors:
/// kInternalError with path and reason.
[[nodiscard]] Result<LineSink> with_events(LineSink lines, const std::filesystem::path& folder,
                                           bool goes_on);

}  // namespace tune::train
