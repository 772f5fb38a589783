#include "worker/train/collective/ranks.h"

#include <charconv>
#include <cstdlib>
#include <limits>

namespace tune::train {
namespace {

using Variable = std::function<std::optional<std::string>(const char*)>;

Result<std::int64_t> integer(const Variable& variable, const char* name, std::int64_t low,
                             std::int64_t high) {
    const std::optional<std::string> text = variable(name);
    if (!text)
        return invalid_parameter(std::string(name) +
                                 " is not set, though WORLD_SIZE says that this is one of several "
                                 "processes; start them with torchrun or `tune run --nproc`");
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size() || number < low || number > high)
        return invalid_parameter(std::string(name) + ": '" + *text + "' is not an integer from " +
                                 std::to_string(low) + " to " + std::to_string(high));
    return number;
}

}  // namespace

Result<Ranks> read_ranks(const Variable& variable) {
    constexpr std::int64_t kRanksMax = 65'536;
    Ranks ranks;
    if (!variable("WORLD_SIZE")) return ranks;
    TUNE_TRY(size, integer(variable, "WORLD_SIZE", 1, kRanksMax));
    if (size == 1) return ranks;
    ranks.size = size;
    TUNE_TRY(rank, integer(variable, "RANK", 0, size - 1));
    ranks.rank = rank;
    if (variable("LOCAL_RANK")) {
        TUNE_TRY(local_rank, integer(variable, "LOCAL_RANK", 0, size - 1));
        ranks.local_rank = local_rank;
    }
    TUNE_TRY(port, integer(variable, "MASTER_PORT", 1, std::numeric_limits<std::uint16_t>::max()));
    ranks.master_port = static_cast<std::uint16_t>(port);
    ranks.master_host = variable("MASTER_ADDR").value_or("");
    if (ranks.master_host.empty())
        return invalid_parameter("MASTER_ADDR is not set: the host on which rank 0 runs");
    ranks.store_is_running = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
    ranks.store_prefix = "tune/" + variable("TORCHELASTIC_RUN_ID").value_or("") + "/" +
                         variable("TORCHELASTIC_RESTART_COUNT").value_or("0");
    return ranks;
}

Result<Ranks> ranks_of_environment() {
    return read_ranks([](const char* name) -> std::optional<std::string> {
        const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see the declaration
        return text == nullptr ? std::nullopt : std::optional<std::string>(text);
    });
}

}  // namespace tune::train
