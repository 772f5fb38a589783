// Every target on its corpus, then on changes of it for a fixed time, built by the compiler of the
// release. libFuzzer looks further, guided by what it covers, in a build of its own.
// TUNE_REPLAY_SECONDS (0.5) a target; TUNE_REPLAY_SEED (1). The input that ends the program is in
// the file that the last line names.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The targets as libFuzzer calls them; CMakeLists.txt gives each a name of its own.
#define TUNE_FUZZ_TARGETS(X) \
    X(artifact_path)         \
    X(deletion_vector)       \
    X(delta_log)             \
    X(filter)                \
    X(http)                  \
    X(mds)                   \
    X(message)               \
    X(metric_block)          \
    X(page_token)            \
    X(rendezvous) X(routes) X(study) X(tar) X(tensorboard) X(text) X(upload) \
    TUNE_FUZZ_ARROW_TARGETS(X)
#ifdef TUNE_HAVE_ARROW
#define TUNE_FUZZ_ARROW_TARGETS(X) X(parquet)
#else
#define TUNE_FUZZ_ARROW_TARGETS(X)
#endif
#define TUNE_FUZZ_DECLARE(name) extern "C" int fuzz_##name(const std::uint8_t*, std::size_t);
TUNE_FUZZ_TARGETS(TUNE_FUZZ_DECLARE)
#undef TUNE_FUZZ_DECLARE

namespace tune::fuzz {
namespace {

struct Target {
    const char* name;
    int (*run)(const std::uint8_t*, std::size_t);
};

#define TUNE_FUZZ_ROW(name) Target{#name, &fuzz_##name},
constexpr Target kTargets[] = {TUNE_FUZZ_TARGETS(TUNE_FUZZ_ROW)};
#undef TUNE_FUZZ_ROW

/// Longer inputs cost time and show little that is new.
constexpr std::size_t kInputBytesMax = 4096;

std::string current;       // NOLINT: what a signal handler writes down
std::string current_file;  // NOLINT

/// Only calls that a signal handler may make.
void write_down(int signal) {
    const int file = ::open(current_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
        static_cast<void>(!::write(file, current.data(), current.size()));
        static_cast<void>(!::write(STDERR_FILENO, current_file.data(), current_file.size()));
        static_cast<void>(!::write(STDERR_FILENO, "\n", 1));
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

std::filesystem::path fuzz_folder() {
    return std::filesystem::path(TUNE_SOURCE_DIR) / "tests/fuzz";
}

/// The bytes of one line of found/<target>.txt; nothing if it is not in the form that found.py
/// writes.
std::optional<std::string> unescaped(std::string_view line) {
    std::string bytes;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] < ' ' || line[i] > '~') return std::nullopt;
        if (line[i] != '\\') {
            bytes += line[i];
            continue;
        }
        if (++i == line.size()) return std::nullopt;
        switch (line[i]) {
            case '\\': bytes += '\\'; break;
            case 'n': bytes += '\n'; break;
            case 'r': bytes += '\r'; break;
            case 't': bytes += '\t'; break;
            case 'x': {
                if (i + 2 >= line.size()) return std::nullopt;
                unsigned byte = 0;
                const char* const digits = line.data() + i + 1;
                const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
                if (error != std::errc() || end != digits + 2) return std::nullopt;
                bytes += static_cast<char>(byte);
                i += 2;
                break;
            }
            default: return std::nullopt;
        }
    }
    return bytes;
}

/// Adds what libFuzzer found for this target, if it found anything.
void add_found(const std::string& name, std::vector<std::string>& corpus) {
    const std::filesystem::path path = fuzz_folder() / "found" / (name + ".txt");
    std::ifstream in(path, std::ios::binary);
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty() || line.starts_with('#')) continue;
        std::optional<std::string> input = unescaped(line);
        if (input)
            corpus.push_back(std::move(*input));
        else
            ADD_FAILURE() << path << ":" << number
                          << " is not an escaped input; write it with tests/fuzz/found.py pack";
    }
}

