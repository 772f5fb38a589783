#pragma once
// Which account of Azure a URL means, where it lies and by what it is opened.

#include <string>

#include "loader/source/cloud/cloud_text.h"
#include "loader/source/http/http_request.h"
#include "loader/source/open_source.h"

namespace tune::loader {

struct AzureAccount {
    std::string name = {};
    std::string key = {};       ///< base64
    std::string sas = {};       ///< a shared access signature, without "?"
    std::string endpoint = {};  ///< of its blobs: "https://NAME.blob.core.windows.net"
};

struct AzurePlace {
    CloudPlace place = {};  ///< `bucket` is the container
    AzureAccount account = {};
};

/// az://CONTAINER/FOLDER, azure:// and azure-dl:// likewise; abfs[s]://CONTAINER@ACCOUNT.dfs...
/// The account is the one that the URL names, or else the environment's (docs/loader.md). Errors:
/// kInvalidParameterValue when there is none, or its address is not one of Azure's forms.
[[nodiscard]] Result<AzurePlace> azure_place(const std::string& url, const SourceOptions& options);

/// Signs with the account's key, or with a token of azure_login() where there is neither key nor
/// signature.
[[nodiscard]] HttpLogin azure_requests(const AzureAccount& account, const SourceOptions& options);

}  // namespace tune::loader
