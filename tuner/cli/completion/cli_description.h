#pragma once

#include "tuner/cli/completion/verb_text.h"

namespace CLI {
class App;
}

namespace tune::cli {

/// What the parser knows, as text.
[[nodiscard]] VerbText describe(const CLI::App& app);

}  // namespace tune::cli
