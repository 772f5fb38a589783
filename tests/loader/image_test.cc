// Images and padded columns: pixels equal to Pillow's (images/make_golden.py), random parts that
// depend on seed, epoch and sample alone, damaged files that are named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "loader/dataset.h"
#include "loader/decode/image_file.h"
#include "loader/decode/task_crew.h"
#include "loader/format/hash.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kImages = std::filesystem::path(__FILE__).parent_path() / "images";

/// One class with copies of `file`.
void write_folder(const Scratch& scratch, const std::string& file, int copies = 1) {
    std::filesystem::create_directories(scratch / "set" / "a");
    for (int i = 0; i < copies; ++i)
        std::filesystem::copy_file(
            kImages / file,
            scratch / "set" / "a" /
                (std::to_string(100 + i) + std::filesystem::path(file).extension().string()));
}

DatasetOptions images(const Scratch& scratch, const ImageOptions& image) {
    DatasetOptions options;
    options.directory = scratch / "set";
    options.format = "images";
    options.columns = {"image", "label"};
    options.column_options = {{.name = "image", .image = image}};
    options.batch_size = 1;
    return options;
}

/// All samples of one epoch by their ids.
std::map<std::int64_t, std::string> epoch_of(Dataset& dataset) {
    std::map<std::int64_t, std::string> samples;
    Batch batch;
    while (dataset.next(batch).value())
        for (std::size_t i = 0; i < batch.count; ++i)
            samples[batch.sample_ids[i]] = std::string(batch.column("image")->text(i));
    return samples;
}

std::string first_of(const DatasetOptions& options) {
    auto dataset = Dataset::open(options).value();
    Batch batch;
    EXPECT_TRUE(dataset->next(batch).value());
    return std::string(batch.column("image")->text(0));
}

std::string error_of(const DatasetOptions& options) {
    Result<std::unique_ptr<Dataset>> dataset = Dataset::open(options);
    if (!dataset) return dataset.error().message;
    Batch batch;
    const Result<bool> more = (*dataset)->next(batch);
    return more ? "no error" : more.error().message;
}

TEST(Image, HasThePixelsOfPillow) {
    const Json cases = Json::parse(read_bytes(kImages / "expected.json"));
    std::set<std::string> files;
    for (const Json& one : cases) {
        const Scratch scratch;
        const auto name = one["file"].get<std::string>();
        files.insert(name);
        write_folder(scratch, name);
        ImageOptions image;
        image.width = one["width"].get<int>();
        image.height = one["height"].get<int>();
        image.shorter_side = one["shorter_side"].get<int>();
        if (image.shorter_side > 0) image.fit = ImageOptions::Fit::kCentreCrop;
        image.decodes_scaled = false;
        const std::string pixels = first_of(images(scratch, image));
        EXPECT_EQ(hash_hex("xxh3_64", std::as_bytes(std::span(pixels))).value(), one["hash"])
            << one;
        // Decoded at a fraction it is nearly the same image.
        image.decodes_scaled = true;
        const std::string scaled = first_of(images(scratch, image));
        double sum = 0;
        for (const char pixel : scaled) sum += static_cast<unsigned char>(pixel);
        EXPECT_NEAR(sum / static_cast<double>(scaled.size()), one["mean"].get<double>(), 2.0)
            << one;
    }
    EXPECT_EQ(files.size(), 8u);
}

TEST(Image, BecomesFloatsPlanesAndGrey) {
    const Scratch scratch;
    write_folder(scratch, "rgb.png");
    ImageOptions image{.height = 20, .width = 30};
    const std::string bytes = first_of(images(scratch, image));
    image.dtype = Dtype::kFloat32;
    image.layout = ImageOptions::Layout::kChw;
    image.mean = {0.5, 0.25, 0.125};
    image.deviation = {0.5, 2.0, 1.0};
    DatasetOptions options = images(scratch, image);
    auto dataset = Dataset::open(options).value();
    EXPECT_EQ(dataset->columns()[0].shape, (std::vector<std::int64_t>{3, 20, 30}));
    EXPECT_EQ(dataset->columns()[0].dtype, Dtype::kFloat32);
    Batch batch;
    ASSERT_TRUE(dataset->next(batch).value());
    const auto* floats = reinterpret_cast<const float*>(batch.column("image")->data);
    for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t i = 0; i < 600; ++i) {
            const double value = static_cast<unsigned char>(bytes[i * 3 + c]) / 255.0;
            EXPECT_EQ(floats[c * 600 + i],
                      static_cast<float>((value - image.mean[c]) / image.deviation[c]));
        }
    image = {.height = 20, .width = 30, .channels = 1};
    EXPECT_EQ(first_of(images(scratch, image)).size(), 600u);
}

