// Columns of any numeric type become float32 rows, standardised with mean and deviation of the
// training split. The moments are merged chunk by chunk (Chan et al. 1979), which stays accurate
// for large means and depends on no thread. They are part of the checkpoint: a model is never fed
// by other numbers than those of its training.

#include "worker/train/inputs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "loader/format/mds/encoding.h"

namespace tune::train {
namespace {

using loader::ColumnInfo;
using loader::Dtype;

/// An IEEE 754 half as it lies in memory.
struct Half {
    std::uint16_t bits;

    explicit operator double() const { return loader::double_from_half(bits); }
    explicit operator float() const { return static_cast<float>(loader::double_from_half(bits)); }
};

/// Calls f with a null pointer of the C++ type of `dtype`.
template <class F>
decltype(auto) with_type(Dtype dtype, F f) {
    switch (dtype) {
        case Dtype::kUint8: return f(static_cast<const std::uint8_t*>(nullptr));
        case Dtype::kInt8: return f(static_cast<const std::int8_t*>(nullptr));
        case Dtype::kUint16: return f(static_cast<const std::uint16_t*>(nullptr));
        case Dtype::kInt16: return f(static_cast<const std::int16_t*>(nullptr));
        case Dtype::kFloat16: return f(static_cast<const Half*>(nullptr));
        case Dtype::kUint32: return f(static_cast<const std::uint32_t*>(nullptr));
        case Dtype::kInt32: return f(static_cast<const std::int32_t*>(nullptr));
        case Dtype::kFloat32: return f(static_cast<const float*>(nullptr));
        case Dtype::kUint64: return f(static_cast<const std::uint64_t*>(nullptr));
        case Dtype::kInt64: return f(static_cast<const std::int64_t*>(nullptr));
        case Dtype::kFloat64: return f(static_cast<const double*>(nullptr));
    }
    return f(static_cast<const std::uint8_t*>(nullptr));
}

bool is_integer(Dtype dtype) {
    return dtype != Dtype::kFloat16 && dtype != Dtype::kFloat32 && dtype != Dtype::kFloat64;
}

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// "pixel_2" before "pixel_10".
bool natural_less(const std::string& a, const std::string& b) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (!digit(a[i]) || !digit(b[j])) {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i;
            ++j;
            continue;
        }
        std::size_t left = i;
        std::size_t right = j;
        while (left < a.size() && digit(a[left])) ++left;
        while (right < b.size() && digit(b[right])) ++right;
        if (left - i != right - j) return left - i < right - j;
        const int order = a.compare(i, left - i, b, j, right - j);
        if (order != 0) return order < 0;
        i = left;
        j = right;
    }
    return a.size() - i < b.size() - j;
}

std::string listed(const std::vector<ColumnInfo>& columns) {
    std::string text;
    for (const ColumnInfo& column : columns)
        text += (text.empty() ? "" : ", ") + column.name + " (" + column.encoding + ")";
    return text.empty() ? "none" : text;
}

const ColumnInfo* find(const std::vector<ColumnInfo>& columns, std::string_view name) {
    for (const ColumnInfo& column : columns)
        if (column.name == name) return &column;
    return nullptr;
}

Error wrong(std::string message) {
    return Error{Code::kInvalidParameterValue, std::move(message)};
}

Result<const ColumnInfo*> choose_label(const TrainConfig& config,
                                       const std::vector<ColumnInfo>& columns) {
    const ColumnInfo* label = nullptr;
    if (!config.label.empty()) {
        label = find(columns, config.label);
        if (label == nullptr)
            return wrong("label: there is no column '" + config.label +
                         "'; the data have: " + listed(columns));
    }
    for (const char* name : {"label", "target", "class", "y", "labels", "targets"})
        if (label == nullptr) label = find(columns, name);
    if (label == nullptr)
        return wrong(
            "no column is called label, target, class or y; give --label NAME. "
            "The data have: " +
            listed(columns));
    if (!label->fixed || element_count(label->shape) != 1)
        return wrong("label: column '" + label->name + "' (" + label->encoding +
                     ") is not one number a sample");
    return label;
}

Result<std::vector<const ColumnInfo*>> choose_features(const TrainConfig& config,
                                                       const std::vector<ColumnInfo>& columns,
                                                       const ColumnInfo& label) {
    std::vector<const ColumnInfo*> chosen;
    for (const std::string& name : split_list(config.features)) {
        const ColumnInfo* column = find(columns, name);
        if (column == nullptr || !column->fixed || column == &label)
            return wrong(
                "features: '" + name +
                "' is not a numeric column besides the label; the data have: " + listed(columns));
        chosen.push_back(column);
    }
    if (!chosen.empty()) return chosen;
    for (const ColumnInfo& column : columns)
        if (column.fixed && &column != &label) chosen.push_back(&column);
    if (chosen.empty())
        return wrong("no column besides the label '" + label.name +
                     "' is numeric with a fixed shape; the data have: " + listed(columns));
    std::sort(chosen.begin(), chosen.end(), [](const ColumnInfo* a, const ColumnInfo* b) {
        return natural_less(a->name, b->name);
    });
    return chosen;
}