/// Seeds and fixed inputs by name, then the found ones.
std::vector<std::string> corpus_of(const std::string& name) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(fuzz_folder() / "corpus" / name))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<std::string> corpus;
    for (const auto& path : files) {
        std::ifstream in(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    add_found(name, corpus);
    return corpus;
}

/// Changes of texts that parsers mind: bytes, pieces that vanish, come twice or from elsewhere.
class Mutator {
public:
    Mutator(const std::vector<std::string>& corpus, std::uint64_t seed)
        : corpus_(corpus), random_(seed) {}

    std::string next() {
        std::string text = pick(corpus_);
        for (std::uint64_t edits = 1 + below(4); edits > 0; --edits) edit(text);
        if (text.size() > kInputBytesMax) text.resize(kInputBytesMax);
        return text;
    }

private:
    std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }

    const std::string& pick(const std::vector<std::string>& from) {
        return from[below(from.size())];
    }

    void edit(std::string& text) {
        static const std::vector<std::string> kPieces = {"\"",
                                                         "'",
                                                         "`",
                                                         "\\",
                                                         "/",
                                                         "..",
                                                         "%2e",
                                                         "%00",
                                                         "\r\n",
                                                         "\n",
                                                         "{",
                                                         "}",
                                                         "[",
                                                         "]",
                                                         ",",
                                                         ":",
                                                         "null",
                                                         "NaN",
                                                         "-1",
                                                         "1e999",
                                                         "0",
                                                         std::string(1, '\0'),
                                                         "=",
                                                         " AND ",
                                                         " LIKE ",
                                                         "(",
                                                         ")",
                                                         ";",
                                                         "--",
                                                         "9223372036854775807",
                                                         "\xff",
                                                         "\xc3",
                                                         "\xf0\x9f\x99\x82",
                                                         "true",
                                                         "18446744073709551616"};
        const std::size_t at = below(text.size() + 1);
        const std::size_t length = std::min<std::size_t>(1 + below(16), text.size() - at);
        switch (below(6)) {
            case 0: text.insert(at, pick(kPieces)); break;
            case 1: text.erase(at, length); break;
            case 2: text.insert(at, text.substr(at, length)); break;
            case 3: {
                const std::string& other = pick(corpus_);
                text.insert(at, other.substr(below(other.size() + 1), 1 + below(40)));
                break;
            }
            default:
                if (at < text.size()) text[at] = static_cast<char>(below(256));
        }
    }

    const std::vector<std::string>& corpus_;
    std::mt19937_64 random_;
};

double environment(const char* name, double otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atof(text);
}

class Replay : public testing::TestWithParam<Target> {
protected:
    void SetUp() override {
        current_file =
            testing::TempDir() + "fuzz-" + GetParam().name + "-" + std::to_string(::getpid());
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            former_[i] = std::signal(kSignals[i], &write_down);
    }
    void TearDown() override {
        for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], former_[i]);
    }

    static void run(const std::string& input) {
        current = input;
        GetParam().run(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
    }

private:
    static constexpr std::array kSignals = {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL};
    std::array<void (*)(int), kSignals.size()> former_{};
};

TEST_P(Replay, TheCorpusHoldsAndSoDoChangesOfIt) {
    const std::vector<std::string> corpus = corpus_of(GetParam().name);
    ASSERT_FALSE(corpus.empty());
    for (const std::string& input : corpus) run(input);
    const auto seed = static_cast<std::uint64_t>(environment("TUNE_REPLAY_SEED", 1));
    const std::chrono::duration<double> limit(environment("TUNE_REPLAY_SECONDS", 0.5));
    Mutator mutator(corpus, seed);
    const auto end = std::chrono::steady_clock::now() + limit;
    std::size_t count = 0;
    do {
        run(mutator.next());
        ++count;
    } while (std::chrono::steady_clock::now() < end);
    RecordProperty("inputs", static_cast<int>(corpus.size() + count));
}

TEST(FoundInputs, ReadBackByteForByte) {
    EXPECT_EQ(unescaped(R"(a \\ b)"), "a \\ b");
    EXPECT_EQ(unescaped(R"(\x00\xffx\n\r\t)"), std::string("\0\xffx\n\r\t", 6));
    EXPECT_EQ(unescaped(R"(\x23first)"), "#first");
    for (const char* damaged : {"\\", "\\q", "\\x", "\\x1", "\\xg0", "\\x0g", "\x7f", "a\tb"})
        EXPECT_EQ(unescaped(damaged), std::nullopt) << damaged;
}

/// Every file of found/ belongs to a target and holds inputs: a renamed target loses none.
TEST(FoundInputs, AllBelongToATarget) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(fuzz_folder() / "found")) {
        const std::string name = entry.path().stem().string();
        EXPECT_TRUE(std::any_of(std::begin(kTargets), std::end(kTargets),
                                [&](const Target& target) { return target.name == name; }))
            << entry.path();
        std::vector<std::string> corpus;
        add_found(name, corpus);
        EXPECT_FALSE(corpus.empty()) << entry.path();
        count += corpus.size();
    }
    EXPECT_GT(count, 0u);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, testing::ValuesIn(kTargets),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace tune::fuzz
