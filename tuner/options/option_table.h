#pragma once
// The options of a struct as rows: name, type, range, default, help. Every other form of an option
// comes from its row: the reader of study files and REST bodies, the writer, the JSON Schema, the
// API description, the page of the documentation, completion.
//
//   OptionTable options = [] {
//       TableOf<MedianOptions> table;
//       table.integer("startup", &MedianOptions::startup, 0, 1'000'000,
//                     "complete trials before anything is pruned");
//       return table;
//   }();
//
// A row holds accessors and plain data, so that whoever declares options includes no JSON library.
//
// Threads: tables are built once and only read afterwards.

#include <any>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tune::tuner {

class Fields;
struct Node;

/// JSON whose objects keep the order in which they were written.
using OrderedJson = nlohmann::ordered_json;

/// A step of a trial, as far as JSON's readers keep integers.
inline constexpr std::int64_t kStepMax = std::int64_t{1} << 53;
/// Of values that may be any number.
inline constexpr double kNumberMax = std::numeric_limits<double>::max();
/// Of trials and the like.
inline constexpr int kCountMax = 1'000'000;

// --- the types of options ------------------------------------------------------------------------

/// nullopt stands for an optional field without a value.
struct IntegerType {
    std::int64_t low;
    std::int64_t high;
    std::function<std::optional<std::int64_t>(const void*)> get;
    std::function<void(void*, std::int64_t)> set;
};

struct NumberType {
    double low;
    double high;
    std::function<std::optional<double>(const void*)> get;
    std::function<void(void*, double)> set;
};

/// One of `names`; get and set count in them.
struct ChoiceType {
    std::vector<std::string> names;
    std::function<std::size_t(const void*)> get;
    std::function<void(void*, std::size_t)> set;
};

/// What a text has to be besides short.
struct TextRule {
    std::string pattern;  // the same as a regular expression, for the schema
    std::function<bool(std::string_view)> holds;  // empty: nothing is asked of it
    std::string expected;                         // for the error: "a name without '/'"
};

/// Empty: not given.
struct TextType {
    std::size_t bytes_max;
    std::function<std::string(const void*)> get;
    std::function<void(void*, std::string)> set;
    TextRule rule = {};
};

/// In milliseconds; a study writes "90s".
struct DurationType {
    std::int64_t low_ms;
    std::function<std::optional<std::int64_t>(const void*)> get;
    std::function<void(void*, std::int64_t)> set;
};

/// Between `count_low` and `count_high` numbers.
struct NumbersType {
    double low;
    double high;
    std::size_t count_low;
    std::size_t count_high;
    std::string example;  // for errors
    std::function<const std::vector<double>&(const void*)> get;
    std::function<void(void*, std::vector<double>)> set;
};

/// What none of the above can say. `read` is called whether the key is there or not.
struct CustomType {
    std::string type;    // for people: "duration"
    std::string schema;  // the value's JSON Schema, as text
    std::string api;     // the value as tracker/openapi/type_text.h writes types
    std::function<Result<void>(const Fields&, void*)> read;
    std::function<void(const void*, Json&)> write;  // sets its key, or leaves it out
    bool is_always_written = false;
};

using OptionType = std::variant<IntegerType, NumberType, ChoiceType, TextType, DurationType,
                                NumbersType, CustomType>;

// --- rows ----------------------------------------------------------------------------------------

struct Option {
    std::string name;
    OptionType type;
    std::string help;
    std::string fallback = {};      // how people call the default where it is no value
    std::string word = {};          // stands for 0, or for no value; empty: there is none
    std::string word_meaning = {};  // for errors: "the standard deviation of one value"
    std::string required = {};  // what it is, for the error where it is missing; empty: optional
    bool is_brief = false;      // not written where it is the default
    bool is_needed = false;     // as `required`, but the table's own check refuses

