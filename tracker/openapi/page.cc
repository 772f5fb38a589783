// The page is generated from the same JSON as /api/openapi.json, so the two cannot differ.
// Everything that comes from a description is escaped.

#include "tracker/openapi/page.h"

#include <algorithm>
#include <cctype>

namespace tune::openapi {
namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '&': out += "&amp;"; break;
            case '"': out += "&quot;"; break;
            default: out.push_back(c);
        }
    }
    return out;
}

std::string type_html(const Schema& schema);

/// The member, or an empty object.
const Schema& member(const Schema& object, const char* name) {
    static const Schema kNone = Schema::object();
    const auto found = object.find(name);
    return found == object.end() ? kNone : *found;
}

std::string range_html(const Schema& schema, const char* low, const char* high) {
    const std::string from = schema.contains(low) ? schema[low].dump() : "";
    const std::string to = schema.contains(high) ? schema[high].dump() : "";
    // The whole range of a 64-bit number says nothing.
    if ((from.empty() && to.empty()) || from.size() > 18) return "";
    return " (" + from + " to " + (to.size() > 18 ? "" : to) + ")";
}

std::string joined(const Schema& list, const char* separator) {
    std::string out;
    for (const Schema& item : list) {
        const std::string text = item.is_string()   ? escaped(item.get<std::string>())
                                 : item.is_object() ? type_html(item)
                                                    : item.dump();
        if (!out.empty()) out += separator;
        out += text;
    }
    return out;
}

std::string reference_html(const std::string& reference) {
    const std::string name = escaped(reference.substr(reference.rfind('/') + 1));
    return "<a href=\"#schema-" + name + "\">" + name + "</a>";
}

/// The plain name of a type: what else is read in its place (null, digits in a text) is detail.
std::string plain_type(const Schema& type) {
    if (type.is_array()) return type.empty() ? "any" : type[0].get<std::string>();
    return type.is_string() ? type.get<std::string>() : "any";
}

std::string type_html(const Schema& schema) {
    if (schema.contains("$ref")) return reference_html(schema["$ref"].get<std::string>());
    if (schema.contains("enum")) return joined(schema["enum"], " | ");
    if (schema.contains("const")) return escaped(schema["const"].dump());
    for (const char* choice : {"anyOf", "oneOf"})
        if (schema.contains(choice)) return joined(schema[choice], " or ");
    const std::string type = plain_type(member(schema, "type"));
    if (type == "array") {
        const std::string of = type_html(member(schema, "items"));
        return "list of " + of + range_html(schema, "minItems", "maxItems");
    }
    if (type == "string") return "text" + range_html(schema, "minLength", "maxLength");
    if (type == "object" && schema.contains("additionalProperties") &&
        schema["additionalProperties"].is_object())
        return "map of " + type_html(schema["additionalProperties"]);
    return type + range_html(schema, "minimum", "maximum");
}

std::string row_html(const std::string& name, bool is_required, const Schema& schema,
                     const std::string& about) {
    std::string out = "<tr><td><code>" + escaped(name) + "</code>";
    if (is_required) out += " <b title=\"required\">*</b>";
    out += "</td><td>" + type_html(schema) + "</td><td>" + escaped(about) + "</td></tr>";
    return out;
}

bool lists(const Schema& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

std::string fields_html(const Schema& schema, const std::string& before = "") {
    std::string out;
    const Schema& required = member(schema, "required");
    for (const auto& [name, field] : member(schema, "properties").items()) {
        out += row_html(before + name, lists(required, name), field,
                        field.value("description", std::string()));
        if (field.contains("properties")) out += fields_html(field, before + name + ".");
        if (field.contains("items") && field["items"].contains("properties"))
            out += fields_html(field["items"], before + name + "[].");
    }
    return out;
}

std::string table_html(const std::string& title, const std::string& rows) {
    if (rows.empty()) return "";
    return "<h4>" + escaped(title) + "</h4><table><tbody>" + rows + "</tbody></table>";
}

std::string content_html(const std::string& title, const Schema& message) {
    std::string out;
    for (const auto& [type, entry] : member(message, "content").items()) {
        const Schema& schema = entry["schema"];
        const std::string rows = fields_html(schema);
        const bool is_json = type == "application/json";
        if (!rows.empty()) {
            out += table_html(title, rows);
        } else {
            out += "<h4>" + escaped(title) + "</h4><p>" +
                   (is_json ? schema.contains("properties") ? "{}" : type_html(schema)
                            : escaped(type)) +
                   "</p>";
        }
    }
    return out;
}

std::string operation_html(const std::string& method, const std::string& path,
                           const Schema& operation) {
    std::string upper = method;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    std::string out = "<details id=\"" + operation["operationId"].get<std::string>() +
                      "\"><summary><span class=\"method\">" + upper + "</span> <code>" +
                      escaped(path) + "</code> " +
                      escaped(operation["summary"].get<std::string>()) + "</summary>";
    if (operation.contains("description"))
        out += "<p>" + escaped(operation["description"].get<std::string>()) + "</p>";
    std::string rows;
    for (const Schema& parameter : member(operation, "parameters"))
        rows += row_html(parameter["name"].get<std::string>(), parameter["required"].get<bool>(),
                         parameter["schema"],
                         "in the " + parameter["in"].get<std::string>() + ". " +
                             parameter.value("description", std::string()));
    out += table_html("Parameters", rows);
    out += content_html("Body", member(operation, "requestBody"));
    std::string errors;
    for (const auto& [status, response] : operation["responses"].items()) {
        if (response.contains("$ref")) {
            errors += (errors.empty() ? "" : ", ") + status;
        } else {
            out += content_html("Answer " + status, response);
        }
    }
    return out + "<p class=\"errors\">Errors: " + errors + "</p></details>";
}

}  // namespace

std::string operations_html(const Description& description) {
    std::string out;
    for (const Schema& tag : description.tags) {
        const auto name = tag["name"].get<std::string>();
        out += "<section><h2>" + escaped(name) + "</h2>";
        if (tag.contains("description"))
            out += "<p>" + escaped(tag["description"].get<std::string>()) + "</p>";
        for (const auto& [path, operations] : description.paths.items())
            for (const auto& [method, operation] : operations.items())
                if (lists(operation["tags"], name)) out += operation_html(method, path, operation);
        out += "</section>\n";
    }
    return out;
}

std::string schemas_html(const Description& description) {
    std::string out;
    for (const auto& [name, schema] : description.schemas.items()) {
        const std::string rows = fields_html(schema);
        out += "<details id=\"schema-" + escaped(name) + "\"><summary><code>" + escaped(name) +
               "</code></summary>" +
               (rows.empty() ? "<p>" + type_html(schema) + "</p>" : table_html("", rows)) +
               "</details>\n";
    }
    return out;
}

}  // namespace tune::openapi
