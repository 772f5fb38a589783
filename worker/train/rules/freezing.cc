// Names decide: patterns are searched in them, and the layer is what comes before their first
// number.

#include "worker/train/rules/freezing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>

namespace tune::train {
namespace {

bool is_found(const std::string& name, const std::string& pattern) {
    return !pattern.empty() && std::regex_search(name, std::regex(pattern));
}

std::string layer_name(const std::string& name) {
    std::size_t begin = 0;
    while (true) {
        const std::size_t dot = name.find('.', begin);
        if (dot == std::string::npos) break;
        const bool is_number =
            dot > begin && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                                       name.begin() + static_cast<std::ptrdiff_t>(dot),
                                       [](char c) { return c >= '0' && c <= '9'; });
        if (is_number) return name.substr(0, dot);
        begin = dot + 1;
    }
    return name.substr(0, name.find('.'));
}

}  // namespace

Result<void> check_pattern(std::string_view parameter, const std::string& pattern) {
    try {
        const std::regex checked(pattern);
        return {};
    } catch (const std::regex_error& error) {
        return Error{Code::kInvalidParameterValue,
                     std::string(parameter) + ": '" + pattern +
                         "' is not a regular expression: " + error.what()};
    }
}

Result<std::vector<Unfreezing>> parse_unfreezing(std::string_view text) {
    std::vector<Unfreezing> list;
    while (!text.empty()) {
        const std::string_view entry = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), entry.size() + 1));
        const std::size_t colon = entry.find(':');
        Unfreezing each;
        const char* end = entry.data() + std::min(colon, entry.size());
        const auto [rest, error] = std::from_chars(entry.data(), end, each.epoch);
        if (colon == std::string_view::npos || error != std::errc() || rest != end ||
            each.epoch < 0 || colon + 1 == entry.size())
            return Error{Code::kInvalidParameterValue, "unfreeze: '" + std::string(entry) +
                                                           "' is not EPOCH:REGEX, e.g. 3:layer4"};
        each.pattern = std::string(entry.substr(colon + 1));
        TUNE_TRY_VOID(check_pattern("unfreeze", each.pattern));
        list.push_back(std::move(each));
    }
    return list;
}

std::int64_t Freezing::first_epoch(const std::string& name) const {
    if (!is_found(name, freeze)) return 0;
    std::int64_t first = kNever;
    for (const Unfreezing& each : unfreeze)
        if ((first == kNever || each.epoch < first) && is_found(name, each.pattern))
            first = each.epoch;
    return first;
}

Result<void> check_found(const Freezing& freezing, const std::vector<std::string>& names) {
    if (freezing.freeze.empty()) return {};
    const auto check = [&](const char* parameter, const std::string& pattern) -> Result<void> {
        if (std::any_of(names.begin(), names.end(),
                        [&](const std::string& name) { return is_found(name, pattern); }))
            return {};
        std::vector<std::string> layers;
        for (const std::string& name : names)
            if (const std::string layer = layer_name(name);
                layers.empty() || layers.back() != layer)
                layers.push_back(layer);
        std::string list;
        for (const std::string& layer : layers) list += (list.empty() ? "" : ", ") + layer;
        return invalid_parameter(std::string(parameter) + ": '" + pattern +
                                 "' is found in no parameter's name; the layers are " + list);
    };
    TUNE_TRY_VOID(check("freeze", freezing.freeze));
    for (const Unfreezing& each : freezing.unfreeze) TUNE_TRY_VOID(check("unfreeze", each.pattern));
    return {};
}

std::vector<std::size_t> layers_of(const std::vector<std::string>& names) {
    std::vector<std::size_t> layers;
    std::vector<std::string> known;
    for (const std::string& name : names) {
        const std::string layer = layer_name(name);
        const auto found = std::find(known.begin(), known.end(), layer);
        layers.push_back(static_cast<std::size_t>(found - known.begin()));
        if (found == known.end()) known.push_back(layer);
    }
    return layers;
}

std::vector<double> layer_factors(const std::vector<std::string>& names, double decay) {
    const std::vector<std::size_t> layers = layers_of(names);
    const std::size_t last = layers.empty() ? 0 : *std::max_element(layers.begin(), layers.end());
    std::vector<double> factors;
    for (const std::size_t layer : layers)
        factors.push_back(std::pow(decay, static_cast<double>(last - layer)));
    return factors;
}

}  // namespace tune::train
