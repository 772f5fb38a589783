#pragma once
// A source that can be written to as well.

#include <span>
#include <string_view>

#include "loader/source/object_source.h"

namespace tune::loader {

class WritableSource : public ObjectSource {
public:
    /// Replaces the object, which is then there whole or as it was. Errors: those of stat().
    [[nodiscard]] virtual Result<void> write(std::string_view path,
                                             std::span<const std::byte> bytes) const = 0;
};

}  // namespace tune::loader