/// Mean and sum of squared differences from it (Chan et al. 1979: merged chunk by chunk).
struct Moments {
    double count = 0.0;
    double mean = 0.0;
    double squares = 0.0;

    template <class T>
    void add(const T* values, std::size_t size) {
        if (size == 0) return;
        double sum = 0.0;
        for (std::size_t i = 0; i < size; ++i) sum += static_cast<double>(values[i]);
        const auto n = static_cast<double>(size);
        const double chunk_mean = sum / n;
        double chunk_squares = 0.0;
        for (std::size_t i = 0; i < size; ++i) {
            const double difference = static_cast<double>(values[i]) - chunk_mean;
            chunk_squares += difference * difference;
        }
        const double delta = chunk_mean - mean;
        const double total = count + n;
        squares += chunk_squares + delta * delta * count * n / total;
        mean += delta * n / total;
        count = total;
    }

    [[nodiscard]] double scale() const {
        const double deviation = count > 0 ? std::sqrt(squares / count) : 0.0;
        return deviation > 0.0 ? 1.0 / deviation : 1.0;
    }
};

const loader::Column& column_of(const loader::Batch& batch, const std::string& name) {
    const loader::Column* column = batch.column(name);
    TUNE_CHECK(column != nullptr, "the data set was opened without a column that is needed");
    return *column;
}

void add_to_moments(const loader::Column& column, std::size_t elements, Moments& moments) {
    with_type(column.info->dtype, [&]<class T>(const T*) {
        moments.add(reinterpret_cast<const T*>(column.data), elements);
    });
}

template <class T>
void convert(const T* in, float* out, std::size_t size, float mean, float scale) {
    for (std::size_t i = 0; i < size; ++i) out[i] = (static_cast<float>(in[i]) - mean) * scale;
}

/// The places of one column in every row.
void place_column(const InputColumn& column, const loader::Column& data, Samples& samples,
                  std::size_t row) {
    const auto elements = static_cast<std::size_t>(column.elements);
    const auto rows = static_cast<std::size_t>(samples.count);
    const auto mean = static_cast<float>(column.mean);
    const auto scale = static_cast<float>(column.scale);
    float* out = samples.features.data() + column.offset;
    with_type(data.info->dtype, [&]<class T>(const T*) {
        const T* in = reinterpret_cast<const T*>(data.data);
        if (elements == row) return convert(in, out, rows * elements, mean, scale);
        for (std::size_t i = 0; i < rows; ++i)
            convert(in + i * elements, out + i * row, elements, mean, scale);
    });
}

Error wrong_class(const loader::Batch& batch, std::size_t i, double value, const Inputs& inputs) {
    return wrong("sample " + std::to_string(batch.sample_ids[i]) + ": label " +
                 to_text(json_number(value)) + " in column '" + inputs.label +
                 "' is not one of the classes 0 to " + std::to_string(inputs.classes - 1) +
                 "; --classes N sets their number");
}

Result<void> read_labels(const Inputs& inputs, const loader::Batch& batch, Samples& samples) {
    const loader::Column& label = column_of(batch, inputs.label);
    const auto count = static_cast<std::size_t>(samples.count);
    return with_type(label.info->dtype, [&]<class T>(const T*) -> Result<void> {
        const T* in = reinterpret_cast<const T*>(label.data);
        for (std::size_t i = 0; i < count; ++i) {
            const auto value = static_cast<double>(in[i]);
            if (inputs.is_classification()) {
                if (!(value >= 0 && value < static_cast<double>(inputs.classes)))
                    return wrong_class(batch, i, value, inputs);
                samples.classes[i] = static_cast<std::int64_t>(value);
            } else {
                if (!std::isfinite(value))
                    return wrong("sample " + std::to_string(batch.sample_ids[i]) +
                                 ": the label is not finite");
                samples.values[i] =
                    static_cast<float>((value - inputs.label_mean) * inputs.label_scale);
            }
        }
        return {};
    });
}

/// The largest label of a batch; errors for one below 0.
Result<std::int64_t> largest_class(const Inputs& inputs, const loader::Batch& batch) {
    const loader::Column& label = column_of(batch, inputs.label);
    return with_type(label.info->dtype, [&]<class T>(const T*) -> Result<std::int64_t> {
        const T* in = reinterpret_cast<const T*>(label.data);
        double largest = 0.0;
        for (std::size_t i = 0; i < batch.count; ++i) {
            const auto value = static_cast<double>(in[i]);
            if (!(value >= 0.0 && value < 1e6))
                return wrong("sample " + std::to_string(batch.sample_ids[i]) + ": label " +
                             to_text(json_number(value)) + " in column '" + inputs.label +
                             "' is not a class; classes are 0, 1, 2, ... below 1000000");
            largest = std::max(largest, value);
        }
        return static_cast<std::int64_t>(largest);
    });
}

}  // namespace

std::int64_t Inputs::row_elements() const {
    return element_count(shape);
}

std::vector<std::string> Inputs::column_names() const {
    std::vector<std::string> names = {label};
    for (const InputColumn& column : columns) names.push_back(column.name);
    return names;
}

