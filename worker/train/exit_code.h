#pragma once
// How a trial's process tells its agent what happened.

#include "base/error.h"

namespace tune::train {

enum class ExitCode : int {
    kDone = 0,
    kFailed = 1,
    kPruned = 10,
    kPreempted = 11,  ///< asked to stop; run it again to go on
    kOutOfMemory = 12,
    kBadConfig = 13,  ///< never worth another try
};

/// The exit code for an error that ended training: kResourceExhausted is memory, what a user must
/// change is a bad configuration, anything else failed.
[[nodiscard]] inline ExitCode exit_code_of(const Error& error) {
    switch (error.code) {
        case Code::kResourceExhausted: return ExitCode::kOutOfMemory;
        case Code::kInvalidParameterValue:
        case Code::kResourceDoesNotExist:
        case Code::kNotImplemented: return ExitCode::kBadConfig;
        default: return ExitCode::kFailed;
    }
}

}  // namespace tune::train
