#include "tuner/config/study_sections.h"

#include <re2/re2.h>

#include <algorithm>

#include "tuner/config/fields.h"
#include "tuner/config/study_genetic.h"
#include "tuner/config/study_pbt.h"
#include "tuner/config/study_words.h"
#include "tuner/space/wording.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kPatternBytesMax = 1000;
constexpr std::size_t kPatternsMax = 100;

Result<void> read_duplicates(const Fields& fields, SamplerConfig& sampler) {
    const Node* node = fields.find("duplicates");
    if (node == nullptr) return {};
    for (const Duplicates duplicates :
         {Duplicates::kResample, Duplicates::kAllow, Duplicates::kReuse}) {
        if (node->type != Node::Type::kString || node->text != duplicates_name(duplicates))
            continue;
        sampler.duplicates = duplicates;
        return {};
    }
    return fault_at(node->place, fields.path_of("duplicates"),
                    "expected resample, reuse or allow, found " + describe(*node));
}

Result<void> read_preset(const Fields& fields, SamplerConfig& sampler) {
    const Node* node = fields.find("preset");
    if (node == nullptr) return {};
    for (const TpePreset preset : {TpePreset::kTune, TpePreset::kOptuna5, TpePreset::kOptuna4,
                                   TpePreset::kHyperopt, TpePreset::kWatanabe}) {
        if (node->type != Node::Type::kString || node->text != preset_name(preset)) continue;
        sampler.preset = preset;
        // Hyperopt's own default; `startup` beside it says otherwise.
        if (preset == TpePreset::kHyperopt) sampler.startup = 20;
        return {};
    }
    return fault_at(
        node->place, fields.path_of("preset"),
        "expected tune, optuna5, optuna4, hyperopt or watanabe, found " + describe(*node));
}

Result<void> read_constraint_rule(const Fields& fields, SamplerConfig& sampler) {
    const Node* node = fields.find("constraints");
    if (node == nullptr) return {};
    for (const ConstraintRule rule : {ConstraintRule::kJoint, ConstraintRule::kEach}) {
        if (node->type != Node::Type::kString || node->text != constraint_rule_name(rule)) continue;
        sampler.constraints = rule;
        return {};
    }
    return fault_at(node->place, fields.path_of("constraints"),
                    "expected joint or each, found " + describe(*node));
}

/// `warp: auto|on|off` and `noise: auto|NUMBER`.
Result<void> read_gp(const Fields& fields, SamplerConfig& sampler) {
    if (const Node* node = fields.find("warp")) {
        const bool is_word = node->type == Node::Type::kString;
        if (is_word && node->text == "auto") {
            sampler.warp = Warp::kAuto;
        } else if (is_word && node->text == "on") {
            sampler.warp = Warp::kOn;
        } else if (is_word && node->text == "off") {
            sampler.warp = Warp::kOff;
        } else {
            return fault_at(node->place, fields.path_of("warp"),
                            "expected auto, on or off, found " + describe(*node));
        }
    }
    const Node* node = fields.find("noise");
    if (node == nullptr || (node->type == Node::Type::kString && node->text == "auto")) return {};
    if (node->type == Node::Type::kString)
        return fault_at(node->place, fields.path_of("noise"),
                        "expected auto or a number, the standard deviation of one value, found " +
                            describe(*node));
    double noise = 0;
    TUNE_TRY_VOID(fields.number("noise", noise, 0, 1e300));
    sampler.noise = noise;
    return {};
}

bool is_plain_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-./@").find(c) != std::string_view::npos;
    });
}

Result<ScrapeConfig> read_pattern(const Node& node, const std::string& path) {
    ScrapeConfig scrape;
    const Node* pattern = &node;
    if (node.type != Node::Type::kString) {
        TUNE_TRY(fields, Fields::open(node, path, {"name", "pattern"}));
        TUNE_TRY_VOID(fields.text("name", scrape.name, 250));
        if (const Node* name = fields.find("name"))
            if (const auto fault = metric_name_fault(scrape.name))
                return fault_at(name->place, fields.path_of("name"), *fault);
        pattern = fields.find("pattern");
        if (pattern == nullptr) return fault_at(node.place, path, "'pattern' is missing");
    }
    TUNE_TRY_VOID(check_text(*pattern, path, kPatternBytesMax));
    const std::string& text = pattern->text;
    // A plain word is the name of a metric; the agent finds "name = number" by itself.
    if (scrape.name.empty() ? !is_plain_name(text) : !text.empty()) {
        RE2::Options options;
        options.set_log_errors(false);
        const RE2 compiled(text, options);
        if (!compiled.ok())
            return fault_at(pattern->place, path,
                            "the pattern " + in_quotes(text) +
                                " is not a regular expression (RE2): " + compiled.error());
        if (compiled.NumberOfCapturingGroups() == 0)
            return fault_at(pattern->place, path,
                            "the pattern " + in_quotes(text) +
                                " has no group; put the number in brackets: loss=([0-9.e+-]+)");
    }
    scrape.pattern = text;
    return scrape;
}

}  // namespace

