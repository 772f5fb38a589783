#pragma once
// Libraries that are loaded when a URL of their kind, or a table, is opened: what reads local MDS
// only carries neither libcurl nor Arrow and its clouds. Those of URLs export a function of type
// OpenSourceFunction, and one of type OpenSinkFunction; tables: loader/rows/table_library.h.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "loader/source/object_sink.h"
#include "loader/source/open_source.h"

namespace tune::loader {

using SourceResult = Result<std::shared_ptr<const ObjectSource>>;
using OpenSourceFunction = void(const std::string& url, const SourceOptions& options,
                                SourceResult& result);

using SinkResult = Result<std::shared_ptr<const ObjectSink>>;
using OpenSinkFunction = void(const std::string& url, const SourceOptions& options,
                              SinkResult& result);

/// A kind of URL, and what reads and writes it.
struct UrlKind {
    std::string_view scheme;
    const char* library;
    const char* source;
    const char* sink;  ///< nullptr: it can only be read
};

/// The kind of a scheme in lower case. Google's storage is read by its S3 address when GCS_KEY and
/// GCS_SECRET are set, and HDFS through libhdfs when TUNE_HDFS_DRIVER says so. Errors:
/// kInvalidParameterValue that names `url` and the kinds that there are.
[[nodiscard]] Result<UrlKind> url_kind(std::string_view scheme, std::string_view url);

/// A function of a library that stands beside the program (or shared object) that contains this
/// code, in ../lib/tune of its folder, or on the system's search path. Loaded once, for the rest of
/// the process. Errors: kNotImplemented with the loader's reason, and where Arrow is missing what
/// to install; `wanted_for` begins that sentence ("URLs of this kind").
[[nodiscard]] Result<void*> library_function(const char* library, const char* function,
                                             const char* wanted_for = "URLs of this kind");

}  // namespace tune::loader