    /// "auto" stands for 0, or for no value. `meaning`: what the number is.
    Option& or_word(std::string spelling, std::string meaning = {});
    /// It has no default, and a study without it is refused: "'wait' is missing: <what>".
    Option& must_be_given(std::string what);
    /// As above, but the table's own check says what is missing.
    Option& needed();
    /// Left out of what is written where it is the default.
    Option& brief();
    /// What the documentation gives for its default.
    Option& defaults_to(std::string text);
    /// REQUIRES: a text.
    Option& matching(TextRule rule);
};

/// The rows of one struct.
class OptionTable {
public:
    using Check = std::function<Result<void>(const Fields&, void*)>;

    [[nodiscard]] std::span<const Option> rows() const { return rows_; }
    [[nodiscard]] const Option* find(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> names() const;

    /// A struct of defaults.
    [[nodiscard]] const std::any& defaults() const { return defaults_; }
    /// REQUIRES: both hold this table's struct.
    [[nodiscard]] bool are_equal(const std::any& a, const std::any& b) const {
        return equal_(a, b);
    }
    [[nodiscard]] void* address(std::any& options) const { return address_(options); }
    [[nodiscard]] const void* address(const std::any& options) const {
        return address_(const_cast<std::any&>(options));
    }

    /// Refuses a node that lacks a key that must be given. Errors: kInvalidParameterValue.
    [[nodiscard]] Result<void> check_given(const Node& node, std::string_view path) const;
    /// Stores what `fields` has; the rest keeps its value. Errors: kInvalidParameterValue with
    /// place and path.
    [[nodiscard]] Result<void> read(const Fields& fields, void* options) const;
    /// Adds the options to the object `json`.
    void write(const void* options, Json& json) const;

    /// Adds the JSON Schema of each option to `properties`.
    void add_schema(OrderedJson& properties) const;
    /// Keys without which a study is refused.
    [[nodiscard]] std::vector<std::string> required() const;

    /// "integer from 1 to 100", "one of a, b": for people.
    [[nodiscard]] static std::string type_text(const Option& option);
    /// The default as a study would write it; "" where there is none.
    [[nodiscard]] std::string default_text(const Option& option) const;
    /// As API descriptions write types: "integer", "enum(a|b)!".
    [[nodiscard]] std::string api_text(const Option& option) const;

protected:
    OptionTable() = default;

    std::vector<Option> rows_;
    Check check_;
    std::any defaults_;
    bool (*equal_)(const std::any&, const std::any&) = nullptr;
    void* (*address_)(std::any&) = nullptr;
};

/// Of what has none.
struct NoOptions {
    [[nodiscard]] bool operator==(const NoOptions&) const = default;
};

/// Builds the table of `T`, a struct with operator== whose default is that of every option.
template <class T>
class TableOf : public OptionTable {
public:
    TableOf() {
        defaults_ = T();
        equal_ = [](const std::any& a, const std::any& b) {
            return *std::any_cast<T>(&a) == *std::any_cast<T>(&b);
        };
        address_ = [](std::any& options) -> void* { return std::any_cast<T>(&options); };
    }

    /// `Field`: an integer type or an optional of one.
    template <class Field>
    Option& integer(std::string name, Field T::*field, std::int64_t low, std::int64_t high,
                    std::string help) {
        using Number = typename Bare<Field>::Type;
        return add(std::move(name),
                   IntegerType{low, high,
                               [field](const void* options) -> std::optional<std::int64_t> {
                                   return value_of<std::int64_t>(at(options).*field);
                               },
                               [field](void* options, std::int64_t value) {
                                   at(options).*field = static_cast<Number>(value);
                               }},
                   std::move(help));
    }

    /// `Field`: double or an optional of it.
    template <class Field>
    Option& number(std::string name, Field T::*field, double low, double high, std::string help) {
        return add(std::move(name),
                   NumberType{low, high,
                              [field](const void* options) -> std::optional<double> {
                                  return value_of<double>(at(options).*field);
                              },
                              [field](void* options, double value) { at(options).*field = value; }},
                   std::move(help));
    }

