// Two places under one face. Neither shows a file before all of it is there: the server keeps an
// upload aside until it is whole, and a folder gets it under another name first.

#include "worker/agent/checkpoints/checkpoint_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/id.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/percent.h"
#include "worker/agent/server/artifact_folder.h"
#include "worker/agent/server/new_file.h"

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

constexpr int kCallTimeout_ms = 30'000;
constexpr std::size_t kManifestBytesMax = 64u << 20;

class ArtifactStore final : public CheckpointStore {
public:
    ArtifactStore(tracker::Client& client, std::string folder)
        : client_(client), folder_(std::move(folder)) {}

    Result<std::vector<std::string>> list(const std::string& folder) override {
        const std::string path = folder.empty() ? folder_ : folder_ + "/" + folder;
        const Result<Json> answer =
            client_.get("/api/2.0/mlflow-artifacts/artifacts?path=" + percent_encode(path, false),
                        kCallTimeout_ms);
        std::vector<std::string> names;
        if (!answer && answer.error().code == Code::kResourceDoesNotExist) return names;
        if (!answer) return answer.error();
        for (const Json& file : answer->value("files", Json::array())) {
            const std::string name = file.value("path", std::string());
            names.push_back(name.substr(name.rfind('/') + 1));
        }
        return names;
    }

    Result<std::string> read(const std::string& name) override {
        std::string text;
        TUNE_TRY_VOID(client_.get_file(
            address(name),
            [&text](std::string_view bytes) -> Result<void> {
                text += bytes;
                if (text.size() <= kManifestBytesMax) return {};
                return Error{Code::kDataLoss, "its manifest is larger than any"};
            },
            kCallTimeout_ms));
        return text;
    }

    Result<void> get(const std::string& name, const fs::path& to) override {
        NewFile file(to);
        TUNE_TRY_VOID(file.add({}));
        return client_.get_file(
            address(name), [&file](std::string_view bytes) { return file.add(bytes); },
            kCallTimeout_ms);
    }

    Result<void> put(const std::string& name, const fs::path& from) override {
        return client_.put_file(address(name), from, UINT64_MAX, kCallTimeout_ms);
    }
    Result<void> write(const std::string& name, std::string_view text) override {
        return client_.put_bytes(address(name), text, kCallTimeout_ms);
    }
    Result<void> remove(const std::string& name) override {
        Result<Json> answer = client_.remove(address(name), Json::object(), kCallTimeout_ms);
        if (answer || answer.error().code == Code::kResourceDoesNotExist) return {};
        return answer.error();
    }
    Result<void> clear() override {
        Result<Json> answer = client_.remove(kArtifactsPath + percent_encode(folder_),
                                             Json::object(), kCallTimeout_ms);
        if (answer || answer.error().code == Code::kResourceDoesNotExist) return {};
        return answer.error();
    }

private:
    [[nodiscard]] std::string address(const std::string& name) const {
        return kArtifactsPath + percent_encode(folder_ + "/" + name);
    }

    tracker::Client& client_;
    const std::string folder_;  // below kArtifactsPath
};

class FolderStore final : public CheckpointStore {
public:
    explicit FolderStore(fs::path root) : root_(std::move(root)) {}

    Result<std::vector<std::string>> list(const std::string& folder) override {
        std::vector<std::string> names;
        std::error_code error;
        const fs::path path = folder.empty() ? root_ : root_ / folder;
        fs::directory_iterator item(path, error);
        for (; !error && item != fs::directory_iterator(); item.increment(error))
            if (!item->path().filename().string().starts_with('.'))
                names.push_back(item->path().filename());
        if (error && error != std::errc::no_such_file_or_directory)
            return Error{Code::kInternalError,
                         "cannot list '" + path.string() + "': " + error.message()};
        return names;
    }

    Result<std::string> read(const std::string& name) override {
        return read_file(root_ / name, kManifestBytesMax);
    }

    Result<void> get(const std::string& name, const fs::path& to) override {
        return copy(root_ / name, to, false);
    }

    Result<void> put(const std::string& name, const fs::path& from) override {
        TUNE_TRY_VOID(make_folder(name));
        const fs::path to = root_ / name;
        const fs::path part = to.parent_path() / ("." + to.filename().string() + random_hex(4));
        Result<void> copied = copy(from, part, true);
        if (copied && ::rename(part.c_str(), to.c_str()) != 0) copied = system_error("make", to);
        if (!copied) ::unlink(part.c_str());
        return copied;
    }
    Result<void> write(const std::string& name, std::string_view text) override {
        TUNE_TRY_VOID(make_folder(name));
        return write_file_atomic(root_ / name, text);
    }
    Result<void> remove(const std::string& name) override {
        if (::unlink((root_ / name).c_str()) == 0 || errno == ENOENT) return {};
        return system_error("remove", root_ / name);
    }
    Result<void> clear() override {
        std::error_code error;
        fs::remove_all(root_, error);
        if (error)
            return Error{Code::kInternalError,
                         "cannot remove '" + root_.string() + "': " + error.message()};
        return {};
    }

private:
    Result<void> make_folder(const std::string& name) {
        std::error_code error;
        fs::create_directories((root_ / name).parent_path(), error);
        if (error)
            return Error{Code::kInternalError,
                         "cannot make '" + root_.string() + "': " + error.message()};
        return {};
    }

    static Result<void> copy(const fs::path& from, const fs::path& to, bool is_synced) {
        const UniqueFd source(open(from.c_str(), O_RDONLY | O_CLOEXEC));
        if (!source && errno == ENOENT)
            return Error{Code::kResourceDoesNotExist, "there is no '" + from.string() + "'"};
        if (!source) return system_error("read", from);
        NewFile target(to);
        TUNE_TRY_VOID(target.add({}));
        std::string buffer(1u << 20, '\0');
        while (true) {
            const ssize_t count = ::read(source.get(), buffer.data(), buffer.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return system_error("read", from);
            if (count == 0) break;
            TUNE_TRY_VOID(target.add({buffer.data(), static_cast<std::size_t>(count)}));
        }
        return is_synced ? target.sync() : Result<void>();
    }

    const fs::path root_;
};

}  // namespace

Result<std::unique_ptr<CheckpointStore>> artifact_store(tracker::Client& client,
                                                        const std::string& run_id) {
    TUNE_TRY(answer, client.get("/api/2.0/mlflow/runs/get?run_id=" + percent_encode(run_id, false),
                                kCallTimeout_ms));
    const Json info = answer.value("run", Json::object()).value("info", Json::object());
    TUNE_TRY(folder, proxied_folder(info.value("artifact_uri", std::string()), "checkpoints"));
    return std::unique_ptr<CheckpointStore>(
        std::make_unique<ArtifactStore>(client, folder + "/checkpoints"));
}

std::unique_ptr<CheckpointStore> folder_store(const fs::path& root, const std::string& run_id) {
    return std::make_unique<FolderStore>(root / run_id);
}

}  // namespace tune::worker
