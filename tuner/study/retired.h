#pragma once
// Studies that were removed, or that never reached the disk: what is under way still names them.
//
// Whatever is put off to another thread or to the store's answer takes hold(), which marks it as of
// the present generation. A generation ends with the last of its holders and not before all older
// ones; so a study that nobody has named since a generation is free once that one has ended.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tuner/study/study.h"

namespace tune::tuner {

/// Not thread-safe: part of what the lock of Studies guards, but for the holds, which may end on
/// any thread.
class Retired {
public:
    using Hold = std::shared_ptr<const void>;

    /// For as long as this lives, nothing is freed that is named now.
    [[nodiscard]] Hold hold() const { return generation_; }

    void add(std::unique_ptr<Study> study);
    [[nodiscard]] bool contains(const Study& study) const;
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    /// Something that is put off from now on names the study. Of others: nothing.
    void touch(const Study& study);
    void each(const std::function<void(const Study&)>& look) const;

    /// Takes out what is free, unless `is_named` knows better. O(size).
    [[nodiscard]] std::vector<std::unique_ptr<Study>> take_free(
        const std::function<bool(const Study&)>& is_named);

private:
    /// Each keeps the next one alive, so that none ends before an older one.
    struct Generation {
        std::shared_ptr<Generation> next = {};
    };
    struct One {
        std::unique_ptr<Study> study;
        std::weak_ptr<Generation> last;  ///< in which it was named last
    };

    std::vector<One> all_;
    std::shared_ptr<Generation> generation_ = std::make_shared<Generation>();
};

}  // namespace tune::tuner
