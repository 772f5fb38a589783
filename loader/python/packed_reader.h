#pragma once
// tuneloader._core.PackedReader: a PackedDataset seen from Python.

#include <nanobind/nanobind.h>

#include "loader/packing/packed_dataset.h"
#include "loader/python/arrays.h"
#include "loader/python/held.h"

namespace tune::loader::python {

/// As Reader: one Python thread at a time, and it survives fork().
class PackedReader {
public:
    /// Dicts made by tuneloader: the options of a data set, and those of the packing.
    PackedReader(const nanobind::dict& options, const nanobind::dict& packing);

    /// The next batch, or None at the end of an epoch. Ctrl-C ends the wait for data.
    [[nodiscard]] nanobind::object next();
    [[nodiscard]] nanobind::object state();
    void load_state(const nanobind::dict& state);
    void start_epoch(std::int64_t epoch);
    [[nodiscard]] PackedDataset& data() { return held_.data(); }
    void close() { held_.close(); }

private:
    BatchFormat format_;
    Held<PackedDataset> held_;
};

void define_packed_reader(nanobind::module_& module);

}  // namespace tune::loader::python
