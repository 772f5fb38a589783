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

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

constexpr std::chrono::milliseconds kSignalPause(50);

template <class T>
T taken(const nb::dict& dict, const char* key, T fallback) {
    if (!dict.contains(key)) return fallback;
    const nb::object value = dict[key];
    return value.is_none() ? fallback : nb::cast<T>(value);
}

template <class T>
T named(const char* what, const std::string& name, std::optional<T> found) {
    if (!found) raise(invalid_parameter("there is no " + std::string(what) + " '" + name + "'"));
    return *found;
}

std::optional<ArrayKind> array_kind(const std::string& name) {
    if (name == "numpy") return ArrayKind::kNumpy;
    if (name == "torch") return ArrayKind::kTorch;
    if (name == "jax") return ArrayKind::kJax;
    if (name == "dlpack") return ArrayKind::kDlpack;
    return std::nullopt;
}

StreamOptions stream_of(const nb::dict& dict) {
    StreamOptions stream;
    stream.directory = taken<std::string>(dict, "directory", "");
    stream.split = taken<std::string>(dict, "split", "");
    stream.remote = taken<std::string>(dict, "remote", "");
    stream.local = taken<std::string>(dict, "local", "");
    if (dict.contains("proportion"))
        stream.weight.proportion = nb::cast<double>(dict["proportion"]);
    if (dict.contains("repeat")) stream.weight.repeat = nb::cast<double>(dict["repeat"]);
    if (dict.contains("choose")) stream.weight.choose = nb::cast<std::int64_t>(dict["choose"]);
    return stream;
}

World world_of(const nb::dict& dict) {
    World world;
    world.rank = taken<std::int64_t>(dict, "rank", 0);
    world.size = taken<std::int64_t>(dict, "world_size", 1);
    world.ranks_per_node = taken<std::int64_t>(dict, "ranks_per_node", 0);
    world.replication = taken<std::int64_t>(dict, "replication", 1);
    world.worker = taken<std::int64_t>(dict, "worker", 0);
    world.workers = taken<std::int64_t>(dict, "workers", 1);
    return world;
}

void take_order(const nb::dict& dict, DatasetOptions& options) {
    const auto order = taken<std::string>(dict, "order", "mosaic");
    if (order != "mosaic" && order != "lazy")
        raise(invalid_parameter("there is no order '" + order + "'; mosaic and lazy are known"));
    options.order = order == "lazy" ? OrderKind::kLazy : OrderKind::kMosaic;
    options.shuffle = taken(dict, "shuffle", false);
    const auto algo = taken<std::string>(dict, "shuffle_algo", "py1e");
    options.shuffle_algo = named("shuffle algorithm", algo, shuffle_algo_from_name(algo));
    options.seed = taken<std::uint64_t>(dict, "seed", 9176);
    options.num_canonical_nodes = taken<std::int64_t>(dict, "num_canonical_nodes", 0);
    options.shuffle_block_size = taken<std::int64_t>(dict, "shuffle_block_size", 0);
    options.epoch_size = taken<std::int64_t>(dict, "epoch_size", 0);
    const auto sampling = taken<std::string>(dict, "sampling_method", "balanced");
    if (sampling != "balanced" && sampling != "fixed")
        raise(invalid_parameter("there is no sampling method '" + sampling + "'"));
    options.sampling = sampling == "fixed" ? SamplingMethod::kFixed : SamplingMethod::kBalanced;
    options.sampling_granularity = taken<std::int64_t>(dict, "sampling_granularity", 1);
    const auto batching = taken<std::string>(dict, "batching_method", "random");
    options.batching = named("batching method", batching, batching_method_from_name(batching));
    const auto partition = taken<std::string>(dict, "partition_algo", "relaxed");
    if (partition != "relaxed" && partition != "orig")
        raise(invalid_parameter("there is no partition algorithm '" + partition + "'"));
    options.partition = partition == "orig" ? PartitionAlgo::kOrig : PartitionAlgo::kRelaxed;
}

DatasetOptions options_of(const nb::dict& dict) {
    DatasetOptions options;
    options.directory = taken<std::string>(dict, "directory", "");
    options.split = taken<std::string>(dict, "split", "");
    if (dict.contains("streams"))
        for (const nb::handle stream : nb::cast<nb::list>(dict["streams"]))
            options.streams.push_back(stream_of(nb::cast<nb::dict>(stream)));
    options.remote = taken<std::string>(dict, "remote", "");
    options.local = taken<std::string>(dict, "local", "");
    options.cache_limit = taken<std::uint64_t>(dict, "cache_limit", 0);
    options.keep_zip = taken(dict, "keep_zip", false);
    options.download_retry = taken(dict, "download_retry", options.download_retry);
    options.download_timeout_s = taken(dict, "download_timeout", options.download_timeout_s);
    options.batch_size = taken<std::int64_t>(dict, "batch_size", 1);
    options.drop_last = taken(dict, "drop_last", false);
    options.columns = taken<std::vector<std::string>>(dict, "columns", {});
    take_order(dict, options);
    options.world = world_of(dict);
    options.threads = taken(dict, "threads", 2);
    options.predownload = taken<std::int64_t>(dict, "predownload", 0);
    options.adds_batches = true;
    options.verify = taken(dict, "verify_hashes", true) ? Verify::kHashes : Verify::kStructure;
    options.decompressed_bytes_max =
        taken(dict, "decompressed_bytes_max", options.decompressed_bytes_max);
    return options;
}

/// Keeps a second thread out while one is inside.
class Turn {
public:
    explicit Turn(std::atomic_flag& is_busy) : is_busy_(is_busy) {
        if (!is_busy_.test_and_set(std::memory_order_acquire)) return;
        PyErr_SetString(PyExc_RuntimeError,
                        "this data set is being read by another thread; open one for each thread");
        throw nb::python_error();
    }
    ~Turn() { is_busy_.clear(std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    std::atomic_flag& is_busy_;
};

}  // namespace

Reader::Reader(const nb::dict& options)
    : options_(options_of(options)),
      format_{named("kind of arrays", taken<std::string>(options, "arrays", "numpy"),
                    array_kind(taken<std::string>(options, "arrays", "numpy"))),
              taken(options, "has_offsets", false), taken<std::string>(options, "ids_key", "")} {
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
        encodings_.push_back(value_or_raise(parse_encoding(column.encoding)));
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

nb::list Reader::columns() {
    nb::list list;
    for (const ColumnInfo& column : dataset().columns()) {
        nb::object dtype = nb::none();
        nb::object shape = nb::none();
        if (column.fixed) {
            dtype = nb::str(std::string(dtype_name(column.dtype)).c_str());
            nb::list sizes;
            for (const std::int64_t size : column.shape) sizes.append(size);
            shape = nb::tuple(sizes);
        }
        list.append(nb::make_tuple(column.name, column.encoding, dtype, shape));
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
        .def_prop_ro("epoch_size", &Reader::epoch_size)
        .def_prop_ro("batches_per_epoch", &Reader::batches_per_epoch);
}

}  // namespace tune::loader::python
