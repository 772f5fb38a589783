#pragma once
// A description file of one group of routes (tracker/api/openapi/*.yaml and the like), as OpenAPI.
//
//   tag: Runs                         the group's title
//   about: One sentence.
//   reads: protobuf                   how bodies are read: protobuf (default) or strict
//   schemas: {Tag: {key: text!}}      what we write, under their names
//   inputs: {TagInput: {key: text!}}  what we read
//   operations:
//     POST /api/2.0/mlflow/runs/create:
//       summary: Create a run
//       about: More, when a line is not enough.
//       path: {run_id: text}          parts of the path; text(1..) when not named
//       query: {run_id: text!}
//       request: {experiment_id: text!, tags: list of TagInput}
//       upload: application/octet-stream       instead of `request`: a body of bytes
//       answer: {run: Run!}           or a media type, or answers: {200: ..., 304: none}
//       errors: [404]                 beside those that every route may give
//
// A type is a text of type_text.h, an object of such fields (`name!: {...}` for a required object,
// `"*": TYPE` for any other field), or {json_schema: {...}} for JSON Schema as it is.

#include <filesystem>
#include <string>
#include <vector>

#include "tracker/openapi/type_text.h"

namespace tune::openapi {

/// Several description files together.
struct Description {
    Schema tags = Schema::array();
    Schema paths = Schema::object();
    Schema schemas = Schema::object();
};

/// Adds the file to `description`. Throws std::runtime_error "file:line: what" for anything that is
/// not as above, and for a path or schema that is there already.
void read_description(const std::filesystem::path& file, Description& description);

/// Statuses that any route may answer: "400", "403", "429".
[[nodiscard]] const std::vector<std::string>& common_errors();

}  // namespace tune::openapi
