// The OpenAPI description against the route table: every route has one operation, every operation
// a route.

#include "tracker/api/ops/openapi.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/tuner/api/application.h"
#include "tuner/config/study_schema.h"

namespace tune::tuner {
namespace {

class OpenApiTest : public ApplicationTest {
protected:
    Json document_ = parse_json(tracker::openapi_document(parts_)).value();
};

/// "{path...}" is "{path}" in OpenAPI, which has no word for it.
std::string without_dots(std::string pattern) {
    if (const std::size_t dots = pattern.find("...}"); dots != std::string::npos)
        pattern.erase(dots, 3);
    return pattern;
}

std::string lower(std::string_view name) {
    std::string out(name);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

std::string operation_of(tracker::Method method, const std::string& pattern) {
    return lower(tracker::method_name(method)) + " " + without_dots(pattern);
}

bool has_two_prefixes(const std::string& operation) {
    return operation.find(" /api/2.0/") != std::string::npos ||
           operation.find(" /api/3.0/") != std::string::npos;
}

std::string with_ajax_prefix(std::string operation) {
    return operation.replace(operation.find("/api/"), 5, "/ajax-api/");
}

std::set<std::string> operations_of(const Json& document) {
    std::set<std::string> found;
    for (const auto& [path, methods] : document["paths"].items())
        for (const auto& [method, operation] : methods.items()) found.insert(method + " " + path);
    return found;
}

TEST_F(OpenApiTest, EveryRouteHasOneOperationAndEveryOperationARoute) {
    std::set<std::string> routes;
    for (const tracker::Route& route : router_.routes())
        routes.insert(operation_of(route.method, route.pattern));
    const std::set<std::string> operations = operations_of(document_);
    std::set<std::string> described;
    for (const std::string& operation : operations) {
        described.insert(operation);
        if (has_two_prefixes(operation)) described.insert(with_ajax_prefix(operation));
    }
    for (const std::string& route : routes)
        EXPECT_TRUE(described.contains(route))
            << "no operation for " << route << ": describe it in the openapi/ folder beside it";
    for (const std::string& operation : described)
        EXPECT_TRUE(routes.contains(operation)) << "no route for the operation " << operation;
    EXPECT_GT(routes.size(), 100u);
}

void collect_references(const Json& value, std::set<std::string>& found) {
    if (value.is_object() && value.contains("$ref")) found.insert(value["$ref"].get<std::string>());
    for (const Json& child : value)
        if (child.is_structured()) collect_references(child, found);
}

TEST_F(OpenApiTest, EveryReferenceLeadsToAComponentAndEveryComponentIsUsed) {
    std::set<std::string> references;
    collect_references(document_, references);
    std::set<std::string> components;
    for (const auto& [kind, entries] : document_["components"].items())
        for (const auto& [name, entry] : entries.items())
            components.insert("#/components/" + std::string(kind) + "/" + name);
    for (const std::string& reference : references)
        EXPECT_TRUE(components.contains(reference)) << reference;
    for (const std::string& component : components) {
        if (component.find("/schemas/") == std::string::npos) continue;
        EXPECT_TRUE(references.contains(component)) << component << " is used nowhere";
    }
}

/// The body that creates a study has the keys of study.yaml, `name` for `study`, and three of its
/// own; POST .../priority has the range of the key.
TEST_F(OpenApiTest, AStudyIsCreatedWithTheKeysOfItsFile) {
    const Json schema = parse_json(study_schema()).value();
    std::set<std::string> keys = {"name", "request_id", "extend", "replace"};
    for (const auto& [key, value] : schema["properties"].items())
        if (key != "study") keys.insert(key);
    const Json& schemas = document_["components"]["schemas"];
    std::set<std::string> described;
    for (const auto& [key, value] : schemas["StudyInput"]["properties"].items()) {
        described.insert(key);
        EXPECT_TRUE(value.contains("description")) << key;
    }
    EXPECT_EQ(described, keys);
    EXPECT_EQ(schemas["StudyPriority"]["maximum"], schema["properties"]["priority"]["maximum"]);
}

TEST_F(OpenApiTest, OperationIdsAreUnique) {
    std::set<std::string> ids;
    for (const auto& [path, methods] : document_["paths"].items())
        for (const auto& [method, operation] : methods.items())
            EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second)
                << operation["operationId"];
}

TEST_F(OpenApiTest, ThePageNamesEveryPath) {
    const std::string page = tracker::openapi_page(parts_);
    for (const auto& [path, methods] : document_["paths"].items())
        EXPECT_NE(page.find(path), std::string::npos) << path;
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
}

}  // namespace
}  // namespace tune::tuner
