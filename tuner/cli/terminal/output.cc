#include "tuner/cli/terminal/output.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tuner/cli/options.h"

namespace tune::cli {

int fail(const Error& error, bool json) {
    std::fprintf(stderr, "tune: %s\n", error.text().c_str());
    if (json) print_json({{"error_code", code_name(error.code)}, {"message", error.text()}});
    const bool is_usage =
        error.code == Code::kInvalidParameterValue || error.code == Code::kResourceConflict;
    return is_usage ? kExitUsage : kExitFailed;
}

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void print_json(const Json& value) {
    print(value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace tune::cli
