#pragma once
// `tune-trainer selfcheck`: whether this machine trains as it should. Each step runs in a process
// of its own with a time-out, so that a first GPU shows within two minutes what works there.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tune::train {

/// What a step found. Nothing of `value` when `unit` is empty.
struct CheckResult {
    enum class Status { kOk, kFailed, kSkipped };
    Status status = Status::kOk;
    double value = 0.0;
    std::string unit = {};
    std::string detail = {};  ///< what was compared, what differed, why it was skipped
};
[[nodiscard]] CheckResult check_ok(std::string detail, double value = 0.0, std::string unit = {});
[[nodiscard]] CheckResult check_failed(std::string detail);
[[nodiscard]] CheckResult check_skipped(std::string reason);

/// Where a step runs.
struct CheckContext {
    bool cuda = false;
    std::string program;  ///< this one, for steps that start trainers
    std::string folder;   ///< empty, for the step's own files; removed afterwards
};

struct CheckStep {
    std::string name;
    std::string help;
    std::chrono::seconds limit;
    std::function<Result<CheckResult>(const CheckContext&)> run;
};

/// In the order in which they run.
[[nodiscard]] const std::vector<CheckStep>& check_steps();

struct SelfcheckOptions {
    std::string device = "auto";  ///< cpu, cuda or auto
    bool json = false;
    /// One step, in this process, its result as a line of JSON on stdout: how the others are run.
    std::string step = {};
};

/// Runs the steps and prints a line for each, or one JSON document. Returns the exit code: 0
/// without a failed step, 1 with one, 13 for an unknown device or step.
[[nodiscard]] int selfcheck(const SelfcheckOptions& options);

}  // namespace tune::train
