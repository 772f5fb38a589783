#include "loader/tools/convert/splits.h"

#include <charconv>
#include <cmath>
#include <numeric>

namespace tune::loader {
namespace {

Error invalid(std::string_view text, const std::string& reason) {
    return Error{Code::kInvalidParameterValue,
                 "--split " + std::string(text) + ": " + reason + "; write train=0.8,val=0.2"};
}

bool is_folder_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace

Result<std::vector<Split>> parse_splits(std::string_view text) {
    std::vector<Split> splits;
    double total = 0;
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view part = rest.substr(0, rest.find(','));
        rest.remove_prefix(part.size() == rest.size() ? rest.size() : part.size() + 1);
        const std::size_t equals = part.find('=');
        const std::string_view number =
            equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
        Split split{std::string(part.substr(0, equals))};
        const auto parsed =
            std::from_chars(number.data(), number.data() + number.size(), split.fraction);
        if (parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size() ||
            !(split.fraction > 0 && split.fraction <= 1))
            return invalid(text, "'" + std::string(part) + "' has no fraction between 0 and 1");
        if (!is_folder_name(split.name))
            return invalid(text, "'" + split.name + "' cannot be the name of a folder");
        for (const Split& other : splits)
            if (other.name == split.name)
                return invalid(text, "'" + split.name + "' is named twice");
        total += split.fraction;
        splits.push_back(std::move(split));
    }
    if (splits.empty() || std::fabs(total - 1) > 1e-6)
        return invalid(text, "the fractions must add up to 1");
    return splits;
}

SplitDealer::SplitDealer(const std::vector<Split>& splits, std::int64_t row_count,
                         std::uint64_t seed)
    : rows_left_(row_count), rng_(seed) {
    // Shares end at the rounded running totals, so that they add up whatever the fractions are.
    double running = 0;
    std::int64_t given = 0;
    for (const Split& split : splits) {
        running += split.fraction;
        const std::int64_t end =
            &split == &splits.back()
                ? row_count
                : static_cast<std::int64_t>(std::llround(running * static_cast<double>(row_count)));
        counts_.push_back(end - given);
        given = end;
    }
    left_ = counts_;
}

std::size_t SplitDealer::next() {
    std::int64_t draw = rng_.integers(0, rows_left_);
    --rows_left_;
    std::size_t split = 0;
    while (draw >= left_[split]) draw -= left_[split++];
    --left_[split];
    return split;
}

}  // namespace tune::loader
