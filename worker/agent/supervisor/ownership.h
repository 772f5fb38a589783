#pragma once
// Who a supervisor is, as its attempt's folder and /proc tell it.

#include <cstddef>

namespace tune::worker {

/// Field `number` (from 3) of a /proc/PID/stat line; -1: the line is none. The name in field 2 may
/// hold anything.
[[nodiscard]] long long stat_field(const char* line, int number);

/// /proc/PID/stat of a process, or of "self". False: there is none.
[[nodiscard]] bool read_stat(const char* pid, char* line, std::size_t capacity);

/// Makes the owner (kOwnerLink) in an attempt's folder, of a spare one if the folder has it. False:
/// the attempt is another's already.
[[nodiscard]] bool take_ownership(int directory);

}  // namespace tune::worker
