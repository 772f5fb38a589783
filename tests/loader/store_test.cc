// Which server, region, keys and path each kind of URL of S3's protocol means. Nothing is asked of
// a network.

#include <arrow/filesystem/s3fs.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "loader/source/object_store/file_systems.h"

namespace tune::loader {
namespace {

using testing::HasSubstr;
using Settings = std::map<std::string, std::string>;

/// The variables of one test; gone with it.
class Environment {
public:
    explicit Environment(Settings settings) : settings_(std::move(settings)) {
        for (const auto& [name, value] : settings_) ::setenv(name.c_str(), value.c_str(), 1);
    }
    ~Environment() {
        for (const auto& [name, value] : settings_) ::unsetenv(name.c_str());
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    const Settings settings_;
};

struct Opened {
    std::string root;
    arrow::fs::S3Options s3;
};

Opened open_s3(const std::string& url, const Settings& settings) {
    const Environment environment(settings);
    const Result<StorePlace> place = open_store(url, {});
    if (!place) {
        ADD_FAILURE() << place.error().text();
        return {};
    }
    EXPECT_TRUE(place->is_s3);
    return {place->root, dynamic_cast<const arrow::fs::S3FileSystem&>(*place->files).options()};
}

std::string refusal(const std::string& url, const Settings& settings) {
    const Environment environment(settings);
    const Result<StorePlace> place = open_store(url, {});
    return place ? "no error" : place.error().text();
}

TEST(ObjectStoreUrls, CloudflareR2) {
    const Opened opened = open_s3("r2://bucket/a/b/", {{"R2_ACCOUNT_ID", "1234"},
                                                       {"R2_ACCESS_KEY_ID", "key"},
                                                       {"R2_SECRET_ACCESS_KEY", "secret"}});
    EXPECT_EQ(opened.root, "bucket/a/b");
    EXPECT_EQ(opened.s3.scheme, "https");
    EXPECT_EQ(opened.s3.endpoint_override, "1234.r2.cloudflarestorage.com");
    EXPECT_EQ(opened.s3.region, "auto");
    EXPECT_EQ(opened.s3.GetAccessKey(), "key");
    EXPECT_EQ(opened.s3.GetSecretKey(), "secret");
    EXPECT_THAT(refusal("r2://bucket/a", {}), HasSubstr("R2_ACCOUNT_ID"));
}

TEST(ObjectStoreUrls, BackblazeB2) {
    const Opened opened = open_s3("b2://bucket/a", {{"B2_REGION", "us-west-004"},
                                                    {"B2_APPLICATION_KEY_ID", "key"},
                                                    {"B2_APPLICATION_KEY", "secret"}});
    EXPECT_EQ(opened.root, "bucket/a");
    EXPECT_EQ(opened.s3.endpoint_override, "s3.us-west-004.backblazeb2.com");
    EXPECT_EQ(opened.s3.region, "us-west-004");
    EXPECT_EQ(opened.s3.GetAccessKey(), "key");
    EXPECT_THAT(refusal("b2://bucket/a", {}), HasSubstr("B2_REGION"));
}

TEST(ObjectStoreUrls, Oracle) {
    const Settings keys = {{"OCI_REGION", "eu-frankfurt-1"},
                           {"OCI_ACCESS_KEY_ID", "key"},
                           {"OCI_SECRET_ACCESS_KEY", "secret"}};
    const Opened opened = open_s3("oci://bucket@space/a/b", keys);
    EXPECT_EQ(opened.root, "bucket/a/b");
    EXPECT_EQ(opened.s3.endpoint_override,
              "space.compat.objectstorage.eu-frankfurt-1.oraclecloud.com");
    EXPECT_EQ(opened.s3.region, "eu-frankfurt-1");
    EXPECT_EQ(open_s3("oci://bucket@space", keys).root, "bucket");
    EXPECT_THAT(refusal("oci://bucket/a", keys), HasSubstr("oci://BUCKET@NAMESPACE/FOLDER"));
    EXPECT_THAT(refusal("oci://bucket@space/a", {}), HasSubstr("OCI_REGION"));
}

TEST(ObjectStoreUrls, CoreWeavePutsTheBucketInItsOwnHostsNameOnly) {
    const Settings keys = {{"CW_ACCESS_KEY_ID", "key"}, {"CW_SECRET_ACCESS_KEY", "secret"}};
    const Opened opened = open_s3("cw://bucket/a", keys);
    EXPECT_EQ(opened.s3.endpoint_override, "cwobject.com");
    EXPECT_TRUE(opened.s3.force_virtual_addressing);
    Settings elsewhere = keys;
    elsewhere["CW_ENDPOINT_URL"] = "http://127.0.0.1:1/";
    const Opened other = open_s3("cw://bucket/a", elsewhere);
    EXPECT_EQ(other.s3.endpoint_override, "127.0.0.1:1");
    EXPECT_EQ(other.s3.scheme, "http");
    EXPECT_FALSE(other.s3.force_virtual_addressing);
}

TEST(ObjectStoreUrls, AmazonTakesTheFirstAddressThatIsSet) {
    const Settings base = {{"AWS_ACCESS_KEY_ID", "key"},
                           {"AWS_SECRET_ACCESS_KEY", "secret"},
                           {"AWS_REGION", "eu-west-1"},
                           {"AWS_ENDPOINT_URL", "http://third:1"}};
    EXPECT_EQ(open_s3("s3://bucket/a?b=c#d", base).root, "bucket/a?b=c#d");
    EXPECT_EQ(open_s3("s3://bucket/a", base).s3.endpoint_override, "third:1");
    Settings more = base;
    more["AWS_ENDPOINT_URL_S3"] = "https://second";
    EXPECT_EQ(open_s3("s3a://bucket/a", more).s3.endpoint_override, "second");
    more["S3_ENDPOINT_URL"] = "http://first:2";
    EXPECT_EQ(open_s3("s3://bucket/a", more).s3.endpoint_override, "first:2");
    EXPECT_EQ(open_s3("s3://bucket/a", more).s3.region, "eu-west-1");
    EXPECT_THAT(refusal("s3://", base), HasSubstr("names no bucket"));
}

TEST(ObjectStoreUrls, GoogleWithAnHmacKeyIsReadByItsS3Address) {
    const Opened opened = open_s3("gs://bucket/a", {{"GCS_KEY", "key"}, {"GCS_SECRET", "secret"}});
    EXPECT_EQ(opened.s3.endpoint_override, "storage.googleapis.com");
    EXPECT_EQ(opened.s3.GetAccessKey(), "key");
}

}  // namespace
}  // namespace tune::loader
