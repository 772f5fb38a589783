// An untrusted Delta log: a commit, names of files of a log, and rows of JSONL. Property: an error,
// or paths inside of the table.

#include <nlohmann/json.hpp>

#include "loader/delta/action.h"
#include "loader/delta/log_files.h"
#include "loader/format/text/json_row.h"
#include "loader/rows/filter.h"
#include "loader/rows/time_value.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::loader;
    const std::string_view text = text_of(data, size);
    if (const auto actions = parse_commit(text))
        for (const DeltaAction& action : *actions) {
            if (action.add) FUZZ_CHECK(!action.add->path.empty() && action.add->path[0] != '/');
            if (action.protocol) static_cast<void>(check_protocol(*action.protocol));
        }
    std::vector<std::string> names;
    std::string_view rest = text;
    while (!rest.empty() && names.size() < 100) names.emplace_back(take_line(rest));
    if (const auto segment = choose_segment(names, std::nullopt))
        FUZZ_CHECK(segment->commits.size() <= names.size());
    std::vector<JsonMember> members;
    std::deque<std::string> unescaped;
    for (const std::string& name : names) {
        static_cast<void>(parse_json_row(name, members, unescaped));
        static_cast<void>(parse_time_ns(name));
        if (const auto filter = parse_filter(name)) FUZZ_CHECK(!filter_text(*filter).empty());
    }
    return 0;
}
