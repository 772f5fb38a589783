// Columns of any numeric type become float32 rows, standardised with mean and deviation of the
// training split; one of tokens becomes int64. The moments are merged chunk by chunk (Chan et al.
// 1979), which stays accurate for large means and depends on no thread. They are part of the
// checkpoint: a model is never fed by other numbers than those of its training.

#include "worker/train/inputs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <type_traits>

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
                                                       const ColumnInfo* label) {
    std::vector<const ColumnInfo*> chosen;
    for (const std::string& name : split_list(config.features)) {
        const ColumnInfo* column = find(columns, name);
        if (column == nullptr || !column->fixed || column == label)
            return wrong(
                "features: '" + name +
                "' is not a numeric column besides the label; the data have: " + listed(columns));
        chosen.push_back(column);
    }
    if (!chosen.empty()) return chosen;
    for (const ColumnInfo& column : columns)
        if (column.fixed && &column != label) chosen.push_back(&column);
    if (chosen.empty())
        return wrong("no column" +
                     (label == nullptr ? "" : " besides the label '" + label->name + "'") +
                     " is numeric with a fixed shape; the data have: " + listed(columns));
    std::sort(chosen.begin(), chosen.end(), [](const ColumnInfo* a, const ColumnInfo* b) {
        return natural_less(a->name, b->name);
    });
    return chosen;
}

bool reads_tokens(const TrainConfig& config, const std::vector<const ColumnInfo*>& features) {
    if (config.input != InputKind::kAuto) return config.input == InputKind::kTokens;
    if (is_language(config)) return true;
    const ColumnInfo& first = *features.front();
    // A list of bytes is more often numbers, e.g. the pixels of an image.
    return config.model == ModelKind::kTransformer && features.size() == 1 &&
           is_integer(first.dtype) && first.dtype != Dtype::kUint8 && first.shape.size() == 1;
}

Result<void> check_tokens(const TrainConfig& config, const std::vector<const ColumnInfo*>& features,
                          const std::vector<ColumnInfo>& columns) {
    const std::int64_t least = is_language(config) ? 2 : 1;
    if (features.size() != 1 || !is_integer(features[0]->dtype) ||
        element_count(features[0]->shape) < least)
        return wrong(
            "features: tokens are one column of lists of integers; name it with "
            "--features. The data have: " +
            listed(columns));
    return {};
}

/// Whether `label` is a class, as far as its type and the task tell.
Result<bool> label_is_class(const TrainConfig& config, const ColumnInfo& label) {
    const bool integer = is_integer(label.dtype);
    const bool values = config.task == TaskKind::kRegression || config.loss == LossKind::kMse ||
                        config.loss == LossKind::kMae || config.loss == LossKind::kHuber ||
                        config.loss == LossKind::kBce;
    const bool classes =
        config.task == TaskKind::kClassification || config.loss == LossKind::kCrossEntropy;
    if (classes && !values && !integer)
        return wrong("label: column '" + label.name + "' (" + label.encoding +
                     ") holds values; classes are integers 0, 1, 2, ...");
    return integer && !values;
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

/// A column of classes or tokens, for counting them.
struct Counted {
    std::string column;
    std::size_t elements = 1;
    const char* name;    ///< of one of its numbers
    const char* plural;  ///< of what the numbers are
    double limit;
};

/// The largest number of a batch; errors for one below 0.
Result<std::int64_t> largest_number(const Counted& counted, const loader::Batch& batch) {
    const loader::Column& column = column_of(batch, counted.column);
    return with_type(column.info->dtype, [&]<class T>(const T*) -> Result<std::int64_t> {
        const T* in = reinterpret_cast<const T*>(column.data);
        double largest = 0.0;
        for (std::size_t i = 0; i < batch.count * counted.elements; ++i) {
            const auto value = static_cast<double>(in[i]);
            if (!(value >= 0.0 && value < counted.limit))
                return wrong("sample " + std::to_string(batch.sample_ids[i / counted.elements]) +
                             ": " + counted.name + " " + to_text(json_number(value)) +
                             " in column '" + counted.column + "' is not a " +
                             (std::string_view(counted.name) == "label" ? "class" : "token") +
                             "; " + counted.plural + " are 0, 1, 2, ... below " +
                             std::to_string(static_cast<std::int64_t>(counted.limit)));
            largest = std::max(largest, value);
        }
        return static_cast<std::int64_t>(largest);
    });
}

/// What the loss bce can do with labels.
Result<void> check_probabilities(const Inputs& inputs, const loader::Batch& batch) {
    const loader::Column& label = column_of(batch, inputs.label);
    return with_type(label.info->dtype, [&]<class T>(const T*) -> Result<void> {
        const T* in = reinterpret_cast<const T*>(label.data);
        for (std::size_t i = 0; i < batch.count; ++i) {
            const auto value = static_cast<double>(in[i]);
            if (!(value >= 0.0 && value <= 1.0))
                return wrong("sample " + std::to_string(batch.sample_ids[i]) + ": label " +
                             to_text(json_number(value)) + " in column '" + inputs.label +
                             "' is no probability; loss bce wants numbers from 0 to 1");
        }
        return {};
    });
}

void keep_bytes(const loader::Column& column, std::size_t size, Samples& samples) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(column.data);
    samples.bytes.assign(bytes, bytes + size);
}