TEST(Image, RandomPartsDependOnSeedEpochAndSampleAlone) {
    const Scratch scratch;
    write_folder(scratch, "rgb.jpg", 24);
    ImageOptions image{.height = 32, .width = 32};
    image.fit = ImageOptions::Fit::kRandomResizedCrop;
    image.flip = 0.5;
    DatasetOptions options = images(scratch, image);
    auto plain = Dataset::open(options).value();
    const auto first = epoch_of(*plain);
    const auto second = epoch_of(*plain);
    std::set<std::string> different;
    for (const auto& [id, pixels] : first) {
        different.insert(pixels);
        EXPECT_NE(pixels, second.at(id));
    }
    EXPECT_EQ(different.size(), 24u) << "every sample has a part of its own";

    options.threads = 3;
    options.batch_size = 7;
    options.shuffle = true;
    auto threaded = Dataset::open(options).value();
    EXPECT_EQ(epoch_of(*threaded), first);
    EXPECT_EQ(epoch_of(*threaded), second);
    for (int rank = 0; rank < 2; ++rank) {
        options.world = {.rank = rank, .size = 2};
        auto ranked = Dataset::open(options).value();
        for (const auto& [id, pixels] : epoch_of(*ranked)) EXPECT_EQ(pixels, first.at(id));
    }
    options.seed += 1;
    auto reseeded = Dataset::open(options).value();
    for (const auto& [id, pixels] : epoch_of(*reseeded)) EXPECT_NE(pixels, first.at(id));
}

TEST(Image, RandomCropsMoveByWholePixelsAndHaveABorder) {
    const Scratch scratch;
    write_folder(scratch, "rgb.png", 40);
    const ImageOptions whole{.height = 151, .width = 203};
    const std::string stored = first_of(images(scratch, whole));
    ImageOptions image = whole;
    image.fit = ImageOptions::Fit::kRandomCrop;
    image.border = 4;
    auto dataset = Dataset::open(images(scratch, image)).value();
    std::set<std::pair<int, int>> places;
    for (const auto& [id, pixels] : epoch_of(*dataset)) {
        const auto at = [&](const std::string& of, int x, int y) {
            return of.substr(3 * static_cast<std::size_t>(y * 203 + x), 3);
        };
        bool is_found = false;
        for (int left = -4; left <= 4 && !is_found; ++left)
            for (int top = -4; top <= 4 && !is_found; ++top) {
                is_found = true;
                for (int y = 0; y < 151 && is_found; y += 5)
                    for (int x = 0; x < 203 && is_found; x += 5) {
                        const bool is_inside =
                            x + left >= 0 && x + left < 203 && y + top >= 0 && y + top < 151;
                        is_found = at(pixels, x, y) == (is_inside ? at(stored, x + left, y + top)
                                                                  : std::string(3, '\0'));
                    }
                if (is_found) places.emplace(left, top);
            }
        EXPECT_TRUE(is_found) << id;
    }
    EXPECT_GT(places.size(), 15u);
    image.border = 0;
    image.height = 152;
    EXPECT_THAT(error_of(images(scratch, image)),
                AllOf(HasSubstr("sample 0, column 'image'"), HasSubstr("203 x 151 is too small")));
}

