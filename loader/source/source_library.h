#pragma once
// Libraries that are loaded when a URL of their kind is opened: what reads local data only carries
// neither libcurl nor Arrow and its clouds. Each exports one function of type OpenSourceFunction.

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
/// the process. Errors: kNotImplemented with the loader's reason.
[[nodiscard]] Result<void*> library_function(const char* library, const char* function);

}  // namespace tune::loader
