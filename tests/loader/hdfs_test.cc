// Which cluster, address, user and token a URL of HDFS means, and what its refusals mean. No
// network: a real HDFS answers in tests/contract/loader/clouds/test_hdfs.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/text/base64.h"
#include "loader/source/hdfs/failed_nodes.h"
#include "loader/source/hdfs/hadoop_settings.h"
#include "loader/source/hdfs/hadoop_token.h"
#include "loader/source/hdfs/hdfs_place.h"
#include "loader/source/hdfs/hdfs_refusal.h"
#include "loader/source/source_library.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::HasSubstr;

/// What `hdfs fetchdt` of Hadoop 3.4.2 wrote for 127.0.0.1:19870, and the token as WebHDFS has it.
constexpr const char* kTokenFile =
    "SERUUwABDzEyNy4wLjAuMToxOTg3MBwABHJvb3QEcm9vdACKAaIVmAK9igGiOaSGvQMEFO7s0KoyeLbI8mTey06+M1xU"
    "pnd5EldFQkhERlMgZGVsZWdhdGlvbg8xMjcuMC4wLjE6MTk4NzAA";
constexpr const char* kToken =
    "HAAEcm9vdARyb290AIoBohWYAr2KAaI5pIa9AwQU7uzQqjJ4tsjyZN7LTr4zXFSmd3kSV0VCSERGUyBkZWxlZ2F0aW9u"
    "DzEyNy4wLjAuMToxOTg3MA";

/// A machine with settings of Hadoop, or none, whose environment ends with the test.
class HdfsUrls : public testing::Test {
protected:
    HdfsUrls() {
        set("HADOOP_CONF_DIR", (scratch_ / "conf").string());
        set("HADOOP_USER_NAME", "me");
        std::filesystem::create_directories(scratch_ / "conf");
    }
    ~HdfsUrls() override {
        for (const std::string& name : names_) ::unsetenv(name.c_str());
    }

    void set(const std::string& name, const std::string& value) {
        ::setenv(name.c_str(), value.c_str(), 1);
        names_.push_back(name);
    }
    void settings(const std::string& file,
                  const std::map<std::string, std::string>& properties) const {
        std::string text = "<?xml version=\"1.0\"?>\n<configuration>\n";
        for (const auto& [name, value] : properties)
            text += "  <property>\n    <name>" + name + "</name>\n    <value> " + value +
                    "\n</value></property>\n";
        write_bytes(scratch_ / ("conf/" + file), text + "</configuration>");
    }
    /// "root addresses identity", or the error.
    [[nodiscard]] static std::string place(const std::string& url) {
        const Result<HdfsPlace> place = hdfs_place(url, {});
        if (!place) return place.error().text();
        std::string text = place->root;
        for (const std::string& node : place->name_nodes) text += " " + node;
        return text + " " + place->identity;
    }

    const Scratch scratch_;

private:
    std::vector<std::string> names_;
};

TEST_F(HdfsUrls, WebAddressesStandInTheUrl) {
    EXPECT_EQ(place("webhdfs://nn:50070/a/b/"), "/a/b http://nn:50070 user.name=me");
    EXPECT_EQ(place("webhdfs://nn"), " http://nn:9870 user.name=me");
    EXPECT_EQ(place("swebhdfs://nn/a%20b"), "/a%20b https://nn:9871 user.name=me");
    EXPECT_EQ(place("webhdfs://[::1]:1/a"), "/a http://[::1]:1 user.name=me");
}

TEST_F(HdfsUrls, TheUserIsTheUrlsOrTheEnvironments) {
    EXPECT_EQ(place("webhdfs://bob@nn/a"), "/a http://nn:9870 user.name=bob");
    set("HADOOP_USER_NAME", "a b&c");
    EXPECT_EQ(place("webhdfs://nn/a"), "/a http://nn:9870 user.name=a%20b%26c");
}

TEST_F(HdfsUrls, WhatNamesNoClusterIsRefused) {
    EXPECT_THAT(place("hdfs:///a"), HasSubstr("'hdfs:///a' names no name node"));
    EXPECT_THAT(place("hdfs:///"), HasSubstr("names no name node"));
    EXPECT_THAT(place("hdfs://nn:x/a"), HasSubstr("does not name a host"));
    EXPECT_THAT(place("hdfs://nn:/a"), HasSubstr("does not name a host"));
    EXPECT_THAT(place("hdfs://a:1:2/a"), HasSubstr("does not name a host"));
}

