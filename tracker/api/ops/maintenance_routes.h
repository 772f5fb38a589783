#pragma once
// Garbage collection and backups over REST:
//
//   POST   tune/gc              {older_than_ms?, run_ids?, experiment_ids?, dry_run?} -> {job}
//   POST   tune/backups         {with_artifacts?} -> {job}
//   GET    tune/backups         -> {backups: [{name, size_bytes, modified_ms}]}
//   GET    tune/backups/{name}  the file
//   DELETE tune/backups/{name}
//   GET    tune/job?after=N     -> {job}; long-poll: when its version is another one than N

#include "tracker/api/http/router.h"
#include "tracker/maintenance/maintenance.h"

namespace tune::tracker {

/// Identifiers in one request.
inline constexpr std::size_t kGarbageIdsMax = 1000;

/// `artifacts` lends its threads, which may wait for a disk. All outlive the router's use.
void add_maintenance_routes(Router& router, Maintenance& maintenance, ArtifactStore& artifacts);

}  // namespace tune::tracker
