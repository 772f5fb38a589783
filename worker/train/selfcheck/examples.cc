#include "worker/train/selfcheck/examples.h"

#include <array>

#include "loader/format/mds/writer.h"
#include "worker/train/philox.h"

namespace tune::train {
namespace {

constexpr std::int64_t kSide = 8;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kRows = 16;
constexpr std::int64_t kVocabulary = 11;

/// Pixels 0..255 whose bright row tells the class.
std::array<std::uint8_t, kSide * kSide> image_of(std::int64_t sample) {
    std::array<std::uint8_t, kSide * kSide> pixels{};
    const auto numbers = [&](std::size_t i) {
        return philox4x32({static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(i), 0, 0},
                          {1, 2})[0];
    };
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::int64_t row = static_cast<std::int64_t>(i) / kSide;
        const bool bright = row == sample % kClasses % kSide;
        pixels[i] = static_cast<std::uint8_t>(numbers(i) % 100 + (bright ? 120 : 0));
    }
    return pixels;
}

Result<void> write_split(const std::filesystem::path& folder, std::int64_t first,
                         std::int64_t count) {
    TUNE_TRY(writer, loader::MdsWriter::open(
                         {.directory = folder,
                          .columns = {{"image", "ndarray:uint8:8,8"}, {"label", "int"}}}));
    for (std::int64_t i = first; i < first + count; ++i) {
        const auto image = image_of(i);
        const loader::Value values[] = {std::as_bytes(std::span(image)), i % kClasses};
        TUNE_TRY_VOID(writer.write(values));
    }
    TUNE_TRY_VOID(writer.finish());
    return {};
}

}  // namespace

std::vector<std::string> model_names() {
    std::string type = find_parameter("model")->type;
    for (char& c : type)
        if (c == '|') c = ',';
    return split_list(type);
}

std::optional<Example> example_of(const std::string& model, const std::string& module) {
    Example example;
    TrainConfig& config = example.config;
    Inputs& inputs = example.inputs;
    if (!set_parameter(config, "model", model)) return {};
    if (config.model == ModelKind::kTorchScript && module.empty()) return {};
    config.module = module;
    config.width = 8;
    config.depth = 2;
    config.heads = 2;
    config.stem = Stem::kSmall;
    inputs.columns = {{.name = "image", .elements = kSide * kSide}};
    example.samples.count = kRows;
    if (config.model == ModelKind::kGpt) {
        inputs.shape = {kSide * kSide};
        inputs.vocabulary = kVocabulary;
        for (std::int64_t i = 0; i < kRows; ++i)
            for (const std::uint8_t pixel : image_of(i))
                example.samples.tokens.push_back(pixel * kVocabulary / 256);
        return example;
    }
    inputs.shape = {kSide, kSide};
    inputs.label = "label";
    inputs.classes = kClasses;
    for (std::int64_t i = 0; i < kRows; ++i) {
        for (const std::uint8_t pixel : image_of(i))
            example.samples.features.push_back(static_cast<float>(pixel) / 64.0f - 1.0f);
        example.samples.classes.push_back(i % kClasses);
    }
    return example;
}

Result<void> write_example_data(const std::filesystem::path& folder, std::int64_t samples) {
    TUNE_TRY_VOID(write_split(folder / "train", 0, samples));
    return write_split(folder / "val", samples, samples / 4);
}

}  // namespace tune::train