TEST_F(HdfsUrls, HadoopsPortIsNotTheWebs) {
    EXPECT_EQ(place("hdfs://nn:8020/a"), "/a http://nn:9870 user.name=me");
    settings("core-site.xml", {{"fs.defaultFS", "hdfs://nn:8020"}});
    settings("hdfs-site.xml", {{"dfs.namenode.http-address", "0.0.0.0:1234"}});
    EXPECT_EQ(place("hdfs://nn:8020/a"), "/a http://nn:1234 user.name=me");
    EXPECT_EQ(place("hdfs:///a"), "/a http://nn:1234 user.name=me");
    EXPECT_EQ(place("hdfs:/a"), "/a http://nn:1234 user.name=me");
    EXPECT_EQ(place("hdfs://other:8020/a"), "/a http://other:9870 user.name=me") << "not theirs";
    settings("hdfs-site.xml", {{"dfs.namenode.http-address", "nn:1234"},
                               {"dfs.http.policy", "HTTPS_ONLY"},
                               {"dfs.namenode.https-address", "nn:4321"}});
    EXPECT_EQ(place("hdfs://nn/a"), "/a https://nn:4321 user.name=me");
}

TEST_F(HdfsUrls, ANameServiceHasSeveralNameNodes) {
    settings("core-site.xml", {{"fs.defaultFS", "hdfs://Lake"}});
    settings("hdfs-site.xml", {{"dfs.nameservices", "Lake"},
                               {"dfs.ha.namenodes.Lake", "nn1, nn2"},
                               {"dfs.namenode.http-address.Lake.nn1", "a:1"},
                               {"dfs.namenode.rpc-address.Lake.nn2", "b:8020"}});
    const std::string both = "/x http://a:1 http://b:9870 user.name=me";
    EXPECT_EQ(place("hdfs://Lake/x"), both);
    EXPECT_EQ(place("hdfs:///x"), both);
    EXPECT_EQ(place("webhdfs://Lake/x"), both);
}

TEST_F(HdfsUrls, ATokenTakesTheUsersPlace) {
    const std::string file = (scratch_ / "tokens").string();
    write_bytes(file, base64_decode(kTokenFile).value());
    set("HADOOP_TOKEN_FILE_LOCATION", file);
    EXPECT_EQ(place("webhdfs://127.0.0.1:19870/a"),
              "/a http://127.0.0.1:19870 delegation=" + std::string(kToken));
    EXPECT_THAT(place("webhdfs://elsewhere/a"), HasSubstr(kToken)) << "the only one";
    write_bytes(file, "{}");
    EXPECT_THAT(place("webhdfs://nn/a"), HasSubstr(file + "', which does not open"));
    set("HADOOP_TOKEN_FILE_LOCATION", file + "-none");
    EXPECT_THAT(place("webhdfs://nn/a"), HasSubstr("HADOOP_TOKEN_FILE_LOCATION: "));
    set("HADOOP_TOKEN", "abc-_");
    EXPECT_EQ(place("webhdfs://nn/a"), "/a http://nn:9870 delegation=abc-_");
}

TEST_F(HdfsUrls, TheDriverOfHdfsIsOurOwnUnlessHadoopsIsWanted) {
    EXPECT_STREQ(url_kind("hdfs", "hdfs://nn/").value().library, "libtune_http_source.so");
    set("TUNE_HDFS_DRIVER", "libhdfs");
    EXPECT_STREQ(url_kind("hdfs", "hdfs://nn/").value().library, "libtune_object_store.so");
    EXPECT_STREQ(url_kind("webhdfs", "webhdfs://nn/").value().library, "libtune_http_source.so");
    set("TUNE_HDFS_DRIVER", "libhdfs3");
    EXPECT_THAT(url_kind("hdfs", "hdfs://nn/").error().message, HasSubstr("'libhdfs3'"));
}

std::string text_of(const std::string& text) {
    return static_cast<char>(text.size()) + text;
}
std::string token_of(const std::string& kind, const std::string& service) {
    return text_of("alias") + text_of("id of " + service) + text_of("password") + text_of(kind) +
           text_of(service);
}

TEST(HadoopToken, IsTheOneOfTheCluster) {
    const std::string file = std::string("HDTS\0\4", 6) + token_of("kms-dt", "a") +
                             token_of("HDFS_DELEGATION_TOKEN", "ha-hdfs:lake") +
                             token_of("WEBHDFS delegation", "nn:9870") +
                             token_of("HDFS_DELEGATION_TOKEN", "10.0.0.1:8020") + '\0';
    const auto found = [&file](const std::vector<std::string>& services) {
        const Result<std::string> token = hadoop_token(file, services);
        return token ? *token : token.error().message;
    };
    const auto expected = [](const std::string& kind, const std::string& service) {
        return base64_url(token_of(kind, service).substr(6));
    };
    EXPECT_EQ(found({"lake"}), expected("HDFS_DELEGATION_TOKEN", "ha-hdfs:lake"));
    EXPECT_EQ(found({"x", "nn:9870"}), expected("WEBHDFS delegation", "nn:9870"));
    EXPECT_EQ(found({"a"}), "its tokens for HDFS are for ha-hdfs:lake, nn:9870, 10.0.0.1:8020");
    const std::string other = std::string("HDTS\0\1", 6) + token_of("kms-dt", "a") + '\0';
    EXPECT_EQ(hadoop_token(other, {"a"}).error().code, Code::kUnauthenticated);
}

