#pragma once
// Rows of option tables that engines need besides the common types: durations, lists of texts, and
// texts of several lines. Include after <nlohmann/json.hpp>.

#include <string>
#include <utility>
#include <vector>

#include "tuner/options/duration.h"
#include "tuner/options/fields.h"
#include "tuner/options/option_table.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"

namespace tune::launch {

template <class T>
void add_duration(tuner::TableOf<T>& table, std::string name, std::int64_t T::*field,
                  std::string help) {
    table.custom(
        name,
        {.type = "duration",
         .schema = R"({"$ref": "#/definitions/duration"})",
         .api = "text",
         .read = [name, field](const tuner::Fields& fields,
                               T& settings) { return fields.duration(name, settings.*field); },
         .write = [name, field](
                      const T& settings,
                      Json& json) { json[name] = tuner::duration_text(settings.*field); }},
        std::move(help));
}

/// A list of texts, or one text.
template <class T>
void add_texts(tuner::TableOf<T>& table, std::string name, std::vector<std::string> T::*field,
               std::size_t count_max, std::string help) {
    const auto read = [name, field, count_max](const tuner::Fields& fields,
                                               T& settings) -> Result<void> {
        const tuner::Node* node = fields.find(name);
        if (node == nullptr) return {};
        const std::string path = fields.path_of(name);
        std::vector<std::string> texts;
        if (node->type == tuner::Node::Type::kString) {
            texts.push_back(node->text);
        } else if (node->type != tuner::Node::Type::kList || node->items.size() > count_max) {
            return tuner::error_at(node->place, path,
                                   "expected a list of at most " + std::to_string(count_max) +
                                       " texts, found " + tuner::describe(*node));
        }
        for (const tuner::Node& item : node->items) {
            TUNE_TRY_VOID(tuner::check_text(item, path, 4096));
            texts.push_back(item.text);
        }
        settings.*field = std::move(texts);
        return {};
    };
    table.custom(
        name,
        {.type = "list of texts",
         .schema = R"({"type": ["string", "array"]})",
         .api = "list of text",
         .read = read,
         .write = [name, field](const T& settings, Json& json) { json[name] = settings.*field; }},
        std::move(help));
}

/// A text that may have several lines.
template <class T>
void add_lines(tuner::TableOf<T>& table, std::string name, std::string T::*field,
               std::size_t bytes_max, std::string help) {
    const auto read = [name, field, bytes_max](const tuner::Fields& fields,
                                               T& settings) -> Result<void> {
        const tuner::Node* node = fields.find(name);
        if (node == nullptr) return {};
        if (node->type != tuner::Node::Type::kString || node->text.size() > bytes_max ||
            node->text.find('\0') != std::string::npos)
            return tuner::error_at(node->place, fields.path_of(name),
                                   "expected a text, found " + tuner::describe(*node));
        settings.*field = node->text;
        return {};
    };
    table.custom(
        name,
        {.type = "text",
         .schema = R"({"type": "string"})",
         .api = "text",
         .read = read,
         .write = [name, field](const T& settings, Json& json) { json[name] = settings.*field; }},
        std::move(help));
}

/// true or false.
template <class T>
void add_flag(tuner::TableOf<T>& table, std::string name, bool T::*field, std::string help) {
    const auto read = [name, field](const tuner::Fields& fields, T& settings) -> Result<void> {
        const tuner::Node* node = fields.find(name);
        if (node == nullptr) return {};
        if (node->type != tuner::Node::Type::kBool)
            return tuner::error_at(node->place, fields.path_of(name),
                                   "expected true or false, found " + tuner::describe(*node));
        settings.*field = node->boolean;
        return {};
    };
    table.custom(
        name,
        {.type = "true or false",
         .schema = R"({"type": "boolean"})",
         .api = "bool",
         .read = read,
         .write = [name, field](const T& settings, Json& json) { json[name] = settings.*field; }},
        std::move(help));
}

}  // namespace tune::launch
