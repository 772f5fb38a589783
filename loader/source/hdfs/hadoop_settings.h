#pragma once
// What Hadoop's own tools know of a cluster: core-site.xml and hdfs-site.xml.

#include <map>
#include <string>
#include <string_view>

namespace tune::loader {

using HadoopSettings = std::map<std::string, std::string>;

/// The properties of one file. Of text that is no such file as many as there are; variables
/// (${...}) and included files are left as they stand.
[[nodiscard]] HadoopSettings parse_hadoop_settings(std::string_view xml);

/// Those of both files in $HADOOP_CONF_DIR, or else $HADOOP_HOME/etc/hadoop, or else
/// /etc/hadoop/conf. Empty when there are none.
[[nodiscard]] HadoopSettings hadoop_settings();

}  // namespace tune::loader
