// From points to rows and back. A number becomes the share of its prior that lies below it, so that
// one unit of a feature is one unit of belief, whatever the parameter's range and scale; a category
// stays an index. point() walks parents before children, so that what a row says of a switched-off
// parameter is dropped, and row(point(r)) is the row of a point that a trial can have.

#include "tuner/sampler/gp/encoding.h"

#include <algorithm>

namespace tune::tuner {

Encoding::Encoding(const Space& space) : space_(&space) {
    for (std::size_t i = 0; i < space.size(); ++i)
        if (!space[i].is_single()) features_.push_back({i, Axis::of(space[i])});
    feature_of_.assign(space.size(), features_.size());
    for (std::size_t i = 0; i < features_.size(); ++i) feature_of_[features_[i].parameter] = i;
}

std::vector<double> Encoding::row(const Point& point) const {
    std::vector<double> row(features_.size());
    for (std::size_t i = 0; i < features_.size(); ++i) {
        const Feature& feature = features_[i];
        const double value = point[feature.parameter];
        if (feature.is_category()) {
            row[i] = is_active(value) ? value : kOffCategory;
        } else {
            row[i] = is_active(value) ? feature.axis.share_below(feature.axis.position(value))
                                      : kOffNumber;
        }
    }
    return row;
}

Point Encoding::point(const std::vector<double>& row) const {
    Point point = space_->empty_point();
    for (const std::size_t index : space_->parents_first()) {
        if (!space_->active(index, point)) continue;
        const Parameter& parameter = (*space_)[index];
        if (parameter.is_single()) {
            point[index] = parameter.low;
            continue;
        }
        const std::size_t at = feature_of_[index];
        const Axis& axis = features_[at].axis;
        point[index] = features_[at].is_category()
                           ? std::clamp(row[at], 0.0, axis.categories - 1)
                           : parameter.snap(axis.value(axis.quantile(row[at])));
    }
    return point;
}

double Encoding::feature_value(std::size_t feature, double internal) const {
    const Axis& axis = features_[feature].axis;
    const double value = (*space_)[features_[feature].parameter].snap(internal);
    return axis.share_below(axis.position(value));
}

}  // namespace tune::tuner
