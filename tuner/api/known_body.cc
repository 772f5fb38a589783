#include "tuner/api/known_body.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

/// Whether `key` is `name`, or its camelCase.
bool spells(std::string_view key, std::string_view name) {
    if (key == name) return true;
    std::size_t at = 0;
    for (std::size_t i = 0; i < name.size(); ++i, ++at) {
        const bool is_upper = name[i] == '_' && i + 1 < name.size();
        if (is_upper) ++i;
        const char wanted = is_upper ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
        if (at >= key.size() || key[at] != wanted) return false;
    }
    return at == key.size();
}

}  // namespace

Result<tracker::Message> read_known_body(const tracker::Request& request,
                                         std::initializer_list<std::string_view> known) {
    TUNE_TRY(message, tracker::Message::read(request));
    for (const auto& [key, value] : message.object().items()) {
        const bool is_known = std::any_of(known.begin(), known.end(),
                                          [&key = key](auto name) { return spells(key, name); });
        if (!is_known)
            return Error{
                Code::kInvalidParameterValue,
                "unknown key " + in_quotes(key) +
                    known_words(key, std::vector<std::string>(known.begin(), known.end()))};
    }
    return message;
}

std::optional<std::int64_t> whole_within(const Json& value, std::int64_t least, std::int64_t most) {
    if (!value.is_number_integer()) return std::nullopt;
    const bool is_beyond = value.is_number_unsigned() &&
                           value.get<std::uint64_t>() >
                               static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t number = is_beyond ? 0 : value.get<std::int64_t>();
    if (is_beyond || number < least || number > most) return std::nullopt;
    return number;
}

}  // namespace tune::tuner