Result<std::string> type_of(const Node& node, const std::string& path,
                            const std::vector<std::string>& known) {
    const Node* type = &node;
    if (node.type == Node::Type::kMap) type = node.find("type");
    if (type == nullptr)
        return fault_at(node.place, path, "'type' is missing; expected one of " + listed(known));
    if (type->type == Node::Type::kNull &&
        std::find(known.begin(), known.end(), "none") != known.end())
        return std::string("none");
    if (type->type != Node::Type::kString)
        return fault_at(type->place, path + ".type",
                        "expected one of " + listed(known) + ", found " + describe(*type));
    if (std::find(known.begin(), known.end(), type->text) == known.end())
        return fault_at(
            type->place, path + ".type",
            "unknown " + path + " " + in_quotes(type->text) + known_words(type->text, known));
    return type->text;
}

Result<void> read_sampler(const Node& node, StudyConfig& config) {
    constexpr SamplerType kTypes[] = {
        SamplerType::kTpe,    SamplerType::kGp,  SamplerType::kAuto, SamplerType::kCmaes,
        SamplerType::kRandom, SamplerType::kQmc, SamplerType::kGrid, SamplerType::kNsga2,
        SamplerType::kNsga3,  SamplerType::kPbt};
    std::vector<std::string> names;
    for (const SamplerType type : kTypes) names.emplace_back(sampler_name(type));
    TUNE_TRY(name, type_of(node, "sampler", names));
    SamplerConfig sampler;
    for (const SamplerType type : kTypes)
        if (sampler_name(type) == name) sampler.type = type;
    if (sampler.type == SamplerType::kPbt) sampler.population = kPbtPopulation;
    if (node.type == Node::Type::kMap) {
        std::vector<std::string> known = {"type", "seed"};
        if (sampler.type == SamplerType::kTpe || sampler.type == SamplerType::kGp)
            known.push_back("startup");
        if (sampler.type == SamplerType::kTpe)
            known.insert(known.end(), {"candidates", "preset", "window", "constraints"});
        if (sampler.type == SamplerType::kGp || sampler.type == SamplerType::kAuto)
            known.insert(known.end(), {"warp", "noise"});
        if (is_genetic(sampler.type)) known = genetic_keys(sampler.type);
        if (sampler.type == SamplerType::kPbt)
            known = pbt_keys();
        else
            known.push_back(sampler.type == SamplerType::kGrid ? "points" : "duplicates");
        TUNE_TRY(fields, Fields::open(node, "sampler", known));
        if (fields.find("seed") != nullptr) {
            std::int64_t seed = 0;
            TUNE_TRY_VOID(fields.integer("seed", seed, 0, static_cast<std::int64_t>(kSeedMax)));
            sampler.seed = static_cast<std::uint64_t>(seed);
        }
        TUNE_TRY_VOID(read_preset(fields, sampler));
        TUNE_TRY_VOID(read_constraint_rule(fields, sampler));
        TUNE_TRY_VOID(fields.integer("window", sampler.window, 0, 100'000'000));
        TUNE_TRY_VOID(fields.integer("startup", sampler.startup, 0, 1'000'000));
        TUNE_TRY_VOID(fields.integer("candidates", sampler.candidates, 1, 1000));
        TUNE_TRY_VOID(fields.integer("points", sampler.points, 1, 100'000));
        TUNE_TRY_VOID(read_gp(fields, sampler));
        TUNE_TRY_VOID(read_duplicates(fields, sampler));
        TUNE_TRY_VOID(read_genetic(fields, sampler));
        TUNE_TRY_VOID(read_pbt(fields, sampler));
    }
    config.sampler = sampler;
    return {};
}

Result<void> read_retry(const Node& node, StudyConfig& config) {
    TUNE_TRY(fields, Fields::open(node, "retry", {"max", "on"}));
    RetryConfig retry;
    TUNE_TRY_VOID(fields.integer("max", retry.max, 0, 1000));
    constexpr RetryOn kEnds[] = {RetryOn::kPreempted, RetryOn::kOom, RetryOn::kFailed,
                                 RetryOn::kTimeout};
    std::vector<std::string> known;
    for (const RetryOn end : kEnds) known.emplace_back(retry_name(end));
    if (const Node* on = fields.find("on")) {
        if (on->type != Node::Type::kList)
            return fault_at(on->place, "retry.on",
                            "expected a list of " + listed(known) + ", found " + describe(*on));
        for (const Node& item : on->items) {
            const auto found = std::find(known.begin(), known.end(), item.text);
            if (item.type != Node::Type::kString || found == known.end())
                return fault_at(
                    item.place, "retry.on",
                    "unknown end of an attempt: " + describe(item) + known_words(item.text, known));
            const RetryOn end = kEnds[found - known.begin()];
            if (std::find(retry.on.begin(), retry.on.end(), end) == retry.on.end())
                retry.on.push_back(end);
        }
    }
    config.retry = std::move(retry);
    return {};
}

Result<void> read_scrape(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kList) {
        TUNE_TRY(one, read_pattern(node, "scrape"));
        config.scrape = {std::move(one)};
        return {};
    }
    if (node.items.size() > kPatternsMax)
        return fault_at(node.place, "scrape", "at most 100 patterns are supported");
    for (const Node& item : node.items) {
        TUNE_TRY(one, read_pattern(item, "scrape"));
        config.scrape.push_back(std::move(one));
    }
    return {};
}

}  // namespace tune::tuner
