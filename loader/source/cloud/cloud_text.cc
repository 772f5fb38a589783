// JSON, XML and forms as services write them for programs, read with no more than that takes: what
// a service left out, or wrote in another type, is an empty text or 0, and the caller, who knows
// what was asked for, says what that means.

#include "loader/source/cloud/cloud_text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text/percent.h"

namespace tune::loader {

std::string cloud_setting(std::initializer_list<const char*> names) {
    for (const char* const name : names)
        if (const char* const value = std::getenv(name); value && *value) return value;
    return {};
}

std::string text_member(const Json& json, const char* name) {
    if (!json.is_object()) return {};
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_member(const Json& json, const char* name) {
    const auto found = json.find(name);
    std::uint64_t number = 0;
    if (found == json.end()) return 0;
    if (found->is_number_unsigned()) return found->get<std::uint64_t>();
    const std::string text = text_member(json, name);
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string form_text(const std::vector<std::pair<std::string, std::string>>& fields) {
    std::string text;
    for (const auto& [name, value] : fields)
        text += (text.empty() ? "" : "&") + percent_encode(name, false) + "=" +
                percent_encode(value, false);
    return text;
}

std::string xml_text(std::string_view xml, const std::string& name) {
    const std::string open = "<" + name + ">";
    const std::size_t begin = xml.find(open);
    if (begin == std::string_view::npos) return {};
    const std::size_t end = xml.find("</" + name + ">", begin);
    if (end == std::string_view::npos) return {};
    std::string text(xml.substr(begin + open.size(), end - begin - open.size()));
    constexpr std::pair<std::string_view, char> kEntities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}};
    std::string plain;
    for (std::size_t i = 0; i < text.size();) {
        const auto* const entity = std::ranges::find_if(kEntities, [&](const auto& each) {
            return std::string_view(text).substr(i).starts_with(each.first);
        });
        plain += entity == std::end(kEntities) ? text[i] : entity->second;
        i += entity == std::end(kEntities) ? 1 : entity->first.size();
    }
    return plain;
}

Result<CloudPlace> cloud_place(const std::string& url) {
    CloudPlace place{.shown = url};
    while (place.shown.ends_with('/')) place.shown.pop_back();
    const std::size_t begin = std::min(place.shown.find("://"), place.shown.size());
    const std::string rest = begin < place.shown.size() ? place.shown.substr(begin + 3) : "";
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    place.bucket = rest.substr(0, slash);
    if (slash < rest.size()) place.root = rest.substr(slash + 1);
    if (place.bucket.empty()) return invalid_parameter("'" + url + "' names no bucket");
    return place;
}

Result<std::string> key_of(const CloudPlace& place, std::string_view path) {
    if (!is_object_path(path))
        return invalid_parameter("the path '" + std::string(path) + "' leads out of '" +
                                 place.shown + "'");
    if (path.empty() || place.root.empty()) return place.root + std::string(path);
    return place.root + "/" + std::string(path);
}

std::string name_of(const CloudPlace& place, std::string_view path) {
    return place.shown + (path.empty() ? "" : "/") + std::string(path);
}

Result<std::vector<ObjectInfo>> list_beneath(
    const CloudPlace& place, std::string_view folder,
    const std::function<Result<void>(const std::string& prefix, const FoundObject&)>& find,
    const std::function<Result<ObjectInfo>(std::string_view)>& stat) {
    TUNE_TRY(key, key_of(place, folder));
    const std::string prefix = key.empty() ? "" : key + "/";
    const std::size_t root = place.root.empty() ? 0 : place.root.size() + 1;
    std::vector<ObjectInfo> objects;
    TUNE_TRY_VOID(find(prefix, [&](std::string found, std::uint64_t bytes, std::string version) {
        // A key that ends with a slash is a folder as some tools mark it.
        if (found.size() > root && found.starts_with(prefix) && !found.ends_with('/'))
            objects.push_back({found.substr(root), bytes, std::move(version)});
    }));
    if (objects.empty()) {  // one file, or nothing at all
        TUNE_TRY(object, stat(folder));
        objects.push_back(std::move(object));
    }
    std::ranges::sort(objects, {}, &ObjectInfo::path);
    return objects;
}

}  // namespace tune::loader