Json Inputs::to_json() const {
    Json list = Json::array();
    for (const InputColumn& column : columns)
        list.push_back({{"name", column.name},
                        {"elements", column.elements},
                        {"mean", column.mean},
                        {"scale", column.scale}});
    return {{"columns", std::move(list)}, {"shape", shape},           {"label", label},
            {"classes", classes},         {"label_mean", label_mean}, {"label_scale", label_scale}};
}

Result<Inputs> Inputs::from_json(const Json& json) try {
    Inputs inputs;
    std::int64_t offset = 0;
    for (const Json& item : json.at("columns")) {
        InputColumn column{.name = item.at("name").get<std::string>(),
                           .elements = item.at("elements").get<std::int64_t>(),
                           .offset = offset,
                           .mean = item.at("mean").get<double>(),
                           .scale = item.at("scale").get<double>()};
        offset += column.elements;
        inputs.columns.push_back(std::move(column));
    }
    inputs.shape = json.at("shape").get<std::vector<std::int64_t>>();
    inputs.label = json.at("label").get<std::string>();
    inputs.classes = json.at("classes").get<std::int64_t>();
    inputs.label_mean = json.at("label_mean").get<double>();
    inputs.label_scale = json.at("label_scale").get<double>();
    if (inputs.row_elements() != offset) return wrong("the inputs' shape and columns differ");
    return inputs;
} catch (const Json::exception& error) {
    return wrong(std::string("the description of the inputs is damaged: ") + error.what());
}

Result<Inputs> choose_inputs(const TrainConfig& config, const std::vector<ColumnInfo>& columns) {
    TUNE_TRY(label, choose_label(config, columns));
    TUNE_TRY(features, choose_features(config, columns, *label));
    Inputs inputs;
    inputs.label = label->name;
    inputs.classes = is_integer(label->dtype) ? std::max<std::int64_t>(config.classes, 1) : 0;
    std::int64_t offset = 0;
    for (const ColumnInfo* column : features) {
        const std::int64_t elements = element_count(column->shape);
        inputs.columns.push_back({.name = column->name, .elements = elements, .offset = offset});
        offset += elements;
    }
    TUNE_TRY(shape, parse_shape(config.shape));
    if (!shape.empty()) {
        if (element_count(shape) != offset)
            return wrong("shape: " + config.shape + " has " + std::to_string(element_count(shape)) +
                         " elements, a sample has " + std::to_string(offset));
        inputs.shape = std::move(shape);
    } else if (features.size() == 1 && !features[0]->shape.empty()) {
        inputs.shape = features[0]->shape;
    } else {
        inputs.shape = {offset};
    }
    return inputs;
}

Result<void> measure_inputs(const TrainConfig& config, loader::Dataset& dataset, Inputs& inputs) {
    const bool count_classes = inputs.is_classification() && config.classes == 0;
    std::vector<Moments> moments(inputs.columns.size());
    Moments label_moments;
    std::int64_t largest = 0;
    std::int64_t seen = 0;
    loader::Batch batch;
    while (seen < kMeasuredSamplesMax) {
        TUNE_TRY(more, dataset.next(batch));
        if (!more) break;
        seen += static_cast<std::int64_t>(batch.count);
        for (std::size_t i = 0; i < inputs.columns.size(); ++i) {
            const auto elements = static_cast<std::size_t>(inputs.columns[i].elements);
            add_to_moments(column_of(batch, inputs.columns[i].name), batch.count * elements,
                           moments[i]);
        }
        if (count_classes) {
            TUNE_TRY(in_batch, largest_class(inputs, batch));
            largest = std::max(largest, in_batch);
        }
        if (!inputs.is_classification())
            add_to_moments(column_of(batch, inputs.label), batch.count, label_moments);
    }
    if (count_classes) inputs.classes = largest + 1;
    if (config.normalize == Normalize::kNone) return {};
    for (std::size_t i = 0; i < moments.size(); ++i) {
        inputs.columns[i].mean = moments[i].mean;
        inputs.columns[i].scale = moments[i].scale();
        if (!std::isfinite(moments[i].mean) || !std::isfinite(inputs.columns[i].scale))
            return wrong("column '" + inputs.columns[i].name +
                         "' holds values that are not finite");
    }
    inputs.label_mean = label_moments.mean;
    inputs.label_scale = label_moments.scale();
    if (!std::isfinite(inputs.label_mean) || !std::isfinite(inputs.label_scale))
        return wrong("column '" + inputs.label + "' holds values that are not finite");
    return {};
}

Result<void> read_samples(const Inputs& inputs, const loader::Batch& batch, Samples& samples) {
    const auto row = static_cast<std::size_t>(inputs.row_elements());
    samples.count = static_cast<std::int64_t>(batch.count);
    samples.features.resize(batch.count * row);
    if (inputs.is_classification())
        samples.classes.resize(batch.count);
    else
        samples.values.resize(batch.count);
    for (const InputColumn& column : inputs.columns)
        place_column(column, column_of(batch, column.name), samples, row);
    return read_labels(inputs, batch, samples);
}

}  // namespace tune::train
