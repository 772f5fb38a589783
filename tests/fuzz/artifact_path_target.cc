// Paths of artifacts, as rules and against a real folder with links that lead out. Properties: an
// accepted path names itself after any number of decodings, and nothing outside is read or written.

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "base/text/percent.h"
#include "tests/fuzz/fuzz.h"
#include "tracker/api/http/url.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/artifact_store.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker;

constexpr std::string_view kSecret = "outside";

/// root/ is served; secret and the targets of its links lie beside it.
struct World {
    World() {
        std::ofstream(folder.path() / "secret") << kSecret;
        std::filesystem::create_directories(folder.path() / "root" / "run");
        std::filesystem::create_symlink("..", folder.path() / "root" / "up");
        std::filesystem::create_symlink("../secret", folder.path() / "root" / "leak");
        std::filesystem::create_symlink(folder.path(), folder.path() / "root" / "run" / "out");
        store = ArtifactStore::open(folder.path() / "root").value();
        FUZZ_CHECK(store->put("run/inside.txt", "inside").has_value());
    }
    [[nodiscard]] std::size_t outside() const {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& entry :
             std::filesystem::directory_iterator(folder.path()))
            ++count;
        return count;
    }

    Folder folder;
    std::unique_ptr<ArtifactStore> store;
};

bool has_upward_part(std::string_view path) {
    while (!path.empty()) {
        const std::size_t slash = std::min(path.find('/'), path.size());
        if (path.substr(0, slash) == "..") return true;
        path.remove_prefix(std::min(slash + 1, path.size()));
    }
    return false;
}

void try_rules(std::string_view text) {
    const Result<std::string> normal = normal_artifact_path(text);
    if (!normal) {
        FUZZ_CHECK(normal.error().code == Code::kInvalidParameterValue);
        FUZZ_CHECK(!artifact_file_path(text));
        return;
    }
    const Result<std::string> again = normal_artifact_path(*normal);
    FUZZ_CHECK(again && *again == *normal);
    std::string decoded = *normal;
    for (int round = 0; round < 5; ++round) {
        FUZZ_CHECK(!decoded.starts_with('/') && !has_upward_part(decoded));
        FUZZ_CHECK(decoded.find('\0') == std::string::npos);
        decoded = percent_decode(decoded);
    }
}

void try_folder(World& world, std::string_view text) {
    const Result<OpenArtifact> opened = world.store->open_file(text);
    if (opened) {
        char link[4096] = {};
        const std::string name = "/proc/self/fd/" + std::to_string(opened->file->get());
        FUZZ_CHECK(readlink(name.c_str(), link, sizeof link - 1) > 0);
        FUZZ_CHECK(std::string_view(link).starts_with((world.folder.path() / "root/").native()));
    }
    static_cast<void>(world.store->list(text));
    static_cast<void>(world.store->put(text, "x"));
    static_cast<void>(world.store->remove(text));
    FUZZ_CHECK(world.outside() == 2);  // root and secret
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    static World world;
    const std::string_view text = text_of(data, size);
    try_rules(text);
    try_rules(tune::percent_decode(text));
    try_folder(world, text);
    return 0;
}
