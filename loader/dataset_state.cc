#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "loader/dataset.h"

namespace tune::loader {
namespace {}  // namespace

Json DatasetState::to_json() const {
    return {{"epoch", epoch},
            {"sample_in_epoch", sample_in_epoch},
            {"num_canonical_nodes", num_canonical_nodes},
            {"shuffle_seed", shuffle_seed},
            {"initial_physical_nodes", initial_physical_nodes},
            {"order", order},
            {"index_digest", index_digest}};
}

Result<DatasetState> DatasetState::from_json(const Json& json) {
    if (!json.is_object()) return invalid_parameter("a loader state must be a JSON object");
    std::optional<Error> error;
    const auto number = [&](const char* name, std::int64_t lowest, std::int64_t missing) {
        const auto found = json.find(name);
        if (found == json.end() || found->is_null()) {
            if (missing < 0 && !error)
                error = invalid_parameter(std::string("the loader state lacks '") + name + "'");
            return missing;
        }
        if (found->is_number_integer() && *found >= lowest && *found <= (std::int64_t{1} << 62))
            return found->get<std::int64_t>();
        if (!error)
            error = invalid_parameter(std::string("'") + name + "' of the loader state is " +
                                      found->dump() + ", not a whole number from " +
                                      std::to_string(lowest) + " on");
        return missing;
    };
    const auto text = [&](const char* name) {
        const auto found = json.find(name);
        if (found == json.end() || found->is_null()) return std::string();
        if (found->is_string()) return found->get<std::string>();
        if (!error)
            error = invalid_parameter(std::string("'") + name + "' of the loader state is no text");
        return std::string();
    };
    DatasetState state;
    state.epoch = number("epoch", 0, -1);
    state.sample_in_epoch = number("sample_in_epoch", 0, -1);
    state.num_canonical_nodes = number("num_canonical_nodes", 1, -1);
    state.shuffle_seed = static_cast<std::uint64_t>(number("shuffle_seed", 0, -1));
    // Upstream writes null when it does not know.
    state.initial_physical_nodes = number("initial_physical_nodes", 0, 0);
    state.order = text("order");
    state.index_digest = text("index_digest");
    if (error) return *std::move(error);
    return state;
}

}  // namespace tune::loader
