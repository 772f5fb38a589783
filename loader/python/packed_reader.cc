// Packed batches (documents of any length in rows of one) as Python objects: options from a dict,
// batches as arrays, and a state that resumes at a token. The GIL is released while a batch is
// packed.

#include "loader/python/packed_reader.h"

#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "loader/python/errors.h"
#include "loader/python/options.h"
#include "loader/python/reader.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

std::optional<std::int64_t> optional_integer(const nb::dict& dict, const char* name) {
    const nb::object value = dict[name];
    if (value.is_none()) return {};
    return nb::cast<std::int64_t>(value);
}

TokenPackOptions packing_of(const nb::dict& dict) {
    TokenPackOptions packing;
    packing.column = nb::cast<std::string>(dict["column"]);
    packing.length = nb::cast<std::int64_t>(dict["length"]);
    packing.batch_size = nb::cast<std::int64_t>(dict["batch_size"]);
    const auto kind = nb::cast<std::string>(dict["packing"]);
    if (kind != "concat" && kind != "best_fit")
        raise(invalid_parameter("packing must be 'concat' or 'best_fit', not '" + kind + "'"));
    packing.packing = kind == "concat" ? Packing::kConcat : Packing::kBestFit;
    const auto bytes_as = nb::cast<std::string>(dict["bytes_as"]);
    if (!bytes_as.empty()) {
        packing.bytes_as = dtype_from_name(bytes_as);
        if (!packing.bytes_as)
            raise(invalid_parameter("bytes_as: there is no type '" + bytes_as + "'"));
    }
    packing.end_token = optional_integer(dict, "end_token");
    packing.pad_token = nb::cast<std::int64_t>(dict["pad_token"]);
    packing.drop_last = nb::cast<bool>(dict["drop_last"]);
    packing.window = nb::cast<std::int64_t>(dict["window"]);
    return packing;
}

}  // namespace

PackedReader::PackedReader(const nb::dict& options, const nb::dict& packing)
    : format_(format_of(options)), held_([known = options_of(options), how = packing_of(packing)] {
          return PackedDataset::open(known, how);
      }) {}

nb::object PackedReader::next() {
    PackedDataset& packed = data();
    const UseLock lock = held_.lock();
    PackedBatch batch;
    using Step = PackedDataset::Step;
    const Result<Step> step = wait_for([&]() -> std::optional<Result<Step>> {
        Result<Step> made = packed.next_within(batch, kSignalPause);
        if (made && *made == Step::kWaiting) return {};
        return made;
    });
    if (value_or_raise(step) == Step::kEndOfEpoch) return nb::none();
    return packed_dict(std::move(batch), format_);
}

nb::object PackedReader::state() {
    return nb::module_::import_("json").attr("loads")(data().state().to_json().dump());
}

void PackedReader::load_state(const nb::dict& state) {
    PackedDataset& packed = data();
    const UseLock lock = held_.lock();
    const auto text = nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(state));
    check(packed.load_state(value_or_raise(PackedState::from_json(Json::parse(text)))));
}

void PackedReader::start_epoch(std::int64_t epoch) {
    PackedDataset& packed = data();
    const UseLock lock = held_.lock();
    if (epoch < 0) raise(invalid_parameter("epochs count from 0"));
    packed.start_epoch(epoch);
}

void define_packed_reader(nb::module_& module) {
    nb::class_<PackedReader>(module, "PackedReader")
        .def(nb::init<const nb::dict&, const nb::dict&>(), nb::arg("options"), nb::arg("packing"))
        .def("next", &PackedReader::next)
        .def("state", &PackedReader::state)
        .def("load_state", &PackedReader::load_state, nb::arg("state"))
        .def("start_epoch", &PackedReader::start_epoch, nb::arg("epoch"))
        .def("close", &PackedReader::close)
        .def("columns", [](PackedReader& reader) { return columns_of(reader.data().dataset()); })
        .def("stage_stats", [](PackedReader& reader) { return stats_of(reader.data().dataset()); })
        .def_prop_ro("epoch", [](PackedReader& reader) { return reader.data().epoch(); })
        .def_prop_ro("sample_count",
                     [](PackedReader& reader) { return reader.data().dataset().sample_count(); });
}

}  // namespace tune::loader::python
