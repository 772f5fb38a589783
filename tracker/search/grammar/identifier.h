#pragma once
// Identifiers of filters and order_by: which entity, which key.

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/search/filter.h"

namespace tune::tracker::search {

struct Identifier {
    Entity entity = Entity::kAttribute;
    std::string key;  // without quotes, as written (not canonical)
    bool is_quoted = false;
};

/// An attribute that a subject can be searched or ordered by.
struct Attribute {
    std::string_view name;       // as written
    std::string_view canonical;  // one name for all spellings
    bool is_numeric = false;
};

[[nodiscard]] std::span<const Attribute> searchable_attributes(Subject subject);
[[nodiscard]] std::span<const Attribute> orderable_attributes(Subject subject);
/// nullptr if there is none of this name.
[[nodiscard]] const Attribute* find_attribute(std::span<const Attribute> attributes,
                                              std::string_view name);

/// Splits `text` at its first dot and checks entity and attribute. Errors: kInvalidParameterValue.
[[nodiscard]] Result<Identifier> parse_identifier(Subject subject, std::string_view text,
                                                  std::span<const Attribute> attributes);

/// "metric", "parameter", "tag", "attribute", "dataset".
[[nodiscard]] std::string_view entity_name(Entity entity);

/// Takes one pair of quotes (any of `quotes`) off; false if there is none.
bool strip_quotes(std::string_view& text, std::string_view quotes);

/// `text` for a sentence: its first 500 bytes, no character cut in two.
[[nodiscard]] std::string shorten(std::string_view text);

}  // namespace tune::tracker::search
