#pragma once
// What a study says of the Gaussian process, also of the one within `auto`.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {

/// Whether gp distorts its numbers so that one length scale fits all of a range.
enum class Warp { kAuto, kOn, kOff };

struct GpOptions {
    int startup = 10;                  // trials before the model is used
    Warp warp = Warp::kAuto;           // kAuto: where the values favour it
    std::optional<double> noise = {};  // deviation of one value; none: learnt

    [[nodiscard]] bool operator==(const GpOptions&) const = default;
};

/// "gp" in a study.
[[nodiscard]] const SamplerKind& gp_sampler();

/// The rows of `warp` and `noise`, of any options that have them.
template <class Options>
void add_model_rows(TableOf<Options>& table) {
    table
        .choice("warp", &Options::warp,
                std::vector<std::pair<std::string, Warp>>{
                    {"auto", Warp::kAuto}, {"on", Warp::kOn}, {"off", Warp::kOff}},
                "bend the ranges of numbers, learnt; auto: where the values favour it")
        .brief();
    table
        .number("noise", &Options::noise, 0, 1e300,
                "standard deviation of one value of the objective; auto: learnt; 0: none")
        .or_word("auto", "the standard deviation of one value");
}

}  // namespace tune::tuner
