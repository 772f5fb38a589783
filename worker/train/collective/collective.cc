// What follows from gather() and broadcast().

#include "worker/train/collective/collective.h"

#include <algorithm>

namespace tune::train {
namespace {

class OwnSum final : public PendingSum {
public:
    explicit OwnSum(std::span<const double> values) : values_(values.begin(), values.end()) {}
    Result<std::vector<double>> wait() override { return std::move(values_); }

private:
    std::vector<double> values_;
};

class Alone final : public Collective {
public:
    std::int64_t rank() const override { return 0; }
    std::int64_t size() const override { return 1; }
    Result<std::vector<std::vector<double>>> gather(std::span<const double> values) override {
        return std::vector<std::vector<double>>{{values.begin(), values.end()}};
    }
    Result<std::unique_ptr<PendingSum>> start_sum(std::span<const double> values) override {
        return std::unique_ptr<PendingSum>(std::make_unique<OwnSum>(values));
    }
    Result<void> broadcast(std::string& /*bytes*/, std::int64_t /*from*/) override { return {}; }
    Result<void> barrier() override { return {}; }
};

}  // namespace

std::unique_ptr<Collective> alone() {
    return std::make_unique<Alone>();
}

Result<void> Collective::sum(std::span<double> values) {
    if (size() == 1) return {};
    TUNE_TRY(started, start_sum(values));
    TUNE_TRY(sums, started->wait());
    std::copy(sums.begin(), sums.end(), values.begin());
    return {};
}

Result<bool> Collective::any(bool own) {
    double count = own ? 1.0 : 0.0;
    TUNE_TRY_VOID(sum({&count, 1}));
    return count > 0.0;
}

Result<void> Collective::agree(const Result<void>& own) {
    if (size() == 1) return own;
    const double code = own ? -1.0 : static_cast<double>(own.error().code);
    TUNE_TRY(codes, gather({&code, 1}));
    const auto failed = std::find_if(codes.begin(), codes.end(),
                                     [](const std::vector<double>& each) { return each[0] >= 0; });
    if (failed == codes.end()) return {};
    const std::int64_t from = failed - codes.begin();
    std::string message = own ? std::string() : own.error().text();
    TUNE_TRY_VOID(broadcast(message, from));
    if (!own) return own;
    return Error{static_cast<Code>(static_cast<int>((*failed)[0])),
                 "rank " + std::to_string(from) + ": " + message};
}

Result<std::string> Collective::from_first(const std::function<Result<std::string>()>& make) {
    Result<std::string> own = is_first() ? make() : Result<std::string>(std::string());
    TUNE_TRY_VOID(agree(own ? Result<void>() : Result<void>(own.error())));
    TUNE_TRY_VOID(broadcast(*own, 0));
    return own;
}

}  // namespace tune::train
