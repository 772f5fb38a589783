#pragma once

namespace tune::tracker::sqlite {

/// The name of a file system for SQLite, registered at the first call, whose write-ahead logs grow
/// by kLogStepBytes of zeros. An fdatasync after bytes that made a file longer must write the
/// journal of the file system too, which doubles its time (0.24 instead of 0.12 ms on ext4), and
/// merely reserved blocks (fallocate) save half of that only. SQLite takes zeros at a log's end for
/// its end: they bear no frame's checksum. All other files are left to the default file system.
/// nullptr: it cannot be registered, and the default serves. Thread-safe.
[[nodiscard]] const char* steady_log_vfs();

inline constexpr int kLogStepBytes = 256 << 10;

}  // namespace tune::tracker::sqlite
