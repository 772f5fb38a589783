// A disk that is really full: the store on a small tmpfs of its own.

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotMount = 77;

bool mount_small_disk(const fs::path& path) {
    const int spaces = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
    if (::unshare(spaces) != 0) return false;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    return ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=3m") == 0;
}

std::unique_ptr<Store> open(const fs::path& path) {
    StoreOptions options;
    options.directory = path;
    auto opened = Store::open(options);
    return opened ? std::move(*opened) : nullptr;
}

/// 0, or the number of the step that went wrong.
int fill_disk_and_go_on(const fs::path& path) {
    std::ofstream(path / "ballast") << std::string(1 << 20, 'x') << std::flush;
    std::unique_ptr<Store> store = open(path);
    if (store == nullptr) return 1;
    const auto created = store->execute(CreateRun{.experiment_id = 0, .run_id = "r"});
    if (!created) return 2;
    int points = 0;
    int documents = 0;
    std::string error;
    while (error.empty() && documents < 1'000) {
        if (store->execute(LogMetric{"r", {"m", 1.0, points, points}})) ++points;
        const auto put = store->execute(
            PutDocument{"fill", std::to_string(documents), std::string(20'000, 'x')});
        if (put)
            ++documents;
        else if (put.error().code == Code::kTemporarilyUnavailable)
            error = put.error().message;
    }
    if (error.find("is full; nothing was changed") == std::string::npos) return 3;
    const auto all_there = [&] {
        return store->list_documents("fill")->size() == static_cast<std::size_t>(documents) &&
               store->metric_history("r", "m")->items.size() == static_cast<std::size_t>(points);
    };
    if (!all_there()) return 4;
    fs::remove(path / "ballast");
    if (!store->execute(PutDocument{"fill", std::to_string(documents), "{}"})) return 5;
    ++documents;
    if (!all_there()) return 6;
    store.reset();
    store = open(path);
    if (store == nullptr) return 7;
    return all_there() ? 0 : 8;
}

TEST(FullDisk, RequestsGetAnErrorAndNothingAnsweredIsLost) {
    TemporaryDirectory directory;
    const pid_t child = ::fork();
    if (child == 0)
        _exit(mount_small_disk(directory.path()) ? fill_disk_and_go_on(directory.path())
                                                 : kCannotMount);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kCannotMount) GTEST_SKIP() << "this machine lets nobody mount";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tune::tracker