TEST(Image, MirrorsAboutHalfOfThem) {
    const Scratch scratch;
    write_folder(scratch, "rgb.png", 64);
    const std::string stored = first_of(images(scratch, {.height = 16, .width = 16}));
    ImageOptions image{.height = 16, .width = 16};
    image.flip = 0.5;
    auto dataset = Dataset::open(images(scratch, image)).value();
    int mirrored = 0;
    for (const auto& [id, pixels] : epoch_of(*dataset)) {
        if (pixels == stored) continue;
        ++mirrored;
        for (std::size_t y = 0; y < 16; ++y)
            for (std::size_t x = 0; x < 16; ++x)
                ASSERT_EQ(pixels.substr(3 * (16 * y + x), 3),
                          stored.substr(3 * (16 * y + 15 - x), 3));
    }
    EXPECT_GT(mirrored, 16);
    EXPECT_LT(mirrored, 48);
}

TEST(Image, DamagedFilesAreErrorsThatNameTheSample) {
    for (const char* file : {"rgb.png", "rgb.jpg", "progressive.jpg", "cmyk.jpg"}) {
        const Scratch scratch;
        write_folder(scratch, file);
        const auto path =
            scratch / "set" / "a" / ("100" + std::filesystem::path(file).extension().string());
        const std::string whole = read_bytes(path);
        const DatasetOptions options = images(scratch, {.height = 8, .width = 8});
        for (const std::size_t size :
             {std::size_t{0}, std::size_t{3}, std::size_t{20}, whole.size() / 3}) {
            write_bytes(path, std::string_view(whole).substr(0, size));
            EXPECT_THAT(error_of(options), HasSubstr("sample 0, column 'image': the "))
                << file << size;
        }
        // Whatever the bytes are, there is an answer.
        for (std::size_t at = 0; at < whole.size(); at += 7) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 0x55);
            std::vector<std::uint8_t> memory;
            const auto bytes = std::as_bytes(std::span(changed));
            const auto size = image_file_size(bytes);
            if (!size) continue;
            const ImagePart part{{10, 10, 40, 40}, 2, 2, {20, 20}, 3};
            static_cast<void>(decode_image_file(bytes, part, memory));
        }
    }
}

TEST(Image, RefusesOptionsThatCannotBeMeant) {
    const Scratch scratch;
    write_folder(scratch, "rgb.png");
    const auto refusal = [&](const auto& change) {
        ImageOptions image{.height = 8, .width = 8};
        change(image);
        return error_of(images(scratch, image));
    };
    EXPECT_THAT(refusal([](auto& o) { o.height = 0; }), HasSubstr("height and width"));
    EXPECT_THAT(refusal([](auto& o) { o.width = 1 << 20; }), HasSubstr("height and width"));
    EXPECT_THAT(refusal([](auto& o) { o.channels = 2; }), HasSubstr("channels must be 1 or 3"));
    EXPECT_THAT(refusal([](auto& o) { o.flip = 1.5; }), HasSubstr("flip"));
    EXPECT_THAT(refusal([](auto& o) { o.area_min = 0; }), HasSubstr("area_min"));
    EXPECT_THAT(refusal([](auto& o) { o.mean = {0.5, 0.5, 0.5}; }), HasSubstr("float32"));
    EXPECT_THAT(refusal([](auto& o) { o.dtype = Dtype::kInt64; }), HasSubstr("uint8, float16"));
    DatasetOptions options = images(scratch, {.height = 8, .width = 8});
    options.column_options[0].name = "label";
    EXPECT_THAT(error_of(options), HasSubstr("column 'label' (int64) holds no images"));
}

