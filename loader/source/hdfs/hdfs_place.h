#pragma once
// Which cluster of HDFS a URL means, where it answers and who asks.

#include <string>
#include <vector>

#include "loader/source/open_source.h"

namespace tune::loader {

struct HdfsPlace {
    std::string shown = {};  ///< the URL without the slashes at its end
    std::string root = {};   ///< "/data/set"; empty: everything
    /// "http://host:9870" of each name node, of which one is active.
    std::vector<std::string> name_nodes = {};
    /// "user.name=me" or "delegation=TOKEN": goes with every request.
    std::string identity = {};
};

/// webhdfs://HOST:PORT/FOLDER (the port is the web one, 9870 by default), swebhdfs:// likewise by
/// TLS (9871), and hdfs://HOST:PORT/FOLDER, whose port is that of Hadoop's own protocol: where it
/// answers requests of the web is looked up in Hadoop's settings, else it is HOST:9870. A HOST
/// without a port may be a name service of the settings, with several name nodes; without a HOST
/// it is that of fs.defaultFS. options.endpoint takes the place of all of these addresses.
///
/// Who asks: options.token, HADOOP_TOKEN, or the token in the file HADOOP_TOKEN_FILE_LOCATION; else
/// the user that the URL names, HADOOP_USER_NAME, or who runs this process.
///
/// Errors: kInvalidParameterValue for a URL that names no cluster and a file of tokens that cannot
/// be read; kUnauthenticated when that file holds none for this cluster.
[[nodiscard]] Result<HdfsPlace> hdfs_place(const std::string& url, const SourceOptions& options);

}  // namespace tune::loader
