#pragma once
// A kind out of a registry ("asha") with its options, as one value.

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace tune::tuner {

class OptionTable;
struct Node;

/// What every sampler and pruner says of itself. One static object each.
struct KindBase {
    std::string_view name;  // `type` in a study
    std::string_view help;  // one line
    const OptionTable& options;
};

/// Kinds in the order in which people see them.
using Kinds = std::span<const KindBase* const>;

class Chosen {
public:
    /// With its default options.
    explicit Chosen(const KindBase& kind);
    Chosen(const KindBase& kind, std::any options) : kind_(&kind), options_(std::move(options)) {}

    [[nodiscard]] std::string_view name() const { return kind_->name; }
    [[nodiscard]] bool is(std::string_view name) const { return kind_->name == name; }

    /// Null where the kind has other options.
    template <class Options>
    [[nodiscard]] const Options* get_if() const {
        return std::any_cast<Options>(&options_);
    }
    /// REQUIRES: these are the kind's options.
    template <class Options>
    [[nodiscard]] const Options& get() const {
        const auto* options = get_if<Options>();
        TUNE_CHECK(options != nullptr, "these are another kind's options");
        return *options;
    }
    /// To change them. REQUIRES: as get().
    template <class Options>
    [[nodiscard]] Options& edit() {
        return const_cast<Options&>(get<Options>());
    }

    /// The rows of its options.
    [[nodiscard]] const OptionTable& options() const { return kind_->options; }
    /// The same kind as it is where a study only names it.
    [[nodiscard]] Chosen with_defaults() const { return Chosen(*kind_); }
    /// The options in the rows' own terms.
    [[nodiscard]] void* address();
    [[nodiscard]] const void* address() const;

    [[nodiscard]] bool operator==(const Chosen& other) const;

protected:
    [[nodiscard]] const KindBase& base_kind() const { return *kind_; }

private:
    const KindBase* kind_;
    std::any options_;
};

/// Null where there is none of this name.
[[nodiscard]] const KindBase* find_kind(Kinds kinds, std::string_view name);
[[nodiscard]] std::vector<std::string> names_of(Kinds kinds);

/// The kind that a section names: `sampler: tpe` is short for `sampler: {type: tpe}`, and null for
/// {type: none} where that is known. Errors: kInvalidParameterValue with place and suggestion.
[[nodiscard]] Result<const KindBase*> read_kind(const Node& node, const std::string& path,
                                                Kinds kinds);

/// What a section is read from: itself, or `short_form` where it is only the kind's name.
[[nodiscard]] const Node& section_of(const Node& node, Node& short_form);

}  // namespace tune::tuner
