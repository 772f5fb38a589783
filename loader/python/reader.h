#pragma once
// tuneloader._core.Reader: a Dataset seen from Python.

#include <nanobind/nanobind.h>

#include <vector>

#include "loader/dataset.h"
#include "loader/python/arrays.h"
#include "loader/python/held.h"

namespace tune::loader::python {

/// (name, encoding, dtype or None, shape or None, stored type) of each column.
[[nodiscard]] nanobind::list columns_of(const Dataset& dataset);
[[nodiscard]] nanobind::dict stats_of(const Dataset& dataset);

/// One Python thread at a time; a second one is refused with a RuntimeError. It survives fork(), as
/// Held says.
class Reader {
public:
    /// `options`: a dict made by tuneloader, every key of it known.
    explicit Reader(const nanobind::dict& options);

    /// The next batch, or None at the end of an epoch. Ctrl-C ends the wait for a batch.
    [[nodiscard]] nanobind::object next();
    [[nodiscard]] nanobind::object sample(std::int64_t id);
    [[nodiscard]] nanobind::object samples(std::vector<std::int64_t> ids);
    [[nodiscard]] nanobind::object batch(std::vector<std::int64_t> ids);
    [[nodiscard]] nanobind::object remaining_ids(std::int64_t worker, std::int64_t workers);

    [[nodiscard]] nanobind::dict state();
    [[nodiscard]] nanobind::dict stage_stats() { return stats_of(dataset()); }
    void load_state(const nanobind::dict& state);
    void start_epoch(std::int64_t epoch);

    [[nodiscard]] std::int64_t epoch() { return dataset().epoch(); }
    [[nodiscard]] std::int64_t sample_count() { return dataset().sample_count(); }
    [[nodiscard]] std::int64_t epoch_size() { return dataset().epoch_size(); }
    [[nodiscard]] std::int64_t batches_per_epoch() { return dataset().batches_per_epoch(); }
    [[nodiscard]] nanobind::list columns() { return columns_of(dataset()); }

    void close() { held_.close(); }

private:
    [[nodiscard]] Dataset& dataset() { return held_.data(); }
    [[nodiscard]] Batch read(const std::vector<std::int64_t>& ids);

    BatchFormat format_;
    Held<Dataset> held_;
    std::vector<Encoding> encodings_;
};

void define_reader(nanobind::module_& module);

}  // namespace tune::loader::python
