#pragma once
// One open file descriptor and its owner.

#include <utility>

namespace tune {

/// Closes its descriptor when destroyed. -1 means none. Not thread-safe.
class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    /// Closes the descriptor and owns `fd` from then on.
    void reset(int fd = -1);

private:
    int fd_ = -1;
};

}  // namespace tune
