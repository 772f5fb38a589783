#pragma once
// Moving in and out: `tune import` and `tune export`.

#include <string>
#include <vector>

namespace tune::cli {

struct ImportCommand {
    std::string source = {};  ///< mlflow.db, a folder mlruns, or http://...
    std::string data = "./tune-data";
    std::string artifacts = "copy";
    std::vector<std::string> artifact_roots = {};
    bool quiet = false;
    bool json = false;
};

struct ExportCommand {
    std::string target = {};  ///< FILE.db or a folder
    std::string data = "./tune-data";
    std::string artifacts = "copy";
    bool local_uris = false;  ///< artifact addresses as paths instead of mlflow-artifacts:/
    bool quiet = false;
    bool json = false;
};

[[nodiscard]] int run_import(const ImportCommand& options);
[[nodiscard]] int run_export(const ExportCommand& options);

}  // namespace tune::cli
