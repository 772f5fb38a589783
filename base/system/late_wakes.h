#pragma once
// Waking threads late: who has many answers to hand out wakes each thread that waits for some of
// them once, when all are there. Woken by the first one it would take the processor at once, and
// the others would come a switch of threads later each.

#include <memory>
#include <vector>

namespace tune {

/// Something whose thread sleeps until there is work.
class Sleeper {
public:
    virtual ~Sleeper() = default;
    /// Thread-safe. A second call before the thread has looked changes nothing.
    virtual void wake() = 0;
};

/// While one lives, what its thread wakes by wake() is woken at its end. REQUIRES: it ends on the
/// thread that made it, before that thread waits for anything that a sleeper does.
class LateWakes {
public:
    LateWakes();
    ~LateWakes();
    LateWakes(const LateWakes&) = delete;
    LateWakes& operator=(const LateWakes&) = delete;

    /// Wakes now, or later if the calling thread has a LateWakes.
    static void wake(std::shared_ptr<Sleeper> sleeper);

private:
    LateWakes* const outer_;
    std::vector<std::shared_ptr<Sleeper>> sleepers_;  // each once
};

}  // namespace tune
