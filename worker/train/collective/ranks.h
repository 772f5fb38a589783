#pragma once
// Which of several processes this one is. The variables are those that torchrun sets, so any
// launcher of distributed PyTorch programs launches this one too.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::train {

/// One process among those that train one model together.
struct Ranks {
    std::int64_t rank = 0;
    std::int64_t size = 1;
    std::int64_t local_rank = 0;  ///< among those of this machine; the index of its GPU
    std::string master_host = {};
    std::uint16_t master_port = 0;
    /// torchrun's own process keeps the store at master_host:master_port; else rank 0 does.
    bool store_is_running = false;
    /// Tells the keys of one start of a job from those of an earlier one in the same store.
    std::string store_prefix = {};
};

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and torchrun's TORCHELASTIC_*
/// through `variable`. Without WORLD_SIZE, or with 1, this process is alone. Errors:
/// kInvalidParameterValue naming the variable that is missing or wrong.
[[nodiscard]] Result<Ranks> read_ranks(
    const std::function<std::optional<std::string>(const char*)>& variable);

/// The same from the environment. REQUIRES: no other thread changes it.
[[nodiscard]] Result<Ranks> ranks_of_environment();

}  // namespace tune::train