    /// `names` in the order of errors and help, each with its enumerator.
    template <class Enum>
    Option& choice(std::string name, Enum T::*field,
                   std::vector<std::pair<std::string, Enum>> names, std::string help) {
        ChoiceType type;
        std::vector<Enum> values;
        for (auto& [text, value] : names) {
            type.names.push_back(text);
            values.push_back(value);
        }
        type.get = [field, values](const void* options) {
            std::size_t i = 0;
            while (i + 1 < values.size() && values[i] != at(options).*field) ++i;
            return i;
        };
        type.set = [field, values](void* options, std::size_t i) {
            at(options).*field = values[i];
        };
        return add(std::move(name), std::move(type), std::move(help));
    }

    Option& text(std::string name, std::string T::*field, std::size_t bytes_max, std::string help) {
        return add(std::move(name),
                   TextType{bytes_max, [field](const void* options) { return at(options).*field; },
                            [field](void* options, std::string value) {
                                at(options).*field = std::move(value);
                            }},
                   std::move(help))
            .brief();
    }

    /// `Field`: std::int64_t or an optional of it, in milliseconds. `low_ms`: 1 for above 0.
    template <class Field>
    Option& duration(std::string name, Field T::*field, std::int64_t low_ms, std::string help) {
        return add(
            std::move(name),
            DurationType{low_ms,
                         [field](const void* options) -> std::optional<std::int64_t> {
                             return value_of<std::int64_t>(at(options).*field);
                         },
                         [field](void* options, std::int64_t ms) { at(options).*field = ms; }},
            std::move(help));
    }

    Option& numbers(std::string name, std::vector<double> T::*field, NumbersType type,
                    std::string help) {
        type.get = [field](const void* options) -> const std::vector<double>& {
            return at(options).*field;
        };
        type.set = [field](void* options, std::vector<double> values) {
            at(options).*field = std::move(values);
        };
        return add(std::move(name), std::move(type), std::move(help));
    }

    /// How a row of another type is read and written. `write` may be empty where a study never
    /// writes it.
    struct Custom {
        std::string type;
        std::string schema;
        std::string api;
        std::function<Result<void>(const Fields&, T&)> read;
        std::function<void(const T&, Json&)> write = {};
        bool is_always_written = false;
    };

    Option& custom(std::string name, Custom how, std::string help) {
        CustomType type{std::move(how.type),
                        std::move(how.schema),
                        std::move(how.api),
                        [read = std::move(how.read)](const Fields& fields, void* options) {
                            return read(fields, at(options));
                        },
                        nullptr,
                        how.is_always_written};
        if (how.write)
            type.write = [write = std::move(how.write)](const void* options, Json& json) {
                write(at(options), json);
            };
        return add(std::move(name), std::move(type), std::move(help));
    }

    /// What no single row can tell; called after the rows. May settle what depends on several.
    void check(std::function<Result<void>(const Fields&, T&)> check) {
        check_ = [check = std::move(check)](const Fields& fields, void* options) {
            return check(fields, at(options));
        };
    }

private:
    template <class Field>
    struct Bare {
        using Type = Field;
    };
    template <class Value>
    struct Bare<std::optional<Value>> {
        using Type = Value;
    };

    static T& at(void* options) { return *static_cast<T*>(options); }
    static const T& at(const void* options) { return *static_cast<const T*>(options); }

    template <class Wide, class Value>
    static std::optional<Wide> value_of(const Value& value) {
        return static_cast<Wide>(value);
    }
    template <class Wide, class Value>
    static std::optional<Wide> value_of(const std::optional<Value>& value) {
        return value ? std::optional(static_cast<Wide>(*value)) : std::nullopt;
    }

    Option& add(std::string name, OptionType type, std::string help) {
        return rows_.emplace_back(Option{std::move(name), std::move(type), std::move(help)});
    }
};

}  // namespace tune::tuner
