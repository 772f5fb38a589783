// kill -9: a child process writes and reports to its parent through a pipe what was answered; the
// parent kills it at an arbitrary moment, opens the store and finds every answered write, and
// nothing torn.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

constexpr int kClients = 4;

/// What the child writes to the pipe after each answer: (client, number of its answered commands).
struct Answer {
    int client;
    int count;
};

std::string run_of(int client) {
    return "client" + std::to_string(client);
}

/// The i-th command of a client: a point, a batch of 20 points, a tag or an all-or-nothing pair.
Command command_of(int client, int i) {
    const std::string id = run_of(client);
    switch (i % 4) {
        case 0: return LogMetric{id, {"single", 0.5 * i, i, i}};
        case 1: {
            LogBatch batch{.run_id = id};
            for (int k = 0; k < 20; ++k) batch.metrics.push_back({"batch", 0.5 * k, i * 20 + k, i});
            return batch;
        }
        case 2: return SetTag{id, {"last", std::to_string(i)}};
        default:
            return Atomic{{LogMetric{id, {"pair1", 0.5 * i, i, i}},
                           PutDocument{"pairs", id + "/" + std::to_string(i), "{}"}}};
    }
}

/// In the child; never returns. Each client sends its next command when the last was answered.
[[noreturn]] void write_for_ever(const std::filesystem::path& directory, int pipe_end) {
    StoreOptions options;
    options.directory = directory;
    auto opened = Store::open(options);
    if (!opened) _exit(3);
    Store& store = **opened;
    for (int client = 0; client < kClients; ++client) {
        const auto made = store.execute(CreateRun{.experiment_id = 0, .run_id = run_of(client)});
        if (!made && made.error().code != Code::kResourceAlreadyExists) _exit(4);
    }
    std::function<void(int, int)> send = [&](int client, int i) {
        store.submit(command_of(client, i), [&, client, i](Result<Outcome> outcome) {
            if (!outcome) _exit(5);
            const Answer answer{client, i + 1};
            if (::write(pipe_end, &answer, sizeof(answer)) != sizeof(answer)) _exit(6);
            send(client, i + 1);
        });
    };
    for (int client = 0; client < kClients; ++client) send(client, 0);
    for (;;) ::pause();
}

/// Lets a child write until it has answered `answers_min` commands, kills it, and gives the number
/// of answered commands of each client.
std::vector<int> write_and_kill(const std::filesystem::path& directory, int answers_min) {
    int ends[2];
    if (::pipe(ends) != 0) return {};
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        write_for_ever(directory, ends[1]);
    }
    ::close(ends[1]);
    std::vector<int> counts(kClients, 0);
    Answer answer{};
    for (int answers = 0; ::read(ends[0], &answer, sizeof(answer)) == sizeof(answer);) {
        counts[static_cast<std::size_t>(answer.client)] = answer.count;
        if (++answers == answers_min) ::kill(child, SIGKILL);
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself with " << WEXITSTATUS(status);
    return counts;
}

/// Commands of kind `kind` among the first `count`.
int kind_count(int count, int kind) {
    return (count + 3 - kind) / 4;
}

class CrashTest : public testing::Test {
protected:
    void expect_all(Store& store, const std::vector<int>& counts) {
        for (int client = 0; client < kClients; ++client) {
            const int count = counts[static_cast<std::size_t>(client)];
            const auto size = [&](const char* key) {
                return static_cast<int>(store.metric_history(run_of(client), key)->items.size());
            };
            EXPECT_GE(size("single"), kind_count(count, 0));
            EXPECT_GE(size("batch"), 20 * kind_count(count, 1));
            EXPECT_EQ(size("batch") % 20, 0) << "half a batch";
            const int pairs = size("pair1");
            EXPECT_GE(pairs, kind_count(count, 3));
            const auto documents = store.list_documents("pairs", run_of(client) + "/");
            EXPECT_EQ(static_cast<int>(documents->size()), pairs) << "half a pair";
            check_history(store, client);
        }
    }

    /// Points are whole and in order: the i-th point is what the i-th such command wrote.
    void check_history(Store& store, int client) {
        const auto single = store.metric_history(run_of(client), "single");
        for (std::size_t i = 0; i < single->items.size(); ++i) {
            ASSERT_EQ(single->items[i].step, static_cast<std::int64_t>(4 * i));
            ASSERT_EQ(single->items[i].value, 2.0 * static_cast<double>(i));
        }
    }

    TemporaryDirectory directory_;
};

TEST_F(CrashTest, EveryAnsweredWriteSurvivesKill9) {
    std::mt19937 random(1);
    for (int round = 0; round < 5; ++round) {
        // Each round starts the clients anew on what the last one left: repeats of all its commands
        // must change nothing, and the rest resumes from there.
        const auto counts =
            write_and_kill(directory_.path(), 200 + static_cast<int>(random() % 3'000));
        ASSERT_EQ(counts.size(), static_cast<std::size_t>(kClients));
        StoreOptions options;
        options.directory = directory_.path();
        auto opened = Store::open(options);
        ASSERT_TRUE(opened) << opened.error().text();
        expect_all(**opened, counts);
        // The position counts what is on disk, and resumes.
        const std::int64_t position = (*opened)->last_position();
        EXPECT_TRUE((*opened)->execute(PutDocument{"c", "k", "{}"}));
        EXPECT_EQ((*opened)->last_position(), position + 1);
    }
}

}  // namespace
}  // namespace tune::tracker
