#include "loader/source/hdfs/hadoop_settings.h"

#include <algorithm>

#include "base/system/file.h"
#include "base/text/text.h"
#include "loader/source/cloud/cloud_text.h"

namespace tune::loader {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;

std::string without_comments(std::string_view xml) {
    std::string text;
    for (std::size_t at = 0; at < xml.size();) {
        const std::size_t begin = std::min(xml.find("<!--", at), xml.size());
        text += xml.substr(at, begin - at);
        const std::size_t end = xml.find("-->", begin);
        at = end == std::string_view::npos ? xml.size() : end + 3;
    }
    return text;
}

std::string settings_folder() {
    const std::string folder = cloud_setting({"HADOOP_CONF_DIR"});
    if (!folder.empty()) return folder;
    const std::string home = cloud_setting({"HADOOP_HOME"});
    return home.empty() ? "/etc/hadoop/conf" : home + "/etc/hadoop";
}

}  // namespace

HadoopSettings parse_hadoop_settings(std::string_view xml) {
    HadoopSettings settings;
    const std::string text = without_comments(xml);
    for (std::size_t at = text.find("<property>"); at != std::string::npos;) {
        const std::size_t end = std::min(text.find("</property>", at), text.size());
        const std::string_view property = std::string_view(text).substr(at, end - at);
        const std::string name(trimmed(xml_text(property, "name")));
        if (!name.empty()) settings[name] = trimmed(xml_text(property, "value"));
        at = text.find("<property>", end);
    }
    return settings;
}

HadoopSettings hadoop_settings() {
    const std::string folder = settings_folder();
    HadoopSettings settings;
    for (const char* const name : {"/hdfs-site.xml", "/core-site.xml"})
        if (const Result<std::string> text = read_file(folder + name, kFileBytesMax))
            settings.merge(parse_hadoop_settings(*text));
    return settings;
}

}  // namespace tune::loader
