#pragma once
// Several agents of one machine never use one GPU or one core at the same time: who uses it holds a
// name that the kernel gives to one process only, whoever its user is.

#include <optional>
#include <string>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::worker {

/// The name of a thing of this machine, held as long as a descriptor of it is open anywhere: by
/// this process, or by a supervisor that inherited it and outlives the agent. The kernel lets go of
/// it however they end. It is the address of an abstract Unix socket, so it leaves no file, needs
/// no right, and holds within one network namespace.
///
/// Absent: another process holds it. Errors: kResourceExhausted (no descriptor left).
[[nodiscard]] Result<std::optional<UniqueFd>> lock_on_machine(const std::string& name);

/// A descriptor that becomes readable when the holder of the name lets go of it; absent if nobody
/// holds it any more, or if the holder has too many waiting.
[[nodiscard]] std::optional<UniqueFd> wait_for_release(const std::string& name);

[[nodiscard]] std::string gpu_lock_name(const std::string& uuid);
[[nodiscard]] std::string core_lock_name(int core);

}  // namespace tune::worker