TEST(SharedPixels, AreDecodedOnceAndChangeNoPixel) {
    const Scratch scratch;
    write_folder(scratch, "rgb.jpg", 20);
    ImageOptions image{.height = 40, .width = 40};
    image.fit = ImageOptions::Fit::kRandomResizedCrop;
    image.decodes_scaled = false;
    DatasetOptions options = images(scratch, image);
    const auto expected = epoch_of(*Dataset::open(options).value());
    options.decoded_cache = scratch / "shared";
    const auto files = [&] {
        std::vector<std::filesystem::path> found;
        for (const auto& entry : std::filesystem::directory_iterator(scratch / "shared"))
            found.push_back(entry.path());
        return found;
    };
    // Room for all, for about seven, and for none.
    for (const std::uint64_t limit : {10'000'000, 700'000, 10'000}) {
        options.decoded_cache_limit = limit;
        auto first = Dataset::open(options).value();
        EXPECT_EQ(epoch_of(*first), expected);
        ASSERT_EQ(files().size(), 1u);
        const auto used = [&] {
            std::uint64_t bytes = 0;
            std::memcpy(&bytes, read_bytes(files().front()).data() + 24, sizeof bytes);
            return bytes;
        };
        const std::uint64_t used_by_first = used();
        EXPECT_GT(used_by_first, limit == 10'000'000 ? 20u * 203 * 151 * 3 : 0u);
        options.threads = 2;
        auto second = Dataset::open(options).value();
        EXPECT_EQ(epoch_of(*second), expected);
        EXPECT_EQ(used(), used_by_first) << "nothing is decoded and put there twice";
        options.threads = 0;
        first.reset();
        EXPECT_EQ(files().size(), 1u) << "somebody still reads it";
        second.reset();
        EXPECT_TRUE(files().empty()) << "the last one removes it";
    }
    options.decoded_cache_limit = 100;
    EXPECT_THAT(error_of(options), HasSubstr("decoded_cache_limit must be more than"));
    // A killed process leaves its file; the next one removes it.
    write_bytes(scratch / "shared/tune-decoded-0123", "left behind");
    options.decoded_cache_limit = 1'000'000;
    auto dataset = Dataset::open(options).value();
    EXPECT_EQ(files().size(), 1u);
}

TEST(SharedPixels, ProcessesThatAreKilledHurtNobody) {
    const Scratch scratch;
    write_folder(scratch, "rgb.jpg", 60);
    DatasetOptions options = images(scratch, {.height = 40, .width = 40});
    options.decoded_cache = scratch / "shared";
    options.decoded_cache_limit = 20'000'000;
    const auto expected = epoch_of(*Dataset::open(options).value());
    auto reader = Dataset::open(options).value();
    for (int round = 0; round < 10; ++round) {
        std::vector<pid_t> children;
        for (int child = 0; child < 3; ++child) {
            children.push_back(fork());
            if (children.back() != 0) continue;
            const auto dataset = Dataset::open(options).value();
            while (true) epoch_of(*dataset);
        }
        EXPECT_EQ(epoch_of(*reader), expected);
        for (const pid_t child : children) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
    }
}

/// Sample i: tokens 0 .. i - 1.
void write_tokens(const Scratch& scratch, std::int64_t count) {
    MdsWriterOptions options;
    options.directory = scratch / "set";
    options.columns = {{"text", "str"}, {"tokens", "ndarray:int32"}};
    MdsWriter writer = MdsWriter::open(options).value();
    for (std::int64_t i = 1; i <= count; ++i) {
        std::vector<std::int32_t> tokens;
        for (std::int32_t k = 0; k < i; ++k) tokens.push_back(k);
        const ArrayView view{Dtype::kInt32, {i}, std::as_bytes(std::span(tokens))};
        const std::string text(static_cast<std::size_t>(i), 'x');
        writer.write(std::vector<Value>{std::string_view(text), view}).value();
    }
    static_cast<void>(writer.finish().value());
}

TEST(Padding, MakesRowsOfOneLengthWithAMask) {
    const Scratch scratch;
    write_tokens(scratch, 9);
    DatasetOptions options;
    options.directory = scratch / "set";
    options.batch_size = 9;
    options.column_options = {{.name = "tokens", .pad = PadOptions{.length = 4, .value = -1}},
                              {.name = "text", .pad = PadOptions{.length = 3, .at_start = true}}};
    auto dataset = Dataset::open(options).value();
    Batch batch;
    ASSERT_TRUE(dataset->next(batch).value());
    const auto* tokens = reinterpret_cast<const std::int32_t*>(batch.column("tokens")->data);
    const auto* mask = reinterpret_cast<const std::uint8_t*>(batch.column("tokens_mask")->data);
    EXPECT_EQ(batch.column("tokens")->info->shape, std::vector<std::int64_t>{4});
    for (std::size_t i = 0; i < 9; ++i)
        for (std::size_t k = 0; k < 4; ++k) {
            EXPECT_EQ(tokens[i * 4 + k], k < i + 1 ? static_cast<std::int32_t>(k) : -1);
            EXPECT_EQ(mask[i * 4 + k], k < i + 1 ? 1 : 0);
        }
    EXPECT_EQ(batch.column("text")->text(0), std::string("\0\0x", 3));
    EXPECT_EQ(batch.column("text")->text(8), "xxx");
    EXPECT_EQ(batch.column("text_mask")->text(0), std::string("\0\0\1", 3));

    options.column_options[0].pad->cuts = false;
    EXPECT_THAT(error_of(options), HasSubstr("sample 4, column 'tokens': it has 5 elements"));
    options.column_options[0].pad = PadOptions{.length = 0};
    EXPECT_THAT(error_of(options), HasSubstr("a padded length must lie in"));
    options.column_options[0].pad = PadOptions{.length = 4, .value = 1.5};
    EXPECT_THAT(error_of(options), HasSubstr("the value to fill up with is no int32"));
}

