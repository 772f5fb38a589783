// Which account, address and keys a URL of Azure means. Nothing is asked of a network: what the
// clouds answer is tested with their emulators, tests/contract/loader/test_clouds.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "loader/source/cloud/azure_account.h"

namespace tune::loader {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::string azure(const std::string& url, const Variables& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    const Result<AzurePlace> azure = azure_place(url, {});
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    if (!azure) return azure.error().text();
    return azure->place.bucket + " " + azure->place.root + " " + azure->account.endpoint + " " +
           azure->account.key + azure->account.sas;
}

TEST(AzureUrls, TheAccountStandsInFrontOfItsCloudsHost) {
    const std::string account = "AccountName=me;AccountKey=a2V5;";
    EXPECT_EQ(azure("az://box/a/", {{"AZURE_STORAGE_CONNECTION_STRING", account}}),
              "box a https://me.blob.core.windows.net a2V5");
    EXPECT_EQ(azure("az://box/a", {{"AZURE_STORAGE_CONNECTION_STRING",
                                    account + "EndpointSuffix=core.chinacloudapi.cn"}}),
              "box a https://me.blob.core.chinacloudapi.cn a2V5");
    EXPECT_EQ(azure("az://box/a", {{"AZURE_STORAGE_ACCOUNT", "me"}, {"AZURE_STORAGE_KEY", "a2V5"}}),
              "box a https://me.blob.core.windows.net a2V5");
    EXPECT_THAT(azure("az://box/a", {}), HasSubstr("names no account"));
}

TEST(AzureUrls, AnEmulatorHasTheAccountAsAFolder) {
    const std::string account = "AccountName=me;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1";
    for (const char* const folder : {"", "/", "/me", "/me/"})
        EXPECT_EQ(azure("az://box/a", {{"AZURE_STORAGE_CONNECTION_STRING", account + folder}}),
                  "box a http://127.0.0.1:1/me a2V5");
    EXPECT_THAT(azure("az://box/a", {{"AZURE_STORAGE_CONNECTION_STRING", account + "/other"}}),
                HasSubstr("is neither of the account 'me'"));
    EXPECT_THAT(
        azure("azure://box", {{"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"}}),
        HasSubstr("box  http://127.0.0.1:10000/devstoreaccount1 Eby8"));
}

TEST(AzureUrls, AnAccountInTheUrlIsTheOneThatCounts) {
    const Variables variables = {
        {"AZURE_STORAGE_CONNECTION_STRING", "AccountName=me;AccountKey=a2V5;"},
        {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=2"}};
    EXPECT_EQ(azure("abfss://box@you.dfs.core.windows.net/a", variables),
              "box a https://you.blob.core.windows.net sv=1&sig=2");
    EXPECT_EQ(azure("abfss://box@you.dfs.core.chinacloudapi.cn/a", variables),
              "box a https://you.blob.core.chinacloudapi.cn sv=1&sig=2");
    EXPECT_EQ(azure("abfss://box@me.dfs.core.windows.net/a", variables),
              "box a https://me.blob.core.windows.net a2V5");
}

TEST(AzureUrls, AKeyThatIsNoKeyIsRefused) {
    EXPECT_THAT(azure("az://box/a", {{"AZURE_STORAGE_ACCOUNT", "me"}, {"AZURE_STORAGE_KEY", "?"}}),
                HasSubstr("is not base64"));
}

}  // namespace
}  // namespace tune::loader
