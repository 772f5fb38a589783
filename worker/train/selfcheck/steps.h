#pragma once
// The functions behind check_steps(), by the headers that they need.

#include "worker/train/selfcheck/selfcheck.h"

namespace tune::train {

// device_steps.cc: LibTorch itself.
[[nodiscard]] Result<CheckResult> check_device(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_copies(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_precision(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_graph(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_reducer(const CheckContext& context);

// model_steps.cc: the learner.
[[nodiscard]] Result<CheckResult> check_models(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_data_wait(const CheckContext& context);

// memory_steps.cc: the learner and an allocator.
[[nodiscard]] Result<CheckResult> check_out_of_memory(const CheckContext& context);

// process_steps.cc: whole trainers.
[[nodiscard]] Result<CheckResult> check_resume(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_ranks(const CheckContext& context);
[[nodiscard]] Result<CheckResult> check_packed(const CheckContext& context);

}  // namespace tune::train
