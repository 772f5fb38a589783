// study.yaml and its JSON. The first byte chooses. Property: what is accepted is written as JSON
// that reads back to the same study.

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tuner/config/study_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::tuner;
    if (size == 0) return 0;
    std::string_view rest = text_of(data + 1, size - 1);
    StudySource source;
    source.file = data[0] % 2 == 0 ? "study.yaml" : "study.json";
    if (data[0] % 4 >= 2) source.inline_parameters = {std::string(take_line(rest))};
    source.text = std::string(rest);
    const auto config = read_study(source);
    if (!config) {
        FUZZ_CHECK(config.error().code == tune::Code::kInvalidParameterValue);
        FUZZ_CHECK(!config.error().message.empty());
        return 0;
    }
    static_cast<void>(check_study(*config, true));
    const std::string written = tune::to_text(to_json(*config));
    const auto json = tune::parse_json(written);
    FUZZ_CHECK(json.has_value());
    const auto again = study_config_from_json(*json);
    FUZZ_CHECK(again.has_value());
    FUZZ_CHECK(tune::to_text(to_json(*again)) == written);
    return 0;
}
