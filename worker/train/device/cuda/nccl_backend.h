#pragma once
// NCCL, in a file of its own: its header and c10d's are heavy.

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace tune::train {

/// A group of ranks, each with its own GPU, that meet through `store`.
[[nodiscard]] c10::intrusive_ptr<c10d::Backend> nccl_backend(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    std::chrono::milliseconds timeout);

/// Why NCCL cannot be used: LibTorch has another version of it than this was compiled with, so that
/// structs differ. Empty when it can.
[[nodiscard]] std::string nccl_mismatch();

}  // namespace tune::train
