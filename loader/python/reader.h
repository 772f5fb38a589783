#pragma once
// tuneloader._core.Reader: a Dataset seen from Python.

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <vector>

#include "loader/dataset.h"
#include "loader/python/arrays.h"

namespace tune::loader::python {

/// Keeps a second Python thread out while one is inside: RuntimeError.
class Turn {
public:
    explicit Turn(std::atomic_flag& is_busy);
    ~Turn() { is_busy_.clear(std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    std::atomic_flag& is_busy_;
};

/// (name, encoding, dtype or None, shape or None, stored type) of each column.
[[nodiscard]] nanobind::list columns_of(const Dataset& dataset);
[[nodiscard]] nanobind::dict figures_of(const Dataset& dataset);

/// One Python thread at a time; a second one is refused with a RuntimeError. After fork() the child
/// has none of the parent's threads: the first call there opens the data set anew, at the place
/// where the parent stood.
class Reader {
public:
    /// `options`: a dict made by tuneloader, every key of it known.
    explicit Reader(const nanobind::dict& options);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// The next batch, or None at the end of an epoch. Ctrl-C ends the wait for a batch.
    [[nodiscard]] nanobind::object next();
    [[nodiscard]] nanobind::object sample(std::int64_t id);
    [[nodiscard]] nanobind::object samples(std::vector<std::int64_t> ids);
    [[nodiscard]] nanobind::object batch(std::vector<std::int64_t> ids);
    [[nodiscard]] nanobind::object remaining_ids(std::int64_t worker, std::int64_t workers);

    [[nodiscard]] nanobind::dict state();
    [[nodiscard]] nanobind::dict stage_figures() { return figures_of(dataset()); }
    void load_state(const nanobind::dict& state);
    void start_epoch(std::int64_t epoch);

    [[nodiscard]] std::int64_t epoch() { return dataset().epoch(); }
    [[nodiscard]] std::int64_t sample_count() { return dataset().sample_count(); }
    [[nodiscard]] std::int64_t epoch_size() { return dataset().epoch_size(); }
    [[nodiscard]] std::int64_t batches_per_epoch() { return dataset().batches_per_epoch(); }
    [[nodiscard]] nanobind::list columns() { return columns_of(dataset()); }

    void close();

private:
    [[nodiscard]] Dataset& dataset();
    void open();
    [[nodiscard]] Batch read(const std::vector<std::int64_t>& ids);

    DatasetOptions options_;
    BatchFormat format_;
    std::unique_ptr<Dataset> dataset_;
    std::vector<Encoding> encodings_;
    pid_t process_ = 0;
    bool is_closed_ = false;
    std::atomic_flag is_busy_;
};

void define_reader(nanobind::module_& module);

}  // namespace tune::loader::python
