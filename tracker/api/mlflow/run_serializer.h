#pragma once
// Runs as MLflow 3.17.2 writes them, from a Run or straight from the loader's view of one.

#include <string>

#include "tracker/api/http/json_writer.h"
#include "tracker/store/reads/runs/run_loader.h"
#include "tracker/store/types.h"

namespace tune::tracker {

// Each appends one JSON object.
void write_run_info(JsonWriter& out, const RunInfo& info);
void write_run(JsonWriter& out, const RunView& run);
/// As runs/create answers: without outputs, which are there everywhere else, also when empty.
void write_new_run(JsonWriter& out, const Run& run);

}  // namespace tune::tracker
