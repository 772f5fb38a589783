#pragma once
// The same question over HTTP: what a client waits for a value to be on disk, and for a look at a
// study, while a model of another study is asked for 1,000 points beside a replay.

#include <filesystem>

/// Prints its rows. `bin_dir`: where `tune` lies.
void measure_over_http(const std::filesystem::path& bin_dir);
