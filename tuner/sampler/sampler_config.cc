#include "tuner/sampler/sampler_config.h"

#include <nlohmann/json.hpp>

#include "tuner/options/fields.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

constexpr const char* kDuplicates = "duplicates";

OptionTable common_options() {
    using Options = CommonSamplerOptions;
    TableOf<Options> table;
    table
        .integer("seed", &Options::seed, 0, static_cast<std::int64_t>(kSeedMax),
                 "of all random choices")
        .defaults_to("drawn and recorded");
    table.choice(
        "duplicates", &Options::duplicates,
        std::vector<std::pair<std::string, Duplicates>>{{"resample", Duplicates::kResample},
                                                        {"reuse", Duplicates::kReuse},
                                                        {"allow", Duplicates::kAllow}},
        "in a finite space: no point twice, a known value is taken without running, or "
        "points may repeat");
    return table;
}

}  // namespace

const OptionTable& common_sampler_options() {
    static const OptionTable kOptions = common_options();
    return kOptions;
}

SamplerConfig::SamplerConfig() : SamplerConfig(sampler_named("tpe")) {}

SamplerConfig::SamplerConfig(const SamplerKind& kind) : Chosen(kind) {}

SamplerConfig::SamplerConfig(const SamplerKind& kind, std::any options)
    : Chosen(kind, std::move(options)) {}

const SamplerKind& SamplerConfig::kind() const {
    return static_cast<const SamplerKind&>(base_kind());
}

SamplerConfig sampler_named(std::string_view name) {
    const KindBase* kind = find_kind(sampler_kinds(), name);
    TUNE_CHECK(kind != nullptr, "there is a sampler of this name");
    return SamplerConfig(static_cast<const SamplerKind&>(*kind));
}

Result<SamplerConfig> read_sampler(const Node& node, const std::string& path) {
    TUNE_TRY(found, read_kind(node, path, sampler_kinds()));
    const auto& kind = static_cast<const SamplerKind&>(*found);
    TUNE_TRY_VOID(kind.options.check_given(node, path));
    std::vector<std::string> known = {"type", "seed"};
    for (const Option& option : kind.options.rows()) known.push_back(option.name);
    if (!kind.ends_itself) known.emplace_back(kDuplicates);
    Node short_form;
    TUNE_TRY(fields, Fields::open(section_of(node, short_form), path, known));
    SamplerConfig sampler(kind);
    CommonSamplerOptions& common = sampler;
    TUNE_TRY_VOID(common_sampler_options().read(fields, &common));
    TUNE_TRY_VOID(kind.options.read(fields, sampler.address()));
    return sampler;
}

Json to_json(const SamplerConfig& sampler) {
    Json json = {{"type", std::string(sampler.name())}};
    const CommonSamplerOptions& common = sampler;
    common_sampler_options().write(&common, json);
    if (sampler.kind().ends_itself) json.erase(kDuplicates);
    sampler.kind().options.write(sampler.address(), json);
    return json;
}

}  // namespace tune::tuner
