#pragma once
// A directory of a test, and small datasets written into it.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/id.h"
#include "loader/format/mds/writer.h"

namespace tune::loader {

/// A new directory that goes with the object.
class Scratch {
public:
    Scratch()
        : path_(std::filesystem::temp_directory_path() / ("tune-loader-test-" + random_hex(6))) {
        std::filesystem::create_directories(path_);
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
        return path_ / name;
    }

private:
    std::filesystem::path path_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Sample i: id = i (int), pixels = four bytes i, i + 1, ... (ndarray:uint8:2,2). About 11 samples
/// a shard by default.
inline Index write_numbers(const std::filesystem::path& directory, std::int64_t count,
                           MdsWriterOptions options = {}) {
    options.directory = directory;
    options.columns = {{"id", "int"}, {"pixels", "ndarray:uint8:2,2"}};
    if (options.size_limit == std::uint64_t{1} << 26) options.size_limit = 400;
    MdsWriter writer = MdsWriter::open(options).value();
    for (std::int64_t i = 0; i < count; ++i) {
        std::string pixels;
        for (int k = 0; k < 4; ++k) pixels.push_back(static_cast<char>(i + k));
        writer.write(std::vector<Value>{i, std::as_bytes(std::span(pixels))}).value();
    }
    return writer.finish().value();
}

/// Sample i: id = i (int), text = i times "x" (str).
inline Index write_texts(const std::filesystem::path& directory, std::int64_t count,
                         MdsWriterOptions options = {}) {
    options.directory = directory;
    options.columns = {{"id", "int"}, {"text", "str"}};
    if (options.size_limit == std::uint64_t{1} << 26) options.size_limit = 400;
    MdsWriter writer = MdsWriter::open(options).value();
    for (std::int64_t i = 0; i < count; ++i) {
        const std::string text(static_cast<std::size_t>(i), 'x');
        writer.write(std::vector<Value>{i, std::string_view(text)}).value();
    }
    return writer.finish().value();
}

}  // namespace tune::loader
