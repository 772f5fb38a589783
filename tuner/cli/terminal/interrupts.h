#pragma once
// Ctrl-C and SIGTERM as something to wait for, together with other threads' news.

#include <deque>

namespace tune::cli {

/// One of it at a time; made before threads are started. Trials do not inherit it (handlers end at
/// exec).
class Interrupts {
public:
    enum class Event { kTimeout, kNews, kSignal, kHangup };
    /// What SIGHUP is: one of the signals that end a program, or an event of its own.
    enum class Hangup { kEnds, kIsApart };

    explicit Interrupts(Hangup hangup = Hangup::kEnds);
    /// Puts the default actions back.
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    /// Waits until SIGINT, SIGTERM or SIGHUP has come (each is reported once), wake() was called,
    /// or the time is over (-1: never). One thread waits.
    [[nodiscard]] Event wait(int timeout_ms);
    /// The signal of the last kSignal event; 0: there was none.
    [[nodiscard]] int signal() const { return signal_; }

    /// Ends the wait. Thread-safe; does not block.
    void wake();

private:
    std::deque<int> signals_;  // waiting
    int signal_ = 0;
    bool has_hangup_ = false;
};

/// From now on writing to a pipe that nobody reads fails. By default it ends the program, and an
/// agent whose log lost its reader would leave its trials alone. Trials do not inherit it.
void outlive_log_readers();

}  // namespace tune::cli
