#pragma once
// Programs that are started, waited for and read: the checks run each step in one, so that a crash
// or a hang of a driver is a result and not the end.

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::train {

/// How a program ended and what it wrote.
struct ChildEnd {
    int exit_code = -1;  ///< or -1 when a signal ended it
    int signal = 0;
    bool timed_out = false;  ///< it was killed for that
    std::string output = {};
    std::string errors = {};

    [[nodiscard]] bool ok() const { return exit_code == 0; }
    /// "exit code 3", "signal 11", "no end within 60 s", with the last line of `errors`.
    [[nodiscard]] std::string text() const;
};

/// One started program, leader of its own process group, which dies with this object.
class ChildProcess {
public:
    /// `environment` is added to this process's. Errors: kInternalError with the system's reason.
    [[nodiscard]] static Result<ChildProcess> start(
        const std::vector<std::string>& arguments,
        const std::map<std::string, std::string>& environment = {});
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&&) = delete;
    ~ChildProcess();

    /// Gives it more to read. Errors: kInternalError when it does not any more.
    [[nodiscard]] Result<void> write(const std::string& text) const;
    /// Nothing more will come.
    void close_input();
    /// Sends a signal to the whole group.
    void signal(int number) const;
    /// Returns once `output` holds so many lines, or the program has ended; false after `limit`.
    [[nodiscard]] bool wait_lines(std::size_t count, std::chrono::milliseconds limit);
    /// Reads to the end; kills the group after `limit`.
    [[nodiscard]] ChildEnd wait(std::chrono::milliseconds limit);

private:
    ChildProcess(pid_t pid, int input_fd, int output_fd, int errors_fd);
    /// Reads what is there until a deadline, the end, or a number of lines.
    bool read_until(std::chrono::steady_clock::time_point deadline, std::size_t lines);

    pid_t pid_;
    int input_fd_;
    int output_fd_;
    int errors_fd_;
    std::size_t lines_ = 0;
    ChildEnd end_;
};

/// This program's own file.
[[nodiscard]] std::string own_program();

}  // namespace tune::train
