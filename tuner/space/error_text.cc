#include "tuner/space/error_text.h"

#include <algorithm>
#include <cctype>

#include "base/text/utf8.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kShownMax = 60;
constexpr std::size_t kListedMax = 30;

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`, case ignored.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> previous(b.size() + 1);
    std::vector<std::size_t> current(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced =
                previous[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                current[j] = std::min(current[j], before[j - 2] + 1);
        }
        std::swap(before, previous);
        std::swap(previous, current);
    }
    return previous[b.size()];
}

}  // namespace

std::string shortened(std::string_view text) {
    if (text.size() <= kShownMax) return std::string(text);
    return std::string(cut_to_bytes(text, kShownMax - 3)) + "...";
}

std::string in_quotes(std::string_view text) {
    std::string shown = shortened(text);
    for (char& c : shown)
        if (static_cast<unsigned char>(c) < 0x20) c = '?';
    return "'" + shown + "'";
}

std::string listed(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size() && i < kListedMax; ++i) {
        if (i != 0) text += ", ";
        text += shortened(words[i]);
    }
    if (words.size() > kListedMax)
        text += " and " + std::to_string(words.size() - kListedMax) + " more";
    return text;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    if (word.empty() || word.size() > 100) return {};
    const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
    std::size_t best_distance = limit + 1;
    const std::string* best = nullptr;
    for (const std::string& candidate : known) {
        const std::size_t gap = candidate.size() > word.size() ? candidate.size() - word.size()
                                                               : word.size() - candidate.size();
        if (gap >= best_distance) continue;
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
            best_distance = distance;
            best = &candidate;
        }
    }
    return best == nullptr ? std::string() : "; did you mean " + in_quotes(*best) + "?";
}

std::string known_words(std::string_view word, const std::vector<std::string>& known) {
    if (known.empty()) return "; there are none";
    const std::string near = did_you_mean(word, known);
    return near.empty() ? "; known: " + listed(known) : near + " Known: " + listed(known);
}

}  // namespace tune::tuner
