#include "web/assets.h"

#include <cstddef>

// The table of files comes from build.mjs (or from CMakeLists.txt for the notice), one line a file:
//   TUNE_WEB_ASSET(index, "path", "content type", "\"etag\"", immutable)
// and asset_bytes.S holds the bytes between the symbols that the macro below names.
#define TUNE_WEB_ASSET(index, path, type, etag, immutable)  \
    extern "C" const char tune_web_asset_##index##_begin[]; \
    extern "C" const char tune_web_asset_##index##_end[];   \
    extern "C" const char tune_web_asset_##index##_gz_end[];
#include "asset_table.inc"
#undef TUNE_WEB_ASSET

namespace tune::web {
namespace {

std::string_view between(const char* begin, const char* end) {
    return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::span<const Asset> assets() {
#define TUNE_WEB_ASSET(index, path, type, etag, immutable)                        \
    Asset{path,                                                                   \
          between(tune_web_asset_##index##_begin, tune_web_asset_##index##_end),  \
          between(tune_web_asset_##index##_end, tune_web_asset_##index##_gz_end), \
          type,                                                                   \
          etag,                                                                   \
          immutable},
    static const Asset table[] = {
#include "asset_table.inc"
    };
#undef TUNE_WEB_ASSET
    return table;
}

const Asset* find_asset(std::string_view url_path) {
    for (const Asset& asset : assets())
        if (asset.path == url_path) return &asset;
    const std::size_t slash = url_path.rfind('/');
    const std::string_view last =
        slash == std::string_view::npos ? url_path : url_path.substr(slash + 1);
    if (last.find('.') != std::string_view::npos) return nullptr;
    for (const Asset& asset : assets())
        if (asset.path == "/index.html") return &asset;
    return nullptr;
}

}  // namespace tune::web
