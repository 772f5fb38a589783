// Where the token lies and how programs find it: nothing that another user could have written or
// read is believed, and a token goes only to the process that announced itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/id.h"
#include "base/json.h"
#include "base/system/file.h"
#include "tracker/auth/token_file.h"
#include "tracker/client/local_servers.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

class TokenFilesTest : public ::testing::Test {
protected:
    TokenFilesTest() {
        fs::create_directories(data_);
        ::setenv("TUNE_RUNTIME_DIR", runtime_.c_str(), 1);
        ::unsetenv("TUNE_TOKEN");
    }
    ~TokenFilesTest() override {
        ::unsetenv("TUNE_RUNTIME_DIR");
        fs::remove_all(folder_);
    }

    static void set_mode(const fs::path& path, unsigned mode) {
        fs::permissions(path, static_cast<fs::perms>(mode));
    }
    static unsigned mode_of(const fs::path& path) {
        return static_cast<unsigned>(fs::status(path).permissions());
    }
    std::string announced_token() {
        token_ = own_token(data_).value();
        EXPECT_TRUE(announce_server(kUrl, data_).has_value());
        return "Bearer " + token_;
    }

    static constexpr const char* kUrl = "http://127.0.0.1:4711";
    fs::path folder_ = fs::temp_directory_path() / ("token-files-" + random_hex(8));
    fs::path data_ = folder_ / "data";
    fs::path runtime_ = folder_ / "runtime";
    std::string token_;
};

TEST_F(TokenFilesTest, ATokenIsMadeOnceAndIsItsOwners) {
    const std::string token = own_token(data_).value();
    EXPECT_EQ(token.size(), 64U);
    EXPECT_EQ(mode_of(data_ / "token"), 0600U);
    EXPECT_EQ(own_token(data_).value(), token);
}

TEST_F(TokenFilesTest, OneThatOthersCouldReadOrThatIsNoneIsReplaced) {
    const std::string first = own_token(data_).value();
    set_mode(data_ / "token", 0640);
    const std::string second = own_token(data_).value();
    EXPECT_NE(second, first);
    EXPECT_EQ(mode_of(data_ / "token"), 0600U);
    for (const char* text : {"", "short", "0123456789ABCDEF"}) {
        ASSERT_TRUE(write_file_atomic(data_ / "token", text).has_value());
        set_mode(data_ / "token", 0600);
        EXPECT_EQ(own_token(data_).value().size(), 64U) << text;
    }
    fs::rename(data_ / "token", data_ / "elsewhere");
    fs::create_symlink(data_ / "elsewhere", data_ / "token");
    const std::string linked = own_token(data_).value();
    EXPECT_FALSE(fs::is_symlink(data_ / "token"));
    EXPECT_EQ(own_token(data_).value(), linked);
    EXPECT_EQ(own_token(folder_ / "nowhere").error().code, Code::kPermissionDenied);
}

TEST_F(TokenFilesTest, ATokenIsFoundByTheServersAddress) {
    const std::string wanted = announced_token();
    EXPECT_EQ(mode_of(runtime_), 0700U);
    for (const char* url : {kUrl, "http://localhost:4711", "http://127.0.0.1:4711/prefix"})
        EXPECT_EQ(local_authorization(url), wanted) << url;
    for (const char* url : {"http://127.0.0.1:4712", "https://127.0.0.1:4711", "http://far:4711",
                            "http://10.0.0.1:4711", "ftp://127.0.0.1:4711", ""})
        EXPECT_EQ(local_authorization(url), "") << url;
    ::setenv("TUNE_TOKEN", "given", 1);
    EXPECT_EQ(local_authorization("http://far:4711"), "Bearer given");
    ::unsetenv("TUNE_TOKEN");
    withdraw_server(kUrl);
    EXPECT_EQ(local_authorization(kUrl), "");
}

TEST_F(TokenFilesTest, ATokenGoesOnlyWhereItsServerLives) {
    const std::string wanted = announced_token();
    const fs::path file = runtime_ / "server-4711.json";
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    Json announced = parse_json(read_file(file).value()).value();
    announced["pid"] = child;
    ASSERT_TRUE(write_file_atomic(file, to_text(announced)).has_value());
    EXPECT_EQ(local_authorization(kUrl), "") << "whoever listens there now is another";
    withdraw_server(kUrl);
    EXPECT_TRUE(fs::exists(file)) << "it is another process's";
    EXPECT_TRUE(announce_server(kUrl, data_).has_value());
    EXPECT_EQ(local_authorization(kUrl), wanted);
}

TEST_F(TokenFilesTest, WhatOthersCouldHaveWrittenIsNotBelieved) {
    const std::string wanted = announced_token();
    set_mode(runtime_, 0770);
    EXPECT_EQ(local_authorization(kUrl), "");
    EXPECT_EQ(announce_server(kUrl, data_).error().code, Code::kPermissionDenied);
    set_mode(runtime_, 0700);
    EXPECT_EQ(local_authorization(kUrl), wanted);
    set_mode(data_ / "token", 0604);
    EXPECT_EQ(local_authorization(kUrl), "");
    set_mode(data_ / "token", 0600);
    for (const char* text : {"", "[]", "{}", R"({"url": 1, "data": "x", "pid": 1})",
                             R"({"url": "http://127.0.0.1:4711", "data": "/", "pid": "1"})"}) {
        ASSERT_TRUE(write_file_atomic(runtime_ / "server-4711.json", text).has_value());
        EXPECT_EQ(local_authorization(kUrl), "") << text;
    }
}

}  // namespace
}  // namespace tune::tracker
