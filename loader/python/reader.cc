// The GIL is released while a batch is waited for or decoded. The wait is cut into pieces of 50 ms,
// between which Python may handle a signal, so that Ctrl-C works while the disk or network stalls.

#include "loader/python/reader.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "loader/python/errors.h"
#include "loader/python/options.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

constexpr std::chrono::milliseconds kSignalPause(50);

}  // namespace

Turn::Turn(std::atomic_flag& is_busy) : is_busy_(is_busy) {
    if (!is_busy_.test_and_set(std::memory_order_acquire)) return;
    PyErr_SetString(PyExc_RuntimeError,
                    "this data set is being read by another thread; open one for each thread");
    throw nb::python_error();
}

Reader::Reader(const nb::dict& options)
    : options_(options_of(options)), format_(format_of(options)) {
    open();
}

Reader::~Reader() {
    close();
}

void Reader::open() {
    std::optional<Result<std::unique_ptr<Dataset>>> opened;
    {
        const nb::gil_scoped_release release;
        opened.emplace(Dataset::open(options_));
    }
    dataset_ = value_or_raise(*std::move(opened));
    process_ = getpid();
    encodings_.clear();
    for (const ColumnInfo& column : dataset_->columns())
        encodings_.push_back(value_or_raise(encoding_of(column)));
}

Dataset& Reader::dataset() {
    if (is_closed_) raise(invalid_parameter("the data set was closed"));
    if (process_ != getpid()) {
        // The parent's threads do not exist here and its locks may be held for ever: its object is
        // left alone. What it says of its position is only written by calls like this one.
        const DatasetState state = dataset_->state();
        static_cast<void>(dataset_.release());
        is_busy_.clear();
        open();
        check(dataset_->load_state(state));
    }
    return *dataset_;
}

nb::object Reader::next() {
    Dataset& data = dataset();
    const Turn turn(is_busy_);
    Batch batch;
    while (true) {
        std::optional<Result<bool>> more;
        {
            const nb::gil_scoped_release release;
            if (data.wait_next(kSignalPause)) more.emplace(data.next(batch));
        }
        if (more) {
            if (!value_or_raise(*std::move(more))) return nb::none();
            return batch_dict(std::move(batch), encodings_, format_);
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

Batch Reader::read(const std::vector<std::int64_t>& ids) {
    const Dataset& data = dataset();
    Batch batch;
    std::optional<Result<void>> done;
    {
        const nb::gil_scoped_release release;
        done.emplace(data.read(ids, batch));
    }
    check(*done);
    return batch;
}

nb::object Reader::sample(std::int64_t id) {
    return sample_dict(read({id}), 0, encodings_);
}

nb::object Reader::samples(std::vector<std::int64_t> ids) {
    const Batch batch = read(ids);
    nb::list list;
    for (std::size_t row = 0; row < ids.size(); ++row)
        list.append(sample_dict(batch, row, encodings_));
    return list;
}

nb::object Reader::batch(std::vector<std::int64_t> ids) {
    return batch_dict(read(ids), encodings_, format_);
}

nb::object Reader::remaining_ids(std::int64_t worker, std::int64_t workers) {
    Dataset& data = dataset();
    std::optional<Result<std::vector<std::int64_t>>> ids;
    {
        const nb::gil_scoped_release release;
        ids.emplace(data.remaining_ids(worker, workers));
        if (*ids) data.expect_reads(**ids);
    }
    return ids_array(value_or_raise(*std::move(ids)));
}

nb::dict figures_of(const Dataset& dataset) {
    const StageFigures figures = dataset.stage_figures();
    nb::dict dict;
    dict["samples"] = figures.samples;
    dict["elapsed_s"] = figures.elapsed_s;
    dict["fetch_wait_s"] = figures.fetch_wait_s;
    dict["decode_wait_s"] = figures.decode_wait_s;
    dict["read_s"] = figures.read_s;
    dict["decompress_s"] = figures.decompress_s;
    dict["transform_s"] = figures.transform_s;
    dict["fetched_bytes"] = figures.fetched_bytes;
    dict["bottleneck"] = bottleneck(figures);
    return dict;
}

nb::dict Reader::state() {
    const DatasetState state = dataset().state();
    nb::dict dict;
    dict["epoch"] = state.epoch;
    dict["sample_in_epoch"] = state.sample_in_epoch;
    dict["num_canonical_nodes"] = state.num_canonical_nodes;
    dict["shuffle_seed"] = state.shuffle_seed;
    dict["initial_physical_nodes"] = state.initial_physical_nodes;
    dict["order"] = nb::str(state.order.c_str());
    dict["index_digest"] = nb::str(state.index_digest.c_str());
    return dict;
}

void Reader::load_state(const nb::dict& state) {
    const Turn turn(is_busy_);
    const auto text = nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(state));
    const DatasetState wanted = value_or_raise(DatasetState::from_json(Json::parse(text)));
    check(dataset().load_state(wanted));
}

void Reader::start_epoch(std::int64_t epoch) {
    const Turn turn(is_busy_);
    if (epoch < 0) raise(invalid_parameter("epochs count from 0"));
    dataset().start_epoch(epoch);
}

nb::list columns_of(const Dataset& dataset) {
    nb::list list;
    for (const ColumnInfo& column : dataset.columns()) {
        nb::object dtype = nb::none();
        nb::object shape = nb::none();
        if (column.fixed) {
            dtype = nb::str(std::string(dtype_name(column.dtype)).c_str());
            nb::list sizes;
            for (const std::int64_t size : column.shape) sizes.append(size);
            shape = nb::tuple(sizes);
        }
        const std::string& stored = column.stored.empty() ? column.encoding : column.stored;
        list.append(nb::make_tuple(column.name, column.encoding, dtype, shape, stored));
    }
    return list;
}

void Reader::close() {
    is_closed_ = true;
    if (process_ != getpid()) {
        static_cast<void>(dataset_.release());
        return;
    }
    const nb::gil_scoped_release release;  // its threads end first
    dataset_.reset();
}

void define_reader(nb::module_& module) {
    nb::class_<Reader>(module, "Reader")
        .def(nb::init<const nb::dict&>(), nb::arg("options"))
        .def("next", &Reader::next)
        .def("sample", &Reader::sample, nb::arg("sample_id"))
        .def("samples", &Reader::samples, nb::arg("sample_ids"))
        .def("batch", &Reader::batch, nb::arg("sample_ids"))
        .def("remaining_ids", &Reader::remaining_ids, nb::arg("worker") = 0, nb::arg("workers") = 1)
        .def("state", &Reader::state)
        .def("load_state", &Reader::load_state, nb::arg("state"))
        .def("start_epoch", &Reader::start_epoch, nb::arg("epoch"))
        .def("close", &Reader::close)
        .def("columns", &Reader::columns)
        .def_prop_ro("epoch", &Reader::epoch)
        .def_prop_ro("sample_count", &Reader::sample_count)
        .def("stage_figures", &Reader::stage_figures)
        .def_prop_ro("epoch_size", &Reader::epoch_size)
        .def_prop_ro("batches_per_epoch", &Reader::batches_per_epoch);
}

}  // namespace tune::loader::python
