#pragma once
// tuneloader._core.PackedReader: a PackedDataset seen from Python.

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <atomic>
#include <memory>

#include "loader/packing/packed_dataset.h"
#include "loader/python/arrays.h"

namespace tune::loader::python {

/// As Reader: one Python thread at a time; a child of fork() opens the data set anew and goes on
/// where the parent stood.
class PackedReader {
public:
    /// Dicts made by tuneloader: the options of a data set, and those of the packing.
    PackedReader(const nanobind::dict& options, const nanobind::dict& packing);
    ~PackedReader();
    PackedReader(const PackedReader&) = delete;
    PackedReader& operator=(const PackedReader&) = delete;

    /// The next batch, or None at the end of an epoch. Ctrl-C ends the wait for data.
    [[nodiscard]] nanobind::object next();
    [[nodiscard]] nanobind::object state();
    void load_state(const nanobind::dict& state);
    void start_epoch(std::int64_t epoch);
    [[nodiscard]] PackedDataset& data();
    void close();

private:
    void open();

    DatasetOptions options_;
    TokenPackOptions packing_;
    BatchFormat format_;
    std::unique_ptr<PackedDataset> data_;
    pid_t process_ = 0;
    bool is_closed_ = false;
    std::atomic_flag is_busy_;
};

void define_packed_reader(nanobind::module_& module);

}  // namespace tune::loader::python
