#include "worker/train/step/profile_request.h"

#include <cstdio>

#include "base/system/file.h"

namespace tune::train {
namespace {

constexpr std::chrono::milliseconds kPeriod{100};
constexpr std::size_t kBytesMax = 64;

}  // namespace

std::optional<std::int64_t> ProfileRequest::look(std::chrono::steady_clock::time_point now) {
    if (file_.empty() || now < due_) return std::nullopt;
    due_ = now + kPeriod;
    const Result<std::string> text = read_file(file_, kBytesMax);
    long long turn = 0;
    long long steps = 0;
    if (!text || std::sscanf(text->c_str(), "%lld %lld", &turn, &steps) != 2) return std::nullopt;
    if (turn <= turn_ || steps < 1) return std::nullopt;
    turn_ = turn;
    return steps;
}

}  // namespace tune::train
