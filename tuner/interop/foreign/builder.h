#pragma once
// A study that is put together from another tuner's words. Private to tuner/space/foreign.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/space/node.h"

namespace tune::tuner {

/// How a foreign distribution is made; the fields of one are set by what it is.
struct ForeignDomain {
    enum class Kind { kUniform, kNormal };
    Kind kind = Kind::kUniform;
    bool log = false;
    bool is_integer = false;
    double low = 0;  // kUniform: as values, never exponents
    double high = 0;
    double center = 0;  // kNormal: mean, or median where log
    double spread = 0;
    double step = 0;  // 0: continuous; values are the multiples of it
    // kUniform with a step: multiples beyond the bounds become the bounds; else they stay.
    bool is_clipped = false;
};

class StudyBuilder {
public:
    StudyBuilder();
    StudyBuilder(const StudyBuilder&) = delete;
    StudyBuilder& operator=(const StudyBuilder&) = delete;
    ~StudyBuilder();

    /// A comment at the top: what was left behind.
    void note(Place place, std::string text);

    /// A section of the study; replaces one of this key. JSON text.
    void set(const std::string& key, const Json& value);
    [[nodiscard]] bool has(const std::string& key) const;

    /// Adds a parameter; `when` (may be null) are its conditions. Errors: a second one of the name.
    Result<void> add(Place place, const std::string& name, Json spec, const Json& when);

    /// The spec of a distribution. A step on a log scale is left out, with a note; clipped
    /// multiples whose ends are none are an ordinal where they are few, else the ends are left out
    /// with a note.
    [[nodiscard]] Json spec_of(Place place, const std::string& name, const ForeignDomain& domain);

    [[nodiscard]] bool has_parameters() const { return !parameters_.empty(); }

    /// study.yaml, with `title` in its first line.
    [[nodiscard]] std::string text(const std::string& title) const;

private:
    std::vector<std::string> notes_;
    std::vector<std::pair<std::string, std::string>> sections_;    // key, flow text
    std::vector<std::pair<std::string, std::string>> parameters_;  // name, flow text
};

/// The children of a node that a reader has not looked at, said in notes.
void note_others(StudyBuilder& builder, const Node& map, const std::vector<std::string>& known,
                 std::string_view path);

/// How the rule of NNI's and Katib's median stop differs from `median`.
void note_median(StudyBuilder& builder, Place place);

/// A number from a number or from a text that holds one (Katib writes all as texts).
[[nodiscard]] Result<double> number_in(const Node& node, const std::string& path);

/// So many numbers from a list.
[[nodiscard]] Result<std::vector<double>> numbers_in(const Node& node, const std::string& path,
                                                     std::size_t count);

[[nodiscard]] bool is_whole(double value);

/// An integer where it is whole.
[[nodiscard]] Json number_json(double value);

Result<void> read_optuna(const Node& root, StudyBuilder& builder);
Result<void> read_wandb(const Node& root, StudyBuilder& builder);
Result<void> read_nni(const Node& root, StudyBuilder& builder);
Result<void> read_katib(const Node& root, StudyBuilder& builder);
Result<void> read_hyperopt(const Node& root, StudyBuilder& builder);

}  // namespace tune::tuner
