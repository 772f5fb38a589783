// Filters, orders and LIKE patterns of all searches, the registry's among them. The first byte
// chooses the subject; a line is a text. Properties: what is accepted becomes SQL in which nothing
// of the text stands.

#include "tests/fuzz/fuzz.h"
#include "tracker/search/filter.h"
#include "tracker/search/like.h"
#include "tracker/search/order_by.h"
#include "tracker/search/sql.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker::search;

SqlSchema any_schema() {
    const Facet facet{
        "t", [](const std::string& alias, const std::string& key) { return alias + ".k = " + key; },
        "v", [](const std::string& alias) { return alias + ".n = 1"; }};
    SqlSchema schema;
    schema.attribute = [](std::string_view) { return std::string("a"); };
    schema.metric = schema.param = schema.tag = facet;
    schema.dataset = [facet](std::string_view) { return facet; };
    return schema;
}

bool is_clean(const std::string& sql) {
    return sql.find_first_of("'\"`;\\\n") == std::string::npos &&
           sql.find("--") == std::string::npos && sql.find("/*") == std::string::npos;
}

void try_filter(const SqlSchema& schema, Subject subject, std::string_view text) {
    const auto condition = parse_filter(subject, text);
    if (!condition) {
        FUZZ_CHECK(condition.error().code == Code::kInvalidParameterValue);
        FUZZ_CHECK(!condition.error().message.empty());
        return;
    }
    Binder binder;
    FUZZ_CHECK(is_clean(compile_filter(schema, *condition, binder)));
}

void try_order(const SqlSchema& schema, Subject subject, std::string text) {
    const std::vector<std::string> texts = {std::move(text)};
    const auto keys = parse_order_by(subject, texts);
    if (!keys) {
        FUZZ_CHECK(keys.error().code == Code::kInvalidParameterValue);
        return;
    }
    Binder binder;
    for (std::size_t i = 0; i < keys->size(); ++i) {
        const SortColumn column = compile_order_key(schema, (*keys)[i], i, binder);
        FUZZ_CHECK(is_clean(column.join) && column.value.find('"') == std::string::npos);
    }
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    static const SqlSchema schema = any_schema();
    static constexpr Subject kSubjects[] = {Subject::kRuns, Subject::kExperiments,
                                            Subject::kLoggedModels, Subject::kRegisteredModels,
                                            Subject::kModelVersions};
    if (size == 0) return 0;
    const Subject subject = kSubjects[data[0] % std::size(kSubjects)];
    std::string_view rest = text_of(data + 1, size - 1);
    const std::string_view filter = take_line(rest);
    try_filter(schema, subject, filter);
    try_order(schema, subject, std::string(filter));
    // The pattern that is the text itself, without wildcards, matches the text.
    if (filter.find_first_of("%_") == std::string_view::npos) FUZZ_CHECK(is_like(filter, filter));
    if (filter.size() + rest.size() < 4096) static_cast<void>(is_ilike(filter, rest));
    return 0;
}
