#pragma once
// What the agent and the per-trial supervisor `tune-supervisor` agree on: arguments, the files of
// an attempt's folder and their meaning. No code, so that both sides share exactly one definition.
//
//   tune-supervisor DIRECTORY WAKE_FIFO SERIAL GRACE_MS TIMEOUT_MS CORES WORKING_DIR CGROUP
//       -- COMMAND...
//
// Started by the agent as leader of its own session, with the trial's environment, and with
// SIGTERM, SIGQUIT and SIGCHLD blocked. Its image is descriptor 3; those that follow are locks that
// it holds until it ends. It outlives the agent; a later agent finds it by the folder. CORES is a
// list such as "0,1,4" or "-" for all, WORKING_DIR a path or "-" for the current one.
//
// With `--with-agent=PID` in place of `--` the supervisor ends the trial, as by SIGTERM, when the
// thread of process PID that started it has ended: what the trial reads from its standard input
// comes from there. The trial has the supervisor's standard input.
//
// CGROUP is the folder of the cgroup in which the trial runs, or "-". The supervisor is never
// killed with the trial for want of memory: it stays in kSupervisorsCgroup beside it. It removes
// the trial's at the end.
//
// Signals to it: SIGTERM ends the trial (SIGTERM to its group, the grace time, then SIGKILL to all
// that is left of its tree); SIGQUIT kills the tree at once. It exits only when the tree is gone.

#include <cstdint>

namespace tune::worker {

/// Symbolic link "PID STARTTIME" (field 22 of /proc/PID/stat), or a file of kOwnerBytes that says
/// the same and spaces, made before the trial starts. Who makes it owns the attempt: a supervisor
/// that finds it made exits without starting anything.
inline constexpr const char* kOwnerLink = "owner";
inline constexpr int kOwnerBytes = 64;

/// The target an agent gives the link when it takes an attempt whose supervisor never came up.
inline constexpr const char* kOwnerAgent = "agent";

/// In place of "--", see above.
inline constexpr const char* kWithAgent = "--with-agent=";

/// Output of the trial; made with the first byte.
inline constexpr const char* kStdoutFile = "stdout.log";
inline constexpr const char* kStderrFile = "stderr.log";

/// An attempt of several processes on this machine has this file. For each of them: the name of the
/// file that its output goes to (of the first one empty: it has kStdoutFile and kStderrFile), the
/// variables that it has beside the common ones, and an empty string, each ended by a NUL.
inline constexpr const char* kRanksFile = "ranks";

/// How it ended, one JSON object; appears whole, by rename. See ExitRecord.
inline constexpr const char* kExitFile = "exit.json";
inline constexpr const char* kExitTemporary = "exit.tmp";

/// A folder may have served an attempt before. The files of its output are then there under names
/// with this at their end, empty, and get their names back with the first byte, and the file that
/// was its owner gets its name back with the next one: to make and remove a file costs a file
/// system more than all the rest of a short trial.
inline constexpr const char* kSpareSuffix = ".spare";

/// Beside the cgroups of trials, where supervisors are.
inline constexpr const char* kSupervisorsCgroup = "supervisors";

/// Of each output the first kLogHeadBytes and at least the last kLogTailBytes stay on the disk.
/// What lies between is given back to the file system in steps of kLogPunchBytes: the file keeps
/// its offsets, reads zeros there and uses no space.
inline constexpr std::int64_t kLogHeadBytes = std::int64_t{1} << 20;
inline constexpr std::int64_t kLogTailBytes = std::int64_t{64} << 20;
inline constexpr std::int64_t kLogPunchBytes = std::int64_t{4} << 20;

/// Processes that the trial leaves behind when its main process ends get SIGTERM and at most this
/// time (or the grace time, if that is shorter) before SIGKILL.
inline constexpr std::int64_t kLeftoverGrace_ms = 5'000;

/// After new output the supervisor writes its SERIAL (8 bytes, host order) to the FIFO; a full FIFO
/// is ignored, so a reader that finds it full looks at all its attempts.
inline constexpr int kWakeRecordBytes = 8;

/// Where the trial's image could not be started.
enum class StartStep { kNone = 0, kWorkingDir = 1, kExec = 2, kSystem = 3, kCgroup = 4 };

}  // namespace tune::worker
