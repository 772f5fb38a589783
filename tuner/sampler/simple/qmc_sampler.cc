// Quasi-random search: Sobol's sequence (direction numbers of Joe and Kuo 2008, by Boost.Random)
// with the nested uniform scrambling of Owen in the hashed form of Laine and Karras (2011) with
// Burley's constants ("Practical Hash-based Owen Scrambling", 2020).
//
// The idea. Independent random points leave holes and clusters. Of a Sobol sequence each block of
// 2^k points has the same number in each half, quarter, ... of every axis, so that few trials cover
// all values of every parameter, and more trials fill the gaps of those before.
//
// Why scrambled: the plain sequence starts in a corner (0, 0, ...) and its first points are the
// same in every study. Scrambling flips each binary digit of a coordinate depending on the digits
// above it and on the seed. Points that shared a half, quarter, ... still do, so the balance stays;
// each point by itself becomes uniform, and every seed has a sequence of its own. Reversing the
// bits first turns "depends on the digits above" into what a multiplication does, since carries run
// upwards only.
//
// Trial n has point n, whatever was seen: any number of workers share the sequence without a common
// state. Point 0, which Boost leaves out, is put back; without it blocks of 2^k points are not
// balanced. Parameters that conditions switch off keep their dimension; those beyond the first
// 1,024 are drawn independently.

#include "tuner/sampler/simple/qmc_sampler.h"

#include <algorithm>
#include <boost/random/sobol.hpp>
#include <cmath>

#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

std::uint32_t reverse_bits(std::uint32_t x) {
    x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
    x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
    x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
    return __builtin_bswap32(x);
}

/// Each bit is flipped by a hash of the bits above it.
std::uint32_t owen_scramble(std::uint32_t x, std::uint32_t seed) {
    x = reverse_bits(x);
    x ^= x * 0x3d20adeau;
    x += seed;
    x *= (seed >> 16) | 1u;
    x ^= x * 0x05526c56u;
    x ^= x * 0x53a22864u;
    return reverse_bits(x);
}

/// `uniform` in [0, 1) to a value of the parameter.
double value_at(const Parameter& parameter, double uniform) {
    const Axis axis = Axis::of(parameter);
    if (axis.kind == Axis::Kind::kCategory) return axis.category_at(uniform);
    const double value = axis.value(axis.quantile(uniform));
    return axis.kind == Axis::Kind::kStepped ? parameter.snap(value) : value;
}

}  // namespace

/// One point at a time, from any place in the sequence.
class QmcSampler::Sequence {
public:
    Sequence(std::size_t dimensions, std::uint64_t seed) : engine_(dimensions), point_(dimensions) {
        std::vector<double> uniforms(dimensions);
        CounterSource(seed).fill(0, stream_key("scrambling of the Sobol sequence"), uniforms);
        for (const double uniform : uniforms)
            seeds_.push_back(static_cast<std::uint32_t>(uniform * 4294967296.0));
    }

    const std::vector<double>& at(std::uint64_t number) {
        // Boost leaves out the first point, the origin, without which powers of two are not
        // balanced.
        engine_.seed();
        if (number > 0) engine_.discard((number - 1) * point_.size());
        for (std::size_t i = 0; i < point_.size(); ++i) {
            const auto top = number > 0 ? static_cast<std::uint32_t>(engine_() >> 32) : 0u;
            point_[i] = static_cast<double>(owen_scramble(top, seeds_[i])) / 4294967296.0;
        }
        return point_;
    }

private:
    boost::random::sobol engine_;
    std::vector<double> point_;
    std::vector<std::uint32_t> seeds_;
};

QmcSampler::QmcSampler(const Space& space, std::uint64_t seed)
    : space_(space),
      groups_(groups_of(space)),
      dimension_of_(space.size(), kSobolParametersMax),
      source_(seed) {
    std::size_t dimensions = 0;
    for (std::size_t i = 0; i < space.size() && dimensions < kSobolParametersMax; ++i)
        if (!space[i].is_single()) dimension_of_[i] = dimensions++;
    if (dimensions > 0) sequence_ = std::make_unique<Sequence>(dimensions, seed);
}

QmcSampler::~QmcSampler() = default;

Result<void> QmcSampler::observe(const Observation& observation) {
    if (observation.state == Observation::State::kGone) return {};
    return space_.check(observation.point);
}

Point QmcSampler::suggest(std::uint64_t number, const Point& fixed) {
    const std::vector<double>* uniforms = sequence_ ? &sequence_->at(number) : nullptr;
    return compose_point(space_, groups_, fixed, [&](const Group& group, Point& point) {
        for (const std::size_t index : group.members) {
            const std::size_t dimension = dimension_of_[index];
            point[index] = dimension < kSobolParametersMax
                               ? value_at(space_[index], (*uniforms)[dimension])
                               : draw_uniform(space_[index], source_, number);
        }
    });
}

const SamplerKind& qmc_sampler() {
    static const OptionTable kOptions = TableOf<NoOptions>();
    static const SamplerKind kKind = [] {
        SamplerKind kind{
            {"qmc",
             "the points of a scrambled Sobol sequence, trial n the n-th, so that workers share it "
             "without talking",
             kOptions},
            [](const SamplerConfig&, const SamplerContext& context) -> std::unique_ptr<Sampler> {
                return std::make_unique<QmcSampler>(context.space, context.seed);
            }};
        kind.uses_results = false;
        kind.takes_more = true;
        return kind;
    }();
    return kKind;
}

}  // namespace tune::tuner