Result<void> read_tokens(const Inputs& inputs, const loader::Batch& batch, Samples& samples) {
    const loader::Column& column = column_of(batch, inputs.columns.front().name);
    const auto row = static_cast<std::size_t>(inputs.row_elements());
    const std::size_t count = batch.count * row;
    if (!inputs.keeps_bytes) samples.tokens.resize(count);
    const auto limit = static_cast<std::uint64_t>(inputs.vocabulary);
    return with_type(column.info->dtype, [&]<class T>(const T*) -> Result<void> {
        const T* in = reinterpret_cast<const T*>(column.data);
        for (std::size_t i = 0; i < count; ++i) {
            std::int64_t token = 0;
            if constexpr (std::is_integral_v<T>)  // choose_inputs() takes nothing else
                token = static_cast<std::int64_t>(in[i]);
            if (static_cast<std::uint64_t>(token) >= limit)
                return wrong("sample " + std::to_string(batch.sample_ids[i / row]) + ": token " +
                             std::to_string(token) + " in column '" + inputs.columns.front().name +
                             "' is not one of 0 to " + std::to_string(limit - 1) +
                             "; --vocabulary N sets their number");
            if (!inputs.keeps_bytes) samples.tokens[i] = token;
        }
        if (inputs.keeps_bytes) keep_bytes(column, count * sizeof(T), samples);
        return {};
    });
}

}  // namespace

std::int64_t Inputs::row_elements() const {
    return element_count(shape);
}

std::vector<std::string> Inputs::column_names() const {
    std::vector<std::string> names;
    if (!is_language()) names.push_back(label);
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
    Json json = {
        {"columns", std::move(list)}, {"shape", shape},           {"label", label},
        {"classes", classes},         {"label_mean", label_mean}, {"label_scale", label_scale}};
    if (vocabulary > 0) json["vocabulary"] = vocabulary;
    return json;
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
    inputs.vocabulary = json.value("vocabulary", std::int64_t{0});
    if (inputs.row_elements() != offset) return wrong("the inputs' shape and columns differ");
    return inputs;
} catch (const Json::exception& error) {
    return wrong(std::string("the description of the inputs is damaged: ") + error.what());
}

