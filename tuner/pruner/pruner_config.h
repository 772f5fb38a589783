#pragma once
// Which pruner a study has, with its options. The options' structs stand beside their pruners.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuner/options/chosen.h"
#include "tuner/space/goal.h"

namespace tune::tuner {

struct PrunerKind;

/// Pruners within pruners, counted from the outermost.
inline constexpr int kPrunerDepthMax = 4;
/// Parts of one any or all.
inline constexpr std::size_t kPrunerPartsMax = 8;

class PrunerConfig : public Chosen {
public:
    /// No pruner.
    PrunerConfig();
    /// With its default options.
    explicit PrunerConfig(const PrunerKind& kind);
    /// `options`: the struct of the kind.
    template <class Options>
    PrunerConfig(const PrunerKind& kind, Options options)
        : PrunerConfig(kind, std::any(std::move(options))) {}
    PrunerConfig(const PrunerKind& kind, std::any options);

    [[nodiscard]] const PrunerKind& kind() const;
    [[nodiscard]] bool is_none() const { return is("none"); }
};

/// Every pruner, in the order in which people see them (registry.cc).
[[nodiscard]] Kinds pruner_kinds();

/// The pruner of this name with its default options. REQUIRES: there is one.
[[nodiscard]] PrunerConfig pruner_named(std::string_view name);

/// Reads a study's `pruner`. `path` heads the paths in errors; `depth`: 1 for the outermost.
/// Errors: kInvalidParameterValue with place, path and suggestion.
[[nodiscard]] Result<PrunerConfig> read_pruner(const Node& node, const std::string& path,
                                               int depth = 1);

/// read_pruner reads it back to an equal config.
[[nodiscard]] Json to_json(const PrunerConfig& pruner);

}  // namespace tune::tuner
