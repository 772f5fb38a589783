// Every part sees every report and is asked each time, so that what it keeps (ASHA's rungs) does
// not depend on what the others say.

#include "tuner/pruner/combined_pruner.h"

#include <nlohmann/json.hpp>

#include "tuner/options/fields.h"

namespace tune::tuner {
namespace {

Result<void> read_of(const Fields& fields, CombinedOptions& options) {
    if (fields.find("of") == nullptr)
        return error_at(fields.node().place, fields.path(),
                        "'of' is missing: a list of pruners, such as [median, {type: threshold, "
                        "upper: 10}]");
    TUNE_TRY(parts,
             read_parts(fields, kPrunerPartsMax,
                        "expected a list of 1 to " + std::to_string(kPrunerPartsMax) + " pruners"));
    options.of = std::move(parts);
    return {};
}

OptionTable combined_options() {
    TableOf<CombinedOptions> table;
    const std::string items = R"("items": {"$ref": "#/definitions/pruner"})";
    table
        .custom("of",
                {.type = "list of 1 to " + std::to_string(kPrunerPartsMax) + " pruners",
                 .schema = R"({"type": "array", )" + items + R"(, "minItems": 1, "maxItems": )" +
                           std::to_string(kPrunerPartsMax) + "}",
                 .api = "list of StudyPruner",
                 .read = read_of,
                 .write = [](const CombinedOptions& options,
                             Json& json) { write_parts(options.of, json); },
                 .is_always_written = true},
                "the pruners that are asked, each as a study's pruner")
        .needed();
    return table;
}

std::unique_ptr<Pruner> make_combined(const PrunerConfig& config, const PrunerContext& context) {
    return std::make_unique<CombinedPruner>(make_parts(config.get<CombinedOptions>().of, context),
                                            config.is("all"));
}

}  // namespace

const PrunerKind& any_pruner() {
    static const OptionTable kOptions = combined_options();
    static const PrunerKind kKind{{"any", "one of the pruners in `of` says so", kOptions},
                                  make_combined};
    return kKind;
}

const PrunerKind& all_pruner() {
    static const OptionTable kOptions = combined_options();
    static const PrunerKind kKind{{"all", "each of the pruners in `of` says so", kOptions},
                                  make_combined};
    return kKind;
}

Result<void> check_depth(const Fields& fields) {
    if (fields.depth() < kPrunerDepthMax) return {};
    return error_at(fields.find("of")->place, fields.path_of("of"),
                    "pruners are nested more than " + std::to_string(kPrunerDepthMax) + " deep");
}

Result<std::vector<PrunerConfig>> read_parts(const Fields& fields, std::size_t count_max,
                                             const std::string& expectation) {
    TUNE_TRY_VOID(check_depth(fields));
    const Node& of = *fields.find("of");
    if (of.type != Node::Type::kList || of.items.empty() || of.items.size() > count_max)
        return error_at(of.place, fields.path_of("of"), expectation);
    std::vector<PrunerConfig> parts;
    for (std::size_t i = 0; i < of.items.size(); ++i) {
        const std::string path = fields.path_of("of") + "[" + std::to_string(i) + "]";
        TUNE_TRY(part, read_pruner(of.items[i], path, fields.depth() + 1));
        parts.push_back(std::move(part));
    }
    return parts;
}

void write_parts(const std::vector<PrunerConfig>& parts, Json& json) {
    for (const PrunerConfig& part : parts) json["of"].push_back(to_json(part));
}

std::vector<std::unique_ptr<Pruner>> make_parts(const std::vector<PrunerConfig>& parts,
                                                const PrunerContext& context) {
    std::vector<std::unique_ptr<Pruner>> made;
    for (const PrunerConfig& part : parts) made.push_back(part.kind().make(part, context));
    return made;
}

void CombinedPruner::note(std::uint64_t number, std::int64_t step, double value) {
    for (const auto& part : parts_) part->note(number, step, value);
}

bool CombinedPruner::should_prune(std::uint64_t number) {
    std::size_t against = 0;
    for (const auto& part : parts_) against += part->should_prune(number) ? 1 : 0;
    return against >= (needs_all_ ? parts_.size() : 1);
}

void CombinedPruner::finish(std::uint64_t number, End end, double value) {
    for (const auto& part : parts_) part->finish(number, end, value);
}

}  // namespace tune::tuner
