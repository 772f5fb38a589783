#pragma once
// What the requests to Google, Azure and HDFS have in common.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "loader/source/http/http_request.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// The first of these variables that is set and not empty.
[[nodiscard]] std::string cloud_setting(std::initializer_list<const char*> names);

/// A text of a JSON object; empty when it has none of that name.
[[nodiscard]] std::string text_member(const Json& json, const char* name);

/// A number of 64 bits, which Google writes as a text (emulators do not always); 0 when it has
/// none.
[[nodiscard]] std::uint64_t number_member(const Json& json, const char* name);

/// "a=1&b=2", encoded.
[[nodiscard]] std::string form_text(const std::vector<std::pair<std::string, std::string>>& fields);

/// The text between <name> and </name>; an empty one when there is none. Of XML as services write
/// it for programs, which has no attributes here and no comments.
[[nodiscard]] std::string xml_text(std::string_view xml, const std::string& name);

/// "gs://BUCKET/a/b/" taken apart, percent signs and all: keys may hold any character.
struct CloudPlace {
    std::string shown = {};   ///< without the slashes at the end
    std::string bucket = {};  ///< for Azure with "@ACCOUNT..." still in it
    std::string root = {};    ///< the key of the URL itself; may be empty
};
[[nodiscard]] Result<CloudPlace> cloud_place(const std::string& url);

/// The key of a path beneath `place`. Errors: kInvalidParameterValue for one that leads out of it.
[[nodiscard]] Result<std::string> key_of(const CloudPlace& place, std::string_view path);
/// For messages.
[[nodiscard]] std::string name_of(const CloudPlace& place, std::string_view path);

/// What is beneath `folder`, out of everything whose key begins with its own. `find` calls its
/// argument with each key. Where there is nothing, `folder` itself may be an object: `stat`.
using FoundObject = std::function<void(std::string key, std::uint64_t bytes, std::string version)>;
[[nodiscard]] Result<std::vector<ObjectInfo>> list_beneath(
    const CloudPlace& place, std::string_view folder,
    const std::function<Result<void>(const std::string& prefix, const FoundObject&)>& find,
    const std::function<Result<ObjectInfo>(std::string_view)>& stat);

}  // namespace tune::loader
