#pragma once
// L-BFGS (Nocedal and Wright 2006, algorithm 7.5) with a backtracking line search, for the few
// parameters of a kernel. Private to tuner/sampler.

#include <Eigen/Core>
#include <algorithm>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace tune::tuner {

/// Evaluations of one fit. The evidence is flat around its optimum; more do not find better points.
inline constexpr int kFitEvaluationsMax = 30;

/// Two-loop recursion over the last few steps.
class LbfgsMemory {
public:
    [[nodiscard]] Eigen::VectorXd direction(const Eigen::VectorXd& gradient) const {
        Eigen::VectorXd q = -gradient;
        std::vector<double> shares(steps_.size());
        for (std::size_t i = steps_.size(); i-- > 0;) {
            const auto& [step, change] = steps_[i];
            shares[i] = step.dot(q) / step.dot(change);
            q -= shares[i] * change;
        }
        if (!steps_.empty()) {
            const auto& [step, change] = steps_.back();
            q *= step.dot(change) / change.dot(change);
        }
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const auto& [step, change] = steps_[i];
            q += (shares[i] - change.dot(q) / step.dot(change)) * step;
        }
        return q;
    }

    void remember(Eigen::VectorXd step, Eigen::VectorXd change) {
        if (step.dot(change) <= 1e-10 * change.squaredNorm()) return;  // no curvature to learn from
        steps_.emplace_back(std::move(step), std::move(change));
        if (steps_.size() > 8) steps_.pop_front();
    }

private:
    std::deque<std::pair<Eigen::VectorXd, Eigen::VectorXd>> steps_;
};

/// Moves `x` to lower values of `cost(x, gradient)`, which may be infinite. Returns the cost there.
template <class Cost>
double minimize(const Cost& cost, Eigen::VectorXd& x, int evaluations_max) {
    Eigen::VectorXd gradient;
    double value = cost(x, gradient);
    LbfgsMemory memory;
    for (int used = 1; used < evaluations_max;) {
        Eigen::VectorXd direction = memory.direction(gradient);
        const double longest = direction.cwiseAbs().maxCoeff();
        if (!(longest > 0)) break;
        // In logarithms: no parameter changes by more than a factor of e^2 in one step.
        double length = std::min(1.0, 2.0 / longest);
        const double slope = gradient.dot(direction);
        if (slope > -1e-6) break;
        Eigen::VectorXd next_gradient;
        Eigen::VectorXd next;
        double next_value = std::numeric_limits<double>::infinity();
        while (used < evaluations_max) {
            next = x + length * direction;
            next_value = cost(next, next_gradient);
            ++used;
            if (next_value <= value + 1e-4 * length * slope) break;
            length *= 0.3;
        }
        if (!(next_value < value)) break;
        const bool is_flat = value - next_value < 1e-4;
        memory.remember(next - x, next_gradient - gradient);
        x = std::move(next);
        gradient = std::move(next_gradient);
        value = next_value;
        if (is_flat) break;
    }
    return value;
}

}  // namespace tune::tuner
