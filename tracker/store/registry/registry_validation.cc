// MLflow's rules and sentences for names in the registry. Version numbers are read as Python's
// int() reads them (white space, a sign, underscores between digits), because clients send what
// they have.

#include "tracker/store/registry/registry_validation.h"

#include <algorithm>
#include <charconv>

#include "base/limits.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/registry/registry_types.h"

namespace tune::tracker {
namespace {

/// What Python's str.strip() takes off, of ASCII.
constexpr std::string_view kBlanks = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
/// Longer numbers are refused by Python's int() too.
constexpr std::size_t kDigitsMax = 4'300;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

Result<void> validate_tag_lengths(const Tag& tag) {
    if (count_characters(tag.key) > kKeyCharsMax) return too_long("key", kKeyCharsMax);
    const bool is_long = tag.value.size() > kRegistryTagValueCharsMax &&
                         count_characters(tag.value) > kRegistryTagValueCharsMax;
    if (is_long && tag.key == kPromptTextTag)
        return invalid_parameter("Prompt text exceeds max length of " +
                                 std::to_string(kRegistryTagValueCharsMax) + " characters.");
    if (is_long) return too_long("value", kRegistryTagValueCharsMax);
    return {};
}

}  // namespace

Result<void> validate_registered_name(std::string_view name) {
    if (name.find_first_not_of(kBlanks) == std::string_view::npos) return missing_value("name");
    if (name.find_first_of("/:") != std::string_view::npos)
        return invalid_parameter("Invalid model name '" + std::string(name) +
                                 "'. Names cannot contain '/' or ':'.");
    return validate_unique_path(name, "name");
}

Result<void> validate_registered_tag(const Tag& tag) {
    TUNE_TRY_VOID(validate_key(tag.key, "key"));
    if (tag.key == kPromptTextTag && count_characters(tag.value) > kRegistryTagValueCharsMax)
        return too_long("value", kRegistryTagValueCharsMax);
    return validate_tag_lengths(tag);
}

Result<void> validate_version_tag(const Tag& tag) {
    TUNE_TRY_VOID(validate_key(tag.key, "key"));
    return validate_tag_lengths(tag);
}

Result<void> validate_alias(std::string_view alias) {
    if (alias.empty()) return invalid_parameter("Registered model alias name cannot be empty.");
    if (!is_of_word_characters(alias, "-"))
        return invalid_parameter(
            "Invalid alias name: '" + std::string(alias) +
            "'. Names may only contain alphanumerics, underscores (_), and dashes (-).");
    if (count_characters(alias) > kAliasCharsMax)
        return too_long("Registered model alias name", kAliasCharsMax);
    return {};
}

Result<void> validate_alias_is_free(std::string_view alias) {
    if (lower_ascii(alias) == "latest")
        return invalid_parameter("'latest' alias name (case insensitive) is reserved.");
    const bool is_version = alias.size() > 1 && (alias[0] == 'v' || alias[0] == 'V') &&
                            std::all_of(alias.begin() + 1, alias.end(), is_digit);
    if (is_version)
        return invalid_parameter("Version alias name '" + std::string(alias) + "' is reserved.");
    return {};
}

Result<VersionNumber> parse_version(std::string_view text) {
    const Error not_integer = invalid_parameter("Parameter 'version' must be an integer, got '" +
                                                std::string(text) + "'.");
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return not_integer;
    std::string_view rest = text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
    const bool is_negative = rest.front() == '-';
    if (is_negative || rest.front() == '+') rest.remove_prefix(1);
    std::string digits;
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const bool is_separator =
            rest[i] == '_' && i > 0 && i + 1 < rest.size() && rest[i - 1] != '_';
        if (!is_digit(rest[i]) && !is_separator) return not_integer;
        if (!is_separator) digits += rest[i];
    }
    if (digits.empty() || digits.size() > kDigitsMax) return not_integer;
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
    VersionNumber version;
    version.text = (is_negative && digits != "0" ? "-" : "") + digits;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), version.number);
    static_cast<void>(end);
    if (error != std::errc() || (is_negative && digits != "0")) version.number = -1;
    return version;
}

}  // namespace tune::tracker
