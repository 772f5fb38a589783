#include "tuner/study/extension.h"

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/study/journal/carry_over.h"

namespace tune::tuner {

Result<void> Extension::add(const Point& point, const Point& fixed) {
    const auto misfit = [this](const Error& error) {
        return Error{Code::kResourceConflict, "trial " + std::to_string(count()) +
                                                  " does not fit the new space: " + error.message};
    };
    Result<Point> carried = carry_over(from_, point, to_);
    if (!carried) return misfit(carried.error());
    const Result<void> kept = check_kept(from_, point, to_, *carried);
    if (!kept) return misfit(kept.error());
    points_.push_back(std::move(*carried));
    fixed_.push_back(fixed.empty()
                         ? Point()
                         : to_.point_from_json(from_.to_json(fixed)).value_or(to_.empty_point()));
    return {};
}

std::pair<Point, Point> Extension::take(std::size_t number) {
    return {std::move(points_[number]), std::move(fixed_[number])};
}

}  // namespace tune::tuner
