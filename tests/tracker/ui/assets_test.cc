#include "web/assets.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tune::web {
namespace {

TEST(Assets, ThePageIsThere) {
    const Asset* page = find_asset("/index.html");
    ASSERT_NE(page, nullptr);
    EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
    EXPECT_NE(page->bytes.find("<!doctype html>"), std::string_view::npos);
    EXPECT_FALSE(page->immutable);
}

TEST(Assets, AddressesOfThePageFindItFilesAreExact) {
    const Asset* page = find_asset("/index.html");
    for (const char* path : {"/", "/e/3", "/r/0af", "/s/a study"})
        EXPECT_EQ(find_asset(path), page);
    for (const char* path : {"/app.js", "/x/y.css", "/../index.html"})
        EXPECT_EQ(find_asset(path), nullptr) << path;
}

TEST(Assets, EachHasATypeATagAndSmallerGzip) {
    std::set<std::string_view> paths;
    for (const Asset& asset : assets()) {
        EXPECT_TRUE(paths.insert(asset.path).second) << asset.path;
        EXPECT_TRUE(asset.path.starts_with("/"));
        EXPECT_FALSE(asset.bytes.empty()) << asset.path;
        EXPECT_FALSE(asset.content_type.empty()) << asset.path;
        EXPECT_TRUE(asset.etag.starts_with('"') && asset.etag.ends_with('"')) << asset.path;
        if (asset.gzip.empty()) continue;
        EXPECT_LT(asset.gzip.size(), asset.bytes.size()) << asset.path;
        EXPECT_TRUE(asset.gzip.starts_with("\x1f\x8b")) << asset.path;
    }
}

TEST(Assets, WhatThePageNamesIsEmbedded) {
    const std::string html(find_asset("/index.html")->bytes);
    std::size_t found = 0;
    for (const Asset& asset : assets())
        if (asset.path != "/index.html" && html.find(asset.path.substr(1)) != std::string::npos)
            ++found;
    EXPECT_GE(found, 1u);
}

}  // namespace
}  // namespace tune::web
