#pragma once
// What the kernel is told about the calling thread.

namespace tune {

/// Shown by `top -H`, perf and debuggers. REQUIRES: at most 15 characters.
void name_thread(const char* name);

/// For threads that work for less than 0.1 ms at a time and that others wait for: they are let in
/// soon after they wake up, and give way as soon. Linux 6.12 and newer; elsewhere nothing changes.
void take_short_turns();

/// For threads with long work: `steps` of niceness more than the process has, so that where there
/// is more work than processors those with short work go first. A step takes about a fifth of the
/// thread's share away; an idle processor is used as before.
void stand_back(int steps);

}  // namespace tune
