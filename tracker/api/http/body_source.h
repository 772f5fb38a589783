#pragma once
// An answer's body that is made piece by piece while the client takes it: answers of any length in
// bounded memory.

#include <functional>
#include <string>

#include "base/result.h"

namespace tune::tracker {

/// Destroyed early when the client goes away. One read is under way at a time; the object may be
/// destroyed while it is, so whoever works on one keeps what it needs.
class BodySource {
public:
    virtual ~BodySource() = default;
    /// Gives the next piece to `done`, once, from any thread; an empty one is the end. After an
    /// error the connection is broken off, so that the client cannot take the part for the whole.
    /// Runs on a network thread and must not block.
    virtual void read(std::function<void(Result<std::string>)> done) = 0;
};

}  // namespace tune::tracker
