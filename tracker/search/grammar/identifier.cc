// Tables of entities and attributes per subject, with every spelling that MLflow takes and one
// canonical name each. Whatever follows the entity's dot is the key, dots included, unless the
// whole is quoted.

#include "tracker/search/grammar/identifier.h"

#include <array>
#include <optional>
#include <utility>

#include "base/text/python_text.h"
#include "base/text/utf8.h"

namespace tune::tracker::search {
namespace {

constexpr std::array kRunAttributes = {
    Attribute{"artifact_uri", "artifact_uri"},
    Attribute{"created", "start_time", true},
    Attribute{"Created", "start_time", true},
    Attribute{"end_time", "end_time", true},
    Attribute{"run_id", "run_id"},
    Attribute{"run_name", "run_name"},
    Attribute{"start_time", "start_time", true},
    Attribute{"status", "status"},
    Attribute{"user_id", "user_id"},
    // Only for filters; orderable_attributes leaves these out.
    Attribute{"run name", "run_name"},
    Attribute{"Run name", "run_name"},
    Attribute{"Run Name", "run_name"},
};
constexpr std::size_t kFilterOnlyRunAttributes = 3;

constexpr std::array kExperimentAttributes = {
    Attribute{"creation_time", "creation_time", true},
    Attribute{"experiment_id", "experiment_id"},
    Attribute{"last_update_time", "last_update_time", true},
    Attribute{"name", "name"},
};

constexpr std::array kModelAttributes = {
    Attribute{"creation_time", "creation_time", true},
    Attribute{"creation_timestamp", "creation_time", true},
    Attribute{"creation_timestamp_ms", "creation_time", true},
    Attribute{"experiment_id", "experiment_id"},
    Attribute{"last_updated_time", "last_updated_time", true},
    Attribute{"last_updated_timestamp", "last_updated_time", true},
    Attribute{"last_updated_timestamp_ms", "last_updated_time", true},
    Attribute{"model_id", "model_id"},
    Attribute{"model_type", "model_type"},
    Attribute{"name", "name"},
    Attribute{"source_run_id", "source_run_id"},
    Attribute{"status", "status"},
};

constexpr std::array<std::pair<std::string_view, Entity>, 14> kRunEntities = {{
    {"metric", Entity::kMetric},
    {"metrics", Entity::kMetric},
    {"parameter", Entity::kParam},
    {"parameters", Entity::kParam},
    {"param", Entity::kParam},
    {"params", Entity::kParam},
    {"tag", Entity::kTag},
    {"tags", Entity::kTag},
    {"attribute", Entity::kAttribute},
    {"attr", Entity::kAttribute},
    {"attributes", Entity::kAttribute},
    {"run", Entity::kAttribute},
    {"dataset", Entity::kDataset},
    {"datasets", Entity::kDataset},
}};

constexpr std::array<std::pair<std::string_view, Entity>, 3> kExperimentEntities = {{
    {"attribute", Entity::kAttribute},
    {"tag", Entity::kTag},
    {"tags", Entity::kTag},
}};

constexpr std::array<std::pair<std::string_view, Entity>, 4> kModelEntities = {{
    {"attributes", Entity::kAttribute},
    {"metrics", Entity::kMetric},
    {"params", Entity::kParam},
    {"tags", Entity::kTag},
}};

template <class Table>
std::optional<Entity> find_entity(const Table& table, std::string_view name) {
    for (const auto& [candidate, entity] : table)
        if (candidate == name) return entity;
    return std::nullopt;
}

Error unknown_entity(Subject subject, std::string_view name) {
    const std::string text = shorten(name);
    switch (subject) {
        case Subject::kRuns:
            return invalid_parameter("Invalid entity type '" + text +
                                     "'. Valid values are ['metric', 'parameter', 'tag', "
                                     "'attribute', 'dataset']");
        case Subject::kExperiments:
            return invalid_parameter("Invalid entity type '" + text +
                                     "'. Valid entity types are ('attribute', 'tag', 'tags')");
        case Subject::kRegisteredModels:
        case Subject::kModelVersions:  // validate_registry.cc reads its own
        case Subject::kLoggedModels: break;
    }
    return invalid_parameter("Invalid entity type: " + python_repr(text) +
                             ". Expected one of ['attributes', 'metrics', 'params', 'tags'].");
}

Result<Entity> entity_of(Subject subject, std::string_view name) {
    std::optional<Entity> entity;
    switch (subject) {
        case Subject::kRuns: {
            std::string_view bare = name;
            strip_quotes(bare, "`");
            entity = find_entity(kRunEntities, bare);
            break;
        }
        case Subject::kExperiments: entity = find_entity(kExperimentEntities, name); break;
        case Subject::kRegisteredModels:
        case Subject::kModelVersions:
        case Subject::kLoggedModels: entity = find_entity(kModelEntities, name); break;
    }
    if (!entity) return unknown_entity(subject, name);
    return *entity;
}

std::string set_of_names(std::span<const Attribute> attributes) {
    std::string text = "{";
    for (const Attribute& attribute : attributes)
        text += (text.size() > 1 ? ", " : "") + python_repr(attribute.name);
    return text + "}";
}

}  // namespace

std::string shorten(std::string_view text) {
    constexpr std::size_t kBytesMax = 500;
    if (text.size() <= kBytesMax) return std::string(text);
    return std::string(cut_to_bytes(text, kBytesMax)) + "...";
}

std::span<const Attribute> searchable_attributes(Subject subject) {
    switch (subject) {
        case Subject::kRuns: return kRunAttributes;
        case Subject::kExperiments: return kExperimentAttributes;
        case Subject::kRegisteredModels:
        case Subject::kModelVersions:  // validate_registry.cc reads its own
        case Subject::kLoggedModels: break;
    }
    return kModelAttributes;
}

std::span<const Attribute> orderable_attributes(Subject subject) {
    const std::span<const Attribute> all = searchable_attributes(subject);
    return subject == Subject::kRuns ? all.first(all.size() - kFilterOnlyRunAttributes) : all;
}

const Attribute* find_attribute(std::span<const Attribute> attributes, std::string_view name) {
    for (const Attribute& attribute : attributes)
        if (attribute.name == name) return &attribute;
    return nullptr;
}

bool strip_quotes(std::string_view& text, std::string_view quotes) {
    if (text.size() < 2 || text.front() != text.back()) return false;
    if (quotes.find(text.front()) == std::string_view::npos) return false;
    text = text.substr(1, text.size() - 2);
    return true;
}

std::string_view entity_name(Entity entity) {
    switch (entity) {
        case Entity::kMetric: return "metric";
        case Entity::kParam: return "parameter";
        case Entity::kTag: return "tag";
        case Entity::kDataset: return "dataset";
        case Entity::kAttribute: break;
    }
    return "attribute";
}

Result<Identifier> parse_identifier(Subject subject, std::string_view text,
                                    std::span<const Attribute> attributes) {
    Identifier identifier;
    std::string_view key = text;
    // A quoted whole is a key; its dots do not split it.
    const bool is_quoted = !text.empty() && (text.front() == '`' || text.front() == '"') &&
                           text.find('.') != std::string_view::npos &&
                           text.find(text.front(), 1) == text.size() - 1;
    // In a filter of logged models `metrics.` is the name of an attribute, and unknown.
    const bool is_whole =
        is_quoted || (subject == Subject::kLoggedModels && text.find('.') + 1 == text.size());
    const std::size_t dot = is_whole ? std::string_view::npos : text.find('.');
    if (dot != std::string_view::npos) {
        TUNE_TRY(entity, entity_of(subject, text.substr(0, dot)));
        identifier.entity = entity;
        key = text.substr(dot + 1);
    }
    const bool is_in_quotes = strip_quotes(key, "'\"");
    identifier.is_quoted = strip_quotes(key, "`") || is_in_quotes;
    identifier.key = key;
    if (identifier.entity == Entity::kAttribute && find_attribute(attributes, key) == nullptr)
        return invalid_parameter("Invalid attribute key '" + shorten(key) +
                                 "' specified. Valid keys are '" + set_of_names(attributes) + "'");
    const bool is_dataset_key = key == "name" || key == "digest" || key == "context";
    if (identifier.entity == Entity::kDataset && !is_dataset_key)
        return invalid_parameter("Invalid dataset key '" + shorten(key) +
                                 "' specified. Valid keys are '{'context', 'digest', 'name'}'");
    return identifier;
}

}  // namespace tune::tracker::search
