#pragma once
// What every data set seen from Python has in common: one thread at a time, work without the GIL,
// waits that Ctrl-C ends, and a fork that the child survives.

#include <nanobind/nanobind.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "loader/python/errors.h"

namespace tune::loader::python {

/// Longest piece of a wait for data; Python may handle a signal between two of them.
inline constexpr std::chrono::milliseconds kSignalPause(50);

/// What `work` gives; other Python threads run meanwhile.
template <class Work>
auto without_gil(Work&& work) {
    const nanobind::gil_scoped_release release;
    return work();
}

/// What `attempt` gives once it gives something; it waits kSignalPause at the most. Throws what a
/// signal's handler raised.
template <class Attempt>
auto wait_for(Attempt&& attempt) {
    while (true) {
        if (auto found = without_gil(attempt)) return *std::move(found);
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    }
}

/// Keeps a second Python thread out while one is inside: RuntimeError.
class UseLock {
public:
    explicit UseLock(std::atomic_flag& is_busy);
    ~UseLock() { is_busy_.clear(std::memory_order_release); }
    UseLock(const UseLock&) = delete;
    UseLock& operator=(const UseLock&) = delete;

private:
    std::atomic_flag& is_busy_;
};

/// An open Dataset or PackedDataset. After fork() the child has none of the parent's threads: the
/// first call there opens the data set anew, at the place where the parent stood.
template <class Data>
class Held {
public:
    using Open = std::function<Result<std::unique_ptr<Data>>()>;

    /// `open` is called without the GIL. Throws what it says.
    explicit Held(Open open) : open_(std::move(open)) { reopen(); }
    ~Held() { close(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    /// Throws when it was closed, and what opening it anew says.
    [[nodiscard]] Data& data() {
        if (is_closed_) raise(invalid_parameter("the data set was closed"));
        if (process_ != getpid()) {
            // The parent's threads do not exist here and its locks may be held for ever: its object
            // is left alone. What it says of its position is only written by calls like this one.
            const auto state = data_->state();
            static_cast<void>(data_.release());
            is_busy_.clear();
            reopen();
            check(data_->load_state(state));
        }
        return *data_;
    }
    [[nodiscard]] UseLock lock() { return UseLock(is_busy_); }

    void close() {
        is_closed_ = true;
        if (process_ != getpid()) {
            static_cast<void>(data_.release());
            return;
        }
        const nanobind::gil_scoped_release release;  // its threads end first
        data_.reset();
    }

private:
    void reopen() {
        data_ = value_or_raise(without_gil(open_));
        process_ = getpid();
    }

    Open open_;
    std::unique_ptr<Data> data_;
    pid_t process_ = 0;
    bool is_closed_ = false;
    std::atomic_flag is_busy_;
};

}  // namespace tune::loader::python
