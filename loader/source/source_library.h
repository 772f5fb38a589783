#pragma once
// Libraries that are loaded when a URL of their kind, or a table, is opened: what reads local MDS
// only carries neither libcurl nor Arrow and its clouds. Those of URLs export one function of type
// OpenSourceFunction; tables: loader/rows/table_library.h.

#include <memory>
#include <string>

#include "base/result.h"
#include "loader/source/open_source.h"

namespace tune::loader {

using SourceResult = Result<std::shared_ptr<const ObjectSource>>;
using OpenSourceFunction = void(const std::string& url, const SourceOptions& options,
                                SourceResult& result);

inline constexpr const char* kHttpLibrary = "libtune_http_source.so";
inline constexpr const char* kHttpFunction = "tune_open_http_source";
inline constexpr const char* kObjectStoreLibrary = "libtune_object_store.so";
inline constexpr const char* kObjectStoreFunction = "tune_open_object_store";

/// A function of a library that stands beside the program (or shared object) that contains this
/// code, in ../lib/tune of its folder, or on the system's search path. Loaded once, for the rest of
/// the process. Errors: kNotImplemented with the loader's reason, and where Arrow is missing what
/// to install; `wanted_for` begins that sentence ("URLs of this kind").
[[nodiscard]] Result<void*> library_function(const char* library, const char* function,
                                             const char* wanted_for = "URLs of this kind");

}  // namespace tune::loader
