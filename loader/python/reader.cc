// A Dataset's batches, samples and state as Python objects (arrays.h says which).
//
// The GIL is released while the loader waits or decodes and taken again to make objects. Errors of
// the loader become Python's exceptions in one place (errors.h).

#include "loader/python/reader.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "loader/python/errors.h"
#include "loader/python/options.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

}  // namespace

Reader::Reader(const nb::dict& options)
    : format_(format_of(options)),
      held_([known = options_of(options)] { return Dataset::open(known); }) {
    for (const ColumnInfo& column : dataset().columns())
        encodings_.push_back(value_or_raise(encoding_of(column)));
}

nb::object Reader::next() {
    Dataset& data = dataset();
    const UseLock lock = held_.lock();
    Batch batch;
    const Result<bool> more = wait_for([&]() -> std::optional<Result<bool>> {
        if (!data.wait_next(kSignalPause)) return {};
        return data.next(batch);
    });
    if (!value_or_raise(more)) return nb::none();
    return batch_dict(std::move(batch), encodings_, format_);
}

Batch Reader::read(const std::vector<std::int64_t>& ids) {
    const Dataset& data = dataset();
    Batch batch;
    check(without_gil([&] { return data.read(ids, batch); }));
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
    return ids_array(value_or_raise(without_gil([&] {
        Result<std::vector<std::int64_t>> ids = data.remaining_ids(worker, workers);
        if (ids) data.expect_reads(*ids);
        return ids;
    })));
}

nb::dict stats_of(const Dataset& dataset) {
    const StageStats stats = dataset.stage_stats();
    nb::dict dict;
    dict["samples"] = stats.samples;
    dict["elapsed_s"] = stats.elapsed_s;
    dict["fetch_wait_s"] = stats.fetch_wait_s;
    dict["decode_wait_s"] = stats.decode_wait_s;
    dict["read_s"] = stats.read_s;
    dict["decompress_s"] = stats.decompress_s;
    dict["transform_s"] = stats.transform_s;
    dict["fetched_bytes"] = stats.fetched_bytes;
    dict["bottleneck"] = bottleneck(stats);
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
    const UseLock lock = held_.lock();
    const auto text = nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(state));
    const DatasetState wanted = value_or_raise(DatasetState::from_json(Json::parse(text)));
    check(dataset().load_state(wanted));
}

void Reader::start_epoch(std::int64_t epoch) {
    const UseLock lock = held_.lock();
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
        .def("stage_stats", &Reader::stage_stats)
        .def_prop_ro("epoch_size", &Reader::epoch_size)
        .def_prop_ro("batches_per_epoch", &Reader::batches_per_epoch);
}

}  // namespace tune::loader::python
