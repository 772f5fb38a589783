#pragma once
// Ports for attempts of several processes, found before such an attempt is leased, since the other
// machines must know them when they start.

#include <map>
#include <mutex>
#include <set>

#include "base/system/unique_fd.h"

namespace tune::worker {

/// Blocks of tuner::kGangPorts ports. They lie below those that the system gives to connections, so
/// that only a program that asks for such a port by its number could take one; agents of one
/// machine keep each other's blocks apart by a name that the kernel gives to one of them (an
/// abstract socket, of the same network namespace as the ports). Thread-safe.
class GangPorts {
public:
    /// The first port of the block that the next attempt gets; the same until one is promised it.
    /// 0: there is no free block.
    [[nodiscard]] int next();
    /// An attempt was leased with this block, and will take it: the next one gets another.
    void promise(int port);
    /// Gives a block to an attempt: that of the port `wanted`, if it was promised; else, if
    /// `or_other`, another one. 0: there is none.
    [[nodiscard]] int take(int wanted, bool or_other);
    /// The attempt has ended.
    void give_back(int port);

private:
    int find();

    std::mutex mutex_;
    int next_ = 0;                  // guarded by mutex_; 0: to be found
    std::set<int> promised_;        // guarded by mutex_
    std::map<int, UniqueFd> held_;  // guarded by mutex_: the names, by first port
};

}  // namespace tune::worker