Result<Inputs> choose_inputs(const TrainConfig& config, const std::vector<ColumnInfo>& columns) {
    const ColumnInfo* label = nullptr;
    Inputs inputs;
    if (!is_language(config)) {
        TUNE_TRY(chosen, choose_label(config, columns));
        label = chosen;
        inputs.label = label->name;
        TUNE_TRY(is_class, label_is_class(config, *label));
        inputs.classes = is_class ? std::max<std::int64_t>(config.classes, 1) : 0;
    }
    TUNE_TRY(features, choose_features(config, columns, label));
    if (reads_tokens(config, features)) {
        TUNE_TRY_VOID(check_tokens(config, features, columns));
        inputs.vocabulary = std::max<std::int64_t>(config.vocabulary, 1);
    }
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

void keep_stored(const std::vector<ColumnInfo>& train, const std::vector<ColumnInfo>& val,
                 Inputs& inputs) {
    if (inputs.columns.size() != 1) return;
    const ColumnInfo* first = find(train, inputs.columns.front().name);
    const ColumnInfo* second = find(val, inputs.columns.front().name);
    if (first == nullptr || second == nullptr || first->dtype != second->dtype) return;
    // LibTorch has few operations for the larger unsigned types, but it converts them.
    inputs.keeps_bytes =
        inputs.is_tokens() ? is_integer(first->dtype) : first->dtype == Dtype::kUint8;
    inputs.stored = first->dtype;
}

namespace {

/// What one look at the data finds out.
struct Measures {
    std::vector<Moments> columns;
    Moments label;
    std::int64_t largest_class = 0;
    std::int64_t largest_token = 0;
};

Result<void> add_batch(const TrainConfig& config, const Inputs& inputs, const loader::Batch& batch,
                       Measures& measures) {
    for (std::size_t i = 0; !inputs.is_tokens() && i < inputs.columns.size(); ++i) {
        const auto elements = static_cast<std::size_t>(inputs.columns[i].elements);
        add_to_moments(column_of(batch, inputs.columns[i].name), batch.count * elements,
                       measures.columns[i]);
    }
    if (inputs.is_tokens() && config.vocabulary == 0) {
        const Counted tokens{inputs.columns.front().name,
                             static_cast<std::size_t>(inputs.row_elements()), "token", "tokens",
                             1e8};
        TUNE_TRY(in_batch, largest_number(tokens, batch));
        measures.largest_token = std::max(measures.largest_token, in_batch);
    }
    if (inputs.is_classification() && config.classes == 0) {
        TUNE_TRY(in_batch, largest_number({inputs.label, 1, "label", "classes", 1e6}, batch));
        measures.largest_class = std::max(measures.largest_class, in_batch);
    }
    if (config.loss == LossKind::kBce) TUNE_TRY_VOID(check_probabilities(inputs, batch));
    if (!inputs.is_classification() && !inputs.is_language())
        add_to_moments(column_of(batch, inputs.label), batch.count, measures.label);
    return {};
}

}  // namespace

Result<void> measure_inputs(const TrainConfig& config, loader::Dataset& dataset, Inputs& inputs) {
    Measures measures;
    measures.columns.resize(inputs.columns.size());
    std::int64_t seen = 0;
    loader::Batch batch;
    while (seen < kMeasuredSamplesMax) {
        TUNE_TRY(more, dataset.next(batch));
        if (!more) break;
        seen += static_cast<std::int64_t>(batch.count);
        TUNE_TRY_VOID(add_batch(config, inputs, batch, measures));
    }
    if (inputs.is_classification() && config.classes == 0)
        inputs.classes = measures.largest_class + 1;
    if (inputs.is_tokens() && config.vocabulary == 0)
        inputs.vocabulary = measures.largest_token + 1;
    if (config.normalize == Normalize::kNone || inputs.is_language()) return {};
    for (std::size_t i = 0; !inputs.is_tokens() && i < inputs.columns.size(); ++i) {
        inputs.columns[i].mean = measures.columns[i].mean;
        inputs.columns[i].scale = measures.columns[i].scale();
        if (!std::isfinite(inputs.columns[i].mean) || !std::isfinite(inputs.columns[i].scale))
            return wrong("column '" + inputs.columns[i].name +
                         "' holds values that are not finite");
    }
    if (config.loss == LossKind::kBce) return {};  // probabilities stay what they are
    inputs.label_mean = measures.label.mean;
    inputs.label_scale = measures.label.scale();
    if (!std::isfinite(inputs.label_mean) || !std::isfinite(inputs.label_scale))
        return wrong("column '" + inputs.label + "' holds values that are not finite");
    return {};
}

Result<void> read_samples(const Inputs& inputs, const loader::Batch& batch, Samples& samples) {
    const auto row = static_cast<std::size_t>(inputs.row_elements());
    samples.count = static_cast<std::int64_t>(batch.count);
    if (inputs.is_tokens()) {
        TUNE_TRY_VOID(read_tokens(inputs, batch, samples));
    } else if (inputs.keeps_bytes) {
        keep_bytes(column_of(batch, inputs.columns.front().name), batch.count * row, samples);
    } else {
        samples.features.resize(batch.count * row);
        for (const InputColumn& column : inputs.columns)
            place_column(column, column_of(batch, column.name), samples, row);
    }
    if (inputs.is_language()) return {};
    if (inputs.is_classification())
        samples.classes.resize(batch.count);
    else
        samples.values.resize(batch.count);
    return read_labels(inputs, batch, samples);
}

}  // namespace tune::train
