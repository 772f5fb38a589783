#pragma once
// Artifacts that lie in folders of this machine, opened under the folders that the user allowed:
// a database from elsewhere may say that a run's artifacts are in /etc.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

class LocalFiles {
public:
    /// `proxied_root`: where "mlflow-artifacts:/..." begins; more roots may be added.
    /// `relative_to`: what a relative path is meant to begin at.
    explicit LocalFiles(std::filesystem::path relative_to) : relative_to_(std::move(relative_to)) {}

    /// Files under `folder` may be read; `is_proxied`: it is also where a server kept
    /// "mlflow-artifacts:/...". A proxied folder that is missing is left out: its files may be
    /// elsewhere. Another one holds nothing: MLflow makes mlruns with the first artifact.
    void allow(const std::filesystem::path& folder, bool is_proxied);

    [[nodiscard]] Result<SourceFiles> list(std::string_view uri) const;
    [[nodiscard]] Result<void> read(std::string_view uri, const SourceFile& file,
                                    const Source::Sink& sink) const;
    [[nodiscard]] Result<UniqueFd> open(std::string_view uri, const SourceFile& file) const;

private:
    struct Root {
        std::filesystem::path path;  // absolute, without links
        bool is_proxied = false;
    };
    /// A folder as a root and a path under it.
    struct Found {
        SourceFiles::Place place = SourceFiles::Place::kHere;
        const Root* root = nullptr;
        std::string relative;
    };
    [[nodiscard]] Found find(std::string_view uri) const;
    [[nodiscard]] Result<UniqueFd> open_folder(const Found& found) const;

    std::filesystem::path relative_to_;
    std::vector<Root> roots_;
};

}  // namespace tune::tracker
