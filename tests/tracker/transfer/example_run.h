#pragma once

#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// Something in most fields of a run that is moved.
inline SourceRun example_run() {
    SourceRun source;
    source.run.info.run_id = "r";
    source.run.info.run_name = "name";
    source.run.params = {{"a", "1"}, {"b", "2"}};
    source.run.tags = {{"t", "x"}};
    source.run.model_outputs = {{"m-1", 3}};
    return source;
}

}  // namespace tune::tracker
