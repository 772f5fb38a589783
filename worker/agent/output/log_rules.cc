#include "worker/agent/output/log_rules.h"

#include <re2/set.h>

#include <algorithm>
#include <utility>

#include "worker/agent/output/trial_output.h"

namespace tune::worker {
namespace {

constexpr std::size_t kLineBytesMax = 300;

}  // namespace

class LogRules::Patterns {
public:
    Patterns() : set(quiet(), RE2::UNANCHORED) {}
    static RE2::Options quiet() {
        RE2::Options options;
        options.set_log_errors(false);
        options.set_never_capture(true);
        return options;
    }
    RE2::Set set;
};

const std::vector<tuner::LogRule>& gpu_log_rules() {
    using tuner::LogAction;
    static const std::vector<tuner::LogRule> kRules = {
        {R"((?i)uncorrectable ECC error)", LogAction::kExcludeDevice},
        {R"(cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE)", LogAction::kExcludeDevice},
        {R"((?i)GPU (is lost|has fallen off the bus))", LogAction::kExcludeDevice},
        // As the kernel prints it and as people quote it; 31, 43 and the like are a program's own.
        {R"(\bXid\b[^0-9]*(\([^)]*\): ?)?(48|62|64|74|79|94|95|110|119|120|140)\b)",
         LogAction::kExcludeDevice},
    };
    return kRules;
}

LogRules::LogRules(std::unique_ptr<Patterns> patterns, std::vector<tuner::LogAction> actions)
    : patterns_(std::move(patterns)), actions_(std::move(actions)), best_(actions_.size()) {}
LogRules::~LogRules() = default;
LogRules::LogRules(LogRules&&) noexcept = default;
LogRules& LogRules::operator=(LogRules&&) noexcept = default;

Result<LogRules> LogRules::create(const std::vector<tuner::LogRule>& rules) {
    if (rules.empty()) return LogRules(nullptr, {});
    auto patterns = std::make_unique<Patterns>();
    std::vector<tuner::LogAction> actions;
    for (const tuner::LogRule& rule : rules) {
        std::string error;
        if (patterns->set.Add(rule.pattern, &error) < 0)
            return Error{
                Code::kInvalidParameterValue,
                "the log rule '" + rule.pattern + "' is not a regular expression (RE2): " + error};
        actions.push_back(rule.action);
    }
    if (!patterns->set.Compile())
        return Error{Code::kInvalidParameterValue,
                     "the log rules are together too large for a regular expression"};
    return LogRules(std::move(patterns), std::move(actions));
}

void LogRules::read(std::string_view line) {
    std::vector<int> found;
    if (patterns_ == nullptr || !patterns_->set.Match({line.data(), line.size()}, &found)) return;
    const auto first = static_cast<std::size_t>(*std::min_element(found.begin(), found.end()));
    if (first >= best_) return;
    best_ = first;
    hit_ = {actions_[first], last_line(line, kLineBytesMax)};
}

}  // namespace tune::worker
