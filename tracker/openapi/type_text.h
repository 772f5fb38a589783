#pragma once
// The short way in which our API descriptions write types, as JSON Schema (2020-12, which is what
// OpenAPI 3.1 uses).
//
//   text  text(1..250)  integer  integer(1..1000)  number  real  boolean  any  object  binary
//   enum(A|B)  list of TYPE  list(1..20) of TYPE  map of TYPE  nullable TYPE  Name
//
// `real` is a number or "NaN", "Infinity", "-Infinity". `Name` is a schema of some description. A
// `!` at the end says that the field must be there; ` -- ` begins its explanation.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tune::openapi {

/// Keeps the order in which things were written.
using Schema = nlohmann::ordered_json;

/// Who reads or writes a value, which decides what else than the plain JSON type is right.
enum class Dialect {
    /// We write it: exactly this type.
    kAnswer,
    /// We read it as protobuf's JSON: null is absent, numbers may be strings, and a required text
    /// or list may not be empty.
    kProtobuf,
    /// We read it as plain JSON: null is absent.
    kStrict,
    /// We read it from the query: text on the wire.
    kQuery,
};

struct Field {
    Schema schema;
    bool is_required = false;
};

/// Throws std::invalid_argument with a sentence that names the error.
[[nodiscard]] Field read_field(std::string_view text, Dialect dialect);

/// `object`, as a field that may be left out or null where `dialect` says so.
[[nodiscard]] Schema optional_schema(Schema schema, Dialect dialect);

}  // namespace tune::openapi
