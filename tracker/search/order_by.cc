#include "tracker/search/order_by.h"

#include <algorithm>

#include "base/text/python_text.h"
#include "tracker/search/grammar/identifier.h"
#include "tracker/search/grammar/tokens.h"
#include "tracker/search/grammar/validate_registry.h"

namespace tune::tracker::search {
namespace {

Error not_parsed(std::string_view text) {
    return invalid_parameter("Invalid order_by clause '" + shorten(text) +
                             "'. Could not be parsed.");
}

Result<bool> is_ascending(const std::vector<Token>& tokens, std::string_view text) {
    if (tokens.size() < 2 || is_word(tokens[1].text, "ASC")) return true;
    if (is_word(tokens[1].text, "DESC")) return false;
    return invalid_parameter("Invalid ordering key in order_by clause '" + shorten(text) + "'.");
}

Result<OrderKey> parse_one(Subject subject, std::string_view text) {
    if (text.size() > kFilterBytesMax) return not_parsed(text);
    const std::vector<Token> tokens = scan(text);
    if (tokens.empty() || tokens.size() > 2) return not_parsed(text);
    for (const Token& token : tokens)
        if (token.kind != TokenKind::kName) return not_parsed(text);
    TUNE_TRY(ascending, is_ascending(tokens, text));
    if (subject == Subject::kRegisteredModels || subject == Subject::kModelVersions) {
        std::string_view name = tokens[0].text;
        // MLflow takes quotes off where a direction follows.
        if (tokens.size() == 2 && !strip_quotes(name, "`")) strip_quotes(name, "\"");
        TUNE_TRY(registry_key, registry_order_key(subject, name));
        OrderKey key;
        key.key = std::move(registry_key);
        key.is_ascending = ascending;
        return key;
    }
    const auto attributes = orderable_attributes(subject);
    TUNE_TRY(identifier, parse_identifier(subject, tokens[0].text, attributes));
    if (subject == Subject::kRuns && identifier.entity == Entity::kDataset)
        return invalid_parameter("Invalid identifier type 'dataset'");
    if (subject == Subject::kExperiments && identifier.entity != Entity::kAttribute)
        return invalid_parameter("Invalid order_by entity: " +
                                 std::string(entity_name(identifier.entity)));
    OrderKey key;
    key.entity = identifier.entity;
    key.key = std::move(identifier.key);
    key.is_ascending = ascending;
    key.is_quoted = identifier.is_quoted;
    if (key.entity == Entity::kAttribute) key.key = find_attribute(attributes, key.key)->canonical;
    return key;
}

Error duplicate(std::span<const std::string> texts) {
    std::string list;
    for (const std::string& text : texts)
        list += (list.empty() ? "" : ", ") + python_repr(shorten(text));
    return invalid_parameter("`order_by` contains duplicate fields: [" + list + "]");
}

}  // namespace

Result<std::vector<OrderKey>> parse_order_by(Subject subject, std::span<const std::string> texts) {
    if (texts.size() > kOrderKeysMax)
        return invalid_parameter("order_by has " + std::to_string(texts.size()) +
                                 " keys; at most " + std::to_string(kOrderKeysMax) +
                                 " are supported.");
    std::vector<OrderKey> keys;
    for (const std::string& text : texts) {
        TUNE_TRY(key, parse_one(subject, text));
        const bool is_known = std::any_of(keys.begin(), keys.end(), [&](const OrderKey& other) {
            return other.entity == key.entity && other.key == key.key;
        });
        // MLflow takes them for experiments, where the first decides.
        if (is_known && subject != Subject::kExperiments) return duplicate(texts);
        if (!is_known) keys.push_back(std::move(key));
    }
    return keys;
}

}  // namespace tune::tracker::search
