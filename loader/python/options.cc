// The keys of the dict are those that tuneloader/_dataset.py passes; what they mean is said in
// loader/dataset.h. Names become enumerators here, and an unknown one is an error that says which
// are known.

#include "loader/python/options.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "loader/python/errors.h"

namespace tune::loader::python {
namespace {

namespace nb = nanobind;

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

Nulls nulls_of(const std::string& name) {
    if (name == "refuse") return Nulls::kRefuse;
    if (name == "mask") return Nulls::kMask;
    if (name == "fill") return Nulls::kFill;
    raise(invalid_parameter("there is no meaning '" + name +
                            "' of nulls; refuse, mask and fill are known"));
}

std::optional<ImageOptions::Fit> fit_from_name(const std::string& name) {
    if (name == "stretch") return ImageOptions::Fit::kStretch;
    if (name == "center_crop") return ImageOptions::Fit::kCentreCrop;
    if (name == "random_crop") return ImageOptions::Fit::kRandomCrop;
    if (name == "random_resized_crop") return ImageOptions::Fit::kRandomResizedCrop;
    return std::nullopt;
}

ImageOptions image_options_of(const nb::dict& dict) {
    ImageOptions image;
    image.height = taken<std::int64_t>(dict, "height", 0);
    image.width = taken<std::int64_t>(dict, "width", 0);
    image.channels = taken(dict, "channels", image.channels);
    const auto fit = taken<std::string>(dict, "fit", "stretch");
    image.fit = named("fit of images", fit, fit_from_name(fit));
    image.shorter_side = taken<std::int64_t>(dict, "shorter_side", 0);
    image.border = taken<std::int64_t>(dict, "border", 0);
    image.area_min = taken(dict, "area_min", image.area_min);
    image.area_max = taken(dict, "area_max", image.area_max);
    image.ratio_min = taken(dict, "ratio_min", image.ratio_min);
    image.ratio_max = taken(dict, "ratio_max", image.ratio_max);
    image.flip = taken(dict, "flip", image.flip);
    const auto dtype = taken<std::string>(dict, "dtype", "uint8");
    image.dtype = named("element type", dtype, dtype_from_name(dtype));
    image.mean = taken<std::vector<double>>(dict, "mean", {});
    image.deviation = taken<std::vector<double>>(dict, "std", {});
    const auto layout = taken<std::string>(dict, "layout", "hwc");
    if (layout != "hwc" && layout != "chw")
        raise(invalid_parameter("there is no layout '" + layout + "'; hwc and chw are known"));
    if (layout == "chw") image.layout = ImageOptions::Layout::kChw;
    image.decodes_scaled = taken(dict, "scaled_decode", true);
    return image;
}

PadOptions pad_options_of(const nb::dict& dict) {
    PadOptions pad;
    pad.length = taken<std::int64_t>(dict, "length", 0);
    pad.value = taken(dict, "value", 0.0);
    const auto side = taken<std::string>(dict, "side", "end");
    if (side != "end" && side != "start")
        raise(invalid_parameter("a pad's side is 'end' or 'start', not '" + side + "'"));
    pad.at_start = side == "start";
    pad.cuts = taken(dict, "cut", true);
    if (const auto dtype = taken<std::string>(dict, "bytes_as", ""); !dtype.empty())
        pad.bytes_as = named("element type", dtype, dtype_from_name(dtype));
    return pad;
}

ColumnOptions column_options_of(const nb::dict& dict) {
    ColumnOptions column;
    column.name = taken<std::string>(dict, "name", "");
    if (const auto dtype = taken<std::string>(dict, "dtype", ""); !dtype.empty())
        column.dtype = named("element type", dtype, dtype_from_name(dtype));
    column.allows_narrowing = taken(dict, "allows_narrowing", false);
    column.shape = taken<std::vector<std::int64_t>>(dict, "shape", {});
    column.nulls = nulls_of(taken<std::string>(dict, "nulls", "refuse"));
    column.fill = taken<std::string>(dict, "fill", "");
    if (dict.contains("image")) column.image = image_options_of(nb::cast<nb::dict>(dict["image"]));
    if (dict.contains("pad")) column.pad = pad_options_of(nb::cast<nb::dict>(dict["pad"]));
    return column;
}

FilterValue filter_value_of(nb::handle value) {
    if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
    if (nb::isinstance<nb::int_>(value)) return nb::cast<std::int64_t>(value);
    if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
    if (nb::isinstance<nb::bytes>(value)) {
        const auto bytes = nb::cast<nb::bytes>(value);
        return std::string(bytes.c_str(), bytes.size());
    }
    return nb::cast<std::string>(value);
}

/// Alternatives of (column, operator, [values]).
Filters filters_of(nb::handle alternatives) {
    Filters filters;
    for (const nb::handle alternative : alternatives) {
        std::vector<Filter>& all = filters.emplace_back();
        for (const nb::handle comparison : alternative) {
            const auto name = nb::cast<std::string>(comparison[1]);
            Filter& filter = all.emplace_back();
            filter.column = nb::cast<std::string>(comparison[0]);
            filter.op = named("comparison", name, filter_op_from_name(name));
            for (const nb::handle value : comparison[2])
                filter.values.push_back(filter_value_of(value));
        }
    }
    return filters;
}

void take_table(const nb::dict& dict, DatasetOptions& options) {
    options.format = taken<std::string>(dict, "format", "");
    options.columns = taken<std::vector<std::string>>(dict, "columns", {});
    if (dict.contains("column_options"))
        for (const nb::handle column : nb::cast<nb::list>(dict["column_options"]))
            options.column_options.push_back(column_options_of(nb::cast<nb::dict>(column)));
    options.nulls = nulls_of(taken<std::string>(dict, "nulls", "refuse"));
    options.fill = taken<std::string>(dict, "fill", "");
    if (dict.contains("filters")) options.filters = filters_of(dict["filters"]);
    if (dict.contains("version")) options.version = nb::cast<std::int64_t>(dict["version"]);
    options.timestamp = taken<std::string>(dict, "timestamp", "");
}

}  // namespace

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
    take_table(dict, options);
    take_order(dict, options);
    options.world = world_of(dict);
    options.threads = taken(dict, "threads", 2);
    options.predownload = taken<std::int64_t>(dict, "predownload", 0);
    options.adds_batches = true;
    options.decoded_cache = taken<std::string>(dict, "decoded_cache", "");
    options.decoded_cache_limit = taken<std::uint64_t>(dict, "decoded_cache_limit", 0);
    options.verify = taken(dict, "verify_hashes", true) ? Verify::kHashes : Verify::kStructure;
    options.decompressed_bytes_max =
        taken(dict, "decompressed_bytes_max", options.decompressed_bytes_max);
    return options;
}

BatchFormat format_of(const nb::dict& dict) {
    const auto arrays = taken<std::string>(dict, "arrays", "numpy");
    return {named("kind of arrays", arrays, array_kind(arrays)), taken(dict, "has_offsets", false),
            taken<std::string>(dict, "ids_key", "")};
}

}  // namespace tune::loader::python