TEST(HadoopToken, DamagedFilesAreRefused) {
    const std::string file = base64_decode(kTokenFile).value();
    for (std::size_t size = 0; size + 1 < file.size(); ++size)
        EXPECT_EQ(hadoop_token(file.substr(0, size), {"x"}).error().code,
                  Code::kInvalidParameterValue)
            << size;
    EXPECT_THAT(hadoop_token(std::string("HDTS\1\5", 6), {}).error().message,
                HasSubstr("protocol buffers"));
    // Lengths of every form: of no such number, negative, and of more than there is.
    for (int head = 0; head < 256; ++head) {
        std::string odd = file;
        odd[6] = static_cast<char>(head);
        static_cast<void>(hadoop_token(odd, {"x"}));
        odd[5] = static_cast<char>(head);
        static_cast<void>(hadoop_token(odd, {"x"}));
    }
}

TEST(HadoopSettings, AreReadAroundCommentsAndToTheEnd) {
    const HadoopSettings settings = parse_hadoop_settings(
        "<configuration><!-- <property><name>a</name><value>0</value></property> -->"
        "<property><name>b</name><value>1 &lt; 2</value><final>true</final></property>"
        "<property><value>3</value></property><property><name>c</name></property>"
        "<property><name>d</name><value>4");
    EXPECT_EQ(settings, (HadoopSettings{{"b", "1 < 2"}, {"c", ""}, {"d", ""}}));
}

AttemptFailure explained(long status, const std::string& text) {
    HttpResponse response{.status = status, .refusal = text};
    return explain_refusal({{Code::kBadRequest, "'hdfs://nn/a' cannot be read"}},
                           {.url = "http://nn:9870/webhdfs/v1/a?op=OPEN", .name = "hdfs://nn/a"},
                           response);
}
std::string exception(const std::string& name, const std::string& message) {
    return R"({"RemoteException": {"exception": ")" + name + R"(", "message": ")" + message +
           R"("}})";
}

TEST(HdfsRefusal, IsToldInTheWordsOfHdfs) {
    AttemptFailure failure =
        explained(404, exception("java.io.FileNotFoundException", "File /a not found.\\n\\tat x"));
    EXPECT_EQ(failure.error.message,
              "'hdfs://nn/a' does not exist: File /a not found. (FileNotFoundException of HDFS)");
    EXPECT_EQ(failure.error.code, Code::kResourceDoesNotExist);
    failure = explained(403, exception("AccessControlException", "Permission denied: user=bob"));
    EXPECT_EQ(failure.error.code, Code::kPermissionDenied);
    EXPECT_FALSE(failure.may_pass);
    failure = explained(403, exception("AccessControlException", "/a (is not a directory)"));
    EXPECT_EQ(failure.error.code, Code::kResourceDoesNotExist);
    for (const char* const name : {"StandbyException", "SafeModeException", "IOException"})
        EXPECT_TRUE(explained(403, exception(name, "later")).may_pass) << name;
}

TEST(HdfsRefusal, OfAnotherServiceSaysWhoWasAsked) {
    AttemptFailure failure = explained(404, "<html>nothing here</html>");
    EXPECT_EQ(failure.error.code, Code::kBadRequest) << "the file may well be there";
    EXPECT_THAT(failure.error.message, HasSubstr("WebHDFS does not answer at nn:9870"));
    EXPECT_THAT(explained(401, "").error.message, HasSubstr("hdfs fetchdt"));
    for (const char* const text :
         {"{", "[]", R"({"RemoteException": 3})", R"({"RemoteException": {"exception": 3}})"})
        EXPECT_THAT(explained(500, text).error.message, HasSubstr("(asked nn:9870)")) << text;
}

TEST(FailedNodes, AreNamedByHostAndAddress) {
    FailedNodes nodes;
    EXPECT_EQ(nodes.parameter(), "");
    nodes.add(host_names("http://localhost:9864/webhdfs/v1/a?op=OPEN"));
    EXPECT_EQ(nodes.parameter(), "&excludedatanodes=127.0.0.1,localhost");
    nodes.clear();
    EXPECT_EQ(nodes.parameter(), "");
}

}  // namespace
}  // namespace tune::loader
