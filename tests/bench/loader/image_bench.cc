// Images: 512 JPEG files of 500 x 375 pixels in MDS, read by the loader as pixels of the same size,
// beside libjpeg-turbo's own calls on the same files; and as parts of 224 x 224 for training.

#include <cstddef>
#include <cstdio>
// After cstdio.
#include <jpeglib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/id.h"
#include "loader/dataset.h"
#include "loader/format/mds/writer.h"
#include "tests/bench/loader/figures.h"
#include "tests/bench/loader/jpeg_file.h"

namespace tune::loader {
namespace {

constexpr int kFiles = 512;

void decode(const std::string& file, std::vector<std::uint8_t>& pixels) {
    jpeg_decompress_struct info = {};
    jpeg_error_mgr errors = {};
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    pixels.resize(std::size_t{info.output_width} * info.output_height * 3);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels.data() + std::size_t{info.output_scanline} * info.output_width * 3;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

double library_rate(const std::vector<std::string>& files, int threads) {
    const double seconds = best_seconds_of([&] {
        std::atomic<std::size_t> next = 0;
        std::vector<std::thread> decoders;
        for (int i = 0; i < threads; ++i)
            decoders.emplace_back([&] {
                std::vector<std::uint8_t> pixels;
                for (std::size_t file = next++; file < files.size(); file = next++)
                    decode(files[file], pixels);
            });
        for (std::thread& decoder : decoders) decoder.join();
    });
    return static_cast<double>(files.size()) / seconds;
}

double loader_rate(const std::filesystem::path& directory, int threads, const ImageOptions& image) {
    DatasetOptions options;
    options.directory = directory;
    options.batch_size = 32;
    options.shuffle = true;
    options.threads = threads;
    options.column_options = {{.name = "image", .image = image}};
    const auto dataset = Dataset::open(options).value();
    Batch batch;
    const double seconds = best_seconds_of([&] {
        while (dataset->next(batch).value()) {
        }
    });
    std::fprintf(stderr, "%s\n", bottleneck(dataset->stage_stats()).c_str());
    return kFiles / seconds;
}

int run() {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("tune-image-bench-" + random_hex(4));
    std::vector<std::string> files;
    MdsWriter writer =
        MdsWriter::open({.directory = directory, .columns = {{"image", "jpeg"}}}).value();
    for (int i = 0; i < kFiles; ++i) {
        files.push_back(jpeg_file(i));
        writer.write(std::vector<Value>{std::as_bytes(std::span(files.back()))}).value();
    }
    static_cast<void>(writer.finish().value());
    for (const int threads : {1, 2}) {
        const std::string with =
            ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
        const double library = library_rate(files, threads);
        print_figure("libjpeg-turbo's own decode" + with, library, "images/s", "higher");
        const double whole =
            loader_rate(directory, threads, {.height = kJpegHeight, .width = kJpegWidth});
        print_figure("JPEG, whole images" + with, whole, "images/s", "higher");
        print_figure("JPEG, whole images to libjpeg-turbo" + with, 100 * whole / library, "%",
                     "higher", 95);
        ImageOptions part{.height = 224, .width = 224};
        part.fit = ImageOptions::Fit::kRandomResizedCrop;
        part.flip = 0.5;
        const double parts = loader_rate(directory, threads, part);
        print_figure("JPEG, random parts of 224 x 224" + with, parts, "images/s", "higher");
    }
    std::filesystem::remove_all(directory);
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main() {
    return tune::loader::run();
}