TEST(TaskCrew, DoesEveryPieceOnceWhoeverAsks) {
    for (const int threads : {0, 1, 4}) {
        TaskCrew crew(threads);
        std::atomic<int> pieces = 0;
        std::vector<std::thread> callers;
        for (int caller = 0; caller < 3; ++caller)
            callers.emplace_back([&] {
                for (int round = 0; round < 50; ++round) {
                    std::vector<std::atomic<int>> done(static_cast<std::size_t>(round));
                    crew.run(done.size(), [&](std::size_t i) {
                        ++done[i];
                        ++pieces;
                    });
                    for (const std::atomic<int>& one : done) ASSERT_EQ(one, 1);
                }
            });
        for (std::thread& caller : callers) caller.join();
        EXPECT_EQ(pieces, 3 * 49 * 50 / 2);
    }
}

/// Counts what is out, and gives memory that nothing else owns.
class CountingMemory final : public BatchMemory {
public:
    void* allocate(std::size_t bytes) override {
        ++allocated;
        ++out;
        return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    }
    void release(void* memory) override {
        --out;
        std::free(memory);
    }
    std::atomic<int> allocated = 0;
    std::atomic<int> out = 0;
};

TEST(BatchMemory, IsTheConsumersAndComesBack) {
    const Scratch scratch;
    write_folder(scratch, "rgb.jpg", 12);
    const auto memory = std::make_shared<CountingMemory>();
    {
        DatasetOptions options = images(scratch, {.height = 8, .width = 8});
        const std::string expected = first_of(options);
        options.memory = memory;
        auto dataset = Dataset::open(options).value();
        EXPECT_EQ(epoch_of(*dataset).at(0), expected);
        EXPECT_GT(memory->allocated, 0);
        Batch last;
        ASSERT_TRUE(dataset->next(last).value());
        dataset.reset();
        EXPECT_GT(memory->out, 0) << "a batch outlives its data set";
        EXPECT_EQ(last.column("image")->text(0), expected);
    }
    EXPECT_EQ(memory->out, 0);
}

TEST(StageStats, SayWhatHoldsTheReaderUp) {
    const Scratch scratch;
    write_folder(scratch, "rgb.jpg", 30);
    auto dataset = Dataset::open(images(scratch, {.height = 64, .width = 64})).value();
    EXPECT_EQ(bottleneck(dataset->stage_stats()), "Nothing has been read yet.");
    epoch_of(*dataset);
    const StageStats stats = dataset->stage_stats();
    EXPECT_EQ(stats.samples, 30);
    EXPECT_GT(stats.transform_s, 0);
    EXPECT_GT(stats.elapsed_s, stats.decode_wait_s);
    EXPECT_THAT(bottleneck(stats), HasSubstr("Decoding images holds the reader up"));
    EXPECT_THAT(bottleneck({.samples = 5,
                            .elapsed_s = 10,
                            .fetch_wait_s = 6,
                            .decode_wait_s = 1,
                            .fetched_bytes = 50'000'000}),
                HasSubstr("The network holds the reader up (70 % of the time waited, 5.0 MB/s"));
    EXPECT_THAT(bottleneck({.samples = 5, .elapsed_s = 10, .decode_wait_s = 0.05}),
                HasSubstr("The loader keeps up"));
}

}  // namespace
}  // namespace tune::loader
