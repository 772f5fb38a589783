#include "tracker/artifacts/multipart_uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "tracker/artifacts/artifact_store.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPath = "1/run/artifacts/model.bin";
constexpr const char* kStaging = ".artifact.uploading.parts";

class MultipartUploadsTest : public testing::Test {
protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("multipart-" + random_hex(8));
        open();
    }
    void TearDown() override {
        store_.reset();
        fs::remove_all(root_);
    }

    void open() {
        store_.reset();
        auto opened = ArtifactStore::open(root_, &clock_);
        ASSERT_TRUE(opened.has_value()) << opened.error().message;
        store_ = std::move(opened).value();
    }
    MultipartUploads& uploads() { return store_->multipart(); }

    std::string begin(int parts, const char* path = kPath) {
        const Result<UploadStatus> made = uploads().create(path, parts);
        EXPECT_TRUE(made.has_value()) << made.error().message;
        return made ? made->id : "";
    }

    /// The ETag, or the code of the refusal.
    std::string send(const std::string& id, int number, std::string_view bytes) {
        auto writer = uploads().begin_part(id, number, bytes.size());
        if (!writer) return std::string(code_name(writer.error().code));
        const std::size_t half = bytes.size() / 2;
        if (const auto a = (*writer)->write(bytes.substr(0, half)); !a)
            return std::string(code_name(a.error().code));
        if (const auto b = (*writer)->write(bytes.substr(half)); !b)
            return std::string(code_name(b.error().code));
        const Result<std::string> etag = (*writer)->finish();
        return etag ? *etag : std::string(code_name(etag.error().code));
    }

    std::string complete(const std::string& id, const std::vector<ClaimedPart>& parts,
                         const char* path = kPath) {
        const Result<void> done = uploads().complete(id, path, parts);
        return done ? "" : std::string(code_name(done.error().code)) + ": " + done.error().message;
    }

    std::string content(const char* path = kPath) {
        std::ifstream in(root_ / path, std::ios::binary);
        if (!in) return "<none>";
        return {std::istreambuf_iterator<char>(in), {}};
    }

    /// Uploads whose bytes lie in the hidden folder; of a completed one only its name is left.
    std::size_t staged() {
        return folders([](const fs::path& folder) { return fs::exists(folder / "data"); });
    }
    std::size_t folders(const std::function<bool(const fs::path&)>& counts) {
        const fs::directory_iterator all(root_ / kStaging);
        return static_cast<std::size_t>(std::count_if(
            fs::begin(all), fs::end(all), [&](const auto& each) { return counts(each); }));
    }

    ManualClock clock_{1'000'000'000'000};
    fs::path root_;
    std::unique_ptr<ArtifactStore> store_;
};

std::string bytes_of(std::size_t size, unsigned seed) {
    std::mt19937 dice(seed);
    std::string out(size, '\0');
    for (char& c : out) c = static_cast<char>(dice());
    return out;
}

TEST_F(MultipartUploadsTest, PutsPartsTogetherInAnyOrder) {
    const std::vector<std::string> parts = {bytes_of(1000, 1), bytes_of(1000, 2), bytes_of(77, 3)};
    std::vector<int> order = {1, 2, 3};
    do {
        const std::string id = begin(3);
        std::vector<ClaimedPart> claims;
        for (const int number : order)
            claims.push_back(
                {number,
                 "\"" + send(id, number, parts[static_cast<std::size_t>(number - 1)]) + "\""});
        EXPECT_EQ(content(), "<none>");
        EXPECT_EQ(complete(id, claims), "");
        EXPECT_EQ(content(), parts[0] + parts[1] + parts[2]);
        fs::remove(root_ / kPath);
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(staged(), 0u);
}

TEST_F(MultipartUploadsTest, TakesOnePartAndNone) {
    const std::string one = begin(1);
    EXPECT_EQ(complete(one, {{1, send(one, 1, "alone")}}), "");
    EXPECT_EQ(content(), "alone");
    const std::string none = begin(0);
    EXPECT_EQ(complete(none, {}), "");
    EXPECT_EQ(content(), "");
}

TEST_F(MultipartUploadsTest, TheETagIsTheSha256OfThePart) {
    const std::string id = begin(1);
    EXPECT_EQ(send(id, 1, "abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(MultipartUploadsTest, ChecksWhatIsCompleted) {
    const std::string id = begin(3);
    const std::string a = send(id, 1, "aaaa");
    const std::string b = send(id, 2, "bbbb");
    EXPECT_THAT(complete(id, {{1, a}, {2, b}}), testing::HasSubstr("Part 3 of 3 is not named"));
    EXPECT_THAT(complete(id, {{1, a}, {2, b}, {3, "x"}}),
                testing::HasSubstr("Part 3 has not been uploaded"));
    const std::string c = send(id, 3, "c");
    EXPECT_THAT(complete(id, {{1, a}, {2, a}, {3, c}}), testing::HasSubstr("Part 2 has the ETag"));
    EXPECT_THAT(complete(id, {{1, a}, {2, b}, {2, b}}), testing::HasSubstr("named twice"));
    EXPECT_THAT(complete(id, {{1, a}, {2, b}, {4, c}}), testing::HasSubstr("not one of"));
    EXPECT_THAT(complete(id, {{1, a}, {2, b}, {3, c}}, "1/run/artifacts/other"),
                testing::HasSubstr("RESOURCE_DOES_NOT_EXIST"));
    EXPECT_EQ(content(), "<none>");
    EXPECT_EQ(complete(id, {{3, c}, {1, a}, {2, b}}), "");
    EXPECT_EQ(content(), "aaaabbbbc");
    EXPECT_EQ(complete(id, {{3, c}, {1, a}, {2, b}}), "") << "clients retry POSTs";
    EXPECT_THAT(complete(random_hex(16), {}), testing::HasSubstr("RESOURCE_DOES_NOT_EXIST"));
}

TEST_F(MultipartUploadsTest, ACompletionIsKnownAfterARestart) {
    const std::string id = begin(2);
    const std::vector<ClaimedPart> claims = {{1, send(id, 1, "aa")}, {2, send(id, 2, "b")}};
    EXPECT_EQ(complete(id, claims), "");
    // As after a kill between the file's new name and the clearing of the hidden folder.
    std::ofstream(root_ / kStaging / id / "log") << "+ 1 0 2 x 5\n";
    fs::remove(root_ / kPath);
    for (int round = 0; round < 2; ++round) {
        open();
        EXPECT_EQ(complete(id, claims), "") << "the answer was lost, the client asks again";
        EXPECT_THAT(complete(id, claims, "1/run/artifacts/other"),
                    testing::HasSubstr("RESOURCE_DOES_NOT_EXIST"));
        EXPECT_EQ(content(), "<none>") << "and nothing is made a second time";
        EXPECT_FALSE(uploads().find(id).has_value());
        EXPECT_TRUE(uploads().list("").empty());
        EXPECT_FALSE(fs::exists(root_ / kStaging / id / "log"));
    }
}

TEST_F(MultipartUploadsTest, CompletionsAreForgottenInTheEnd) {
    const auto all = [](const fs::path&) { return true; };
    std::string first;
    std::string last;
    for (std::size_t i = 0; i < kOpenUploadsMax + 3; ++i) {
        last = begin(0);
        if (i == 0) first = last;
        ASSERT_EQ(complete(last, {}), "");
    }
    EXPECT_EQ(folders(all), kOpenUploadsMax);
    EXPECT_THAT(complete(first, {}), testing::HasSubstr("RESOURCE_DOES_NOT_EXIST"));
    EXPECT_EQ(complete(last, {}), "");
    clock_.advance_ms(kUploadIdleMax_ms + 1);
    uploads().remove_expired();
    EXPECT_EQ(folders(all), 0u);
    EXPECT_THAT(complete(last, {}), testing::HasSubstr("RESOURCE_DOES_NOT_EXIST"));
}

TEST_F(MultipartUploadsTest, HoldsPartsToOneSize) {
    const std::string id = begin(3);
    EXPECT_EQ(send(id, 1, "aaaa").size(), 64u);
    EXPECT_EQ(send(id, 2, "bbb"), "INVALID_PARAMETER_VALUE");
    EXPECT_EQ(send(id, 3, "ccccc"), "INVALID_PARAMETER_VALUE");
    EXPECT_EQ(send(id, 2, ""), "INVALID_PARAMETER_VALUE");
    EXPECT_EQ(send(id, 0, "x"), "INVALID_PARAMETER_VALUE");
    EXPECT_EQ(send(id, 4, "x"), "INVALID_PARAMETER_VALUE");
    EXPECT_EQ(uploads().begin_part(id, 1, kPartBytesMax + 1).error().code,
              Code::kRequestEntityTooLarge);
    // The last part came first and turns out to be larger than the others.
    const std::string odd = begin(2);
    const std::string last = send(odd, 2, "too long");
    const std::string first = send(odd, 1, "four");
    EXPECT_THAT(complete(odd, {{1, first}, {2, last}}), testing::HasSubstr("larger"));
}

TEST_F(MultipartUploadsTest, ForgetsTheSizeOfAPartThatNeverCame) {
    const std::string id = begin(2);
    { auto broken = uploads().begin_part(id, 1, 1000).value(); }
    const std::string a = send(id, 1, "four");
    EXPECT_EQ(complete(id, {{1, a}, {2, send(id, 2, "b")}}), "");
    EXPECT_EQ(content(), "fourb");
}

TEST_F(MultipartUploadsTest, LetsTheLatestSenderOfAPartWin) {
    const std::string id = begin(1);
    auto slow = uploads().begin_part(id, 1, 4).value();
    ASSERT_TRUE(slow->write("ol").has_value());
    const std::string etag = send(id, 1, "newer");
    EXPECT_EQ(slow->write("d!").error().code, Code::kResourceConflict);
    slow.reset();
    EXPECT_EQ(complete(id, {{1, etag}}), "");
    EXPECT_EQ(content(), "newer");
    const std::string again = begin(1);
    static_cast<void>(send(again, 1, "a long first version"));
    EXPECT_EQ(complete(again, {{1, send(again, 1, "short")}}), "");
    EXPECT_EQ(content(), "short");
}

TEST_F(MultipartUploadsTest, WaitsForPartsThatAreBeingSent) {
    const std::string id = begin(1);
    const std::string etag = send(id, 1, "done");
    auto writer = uploads().begin_part(id, 1, 4).value();
    EXPECT_THAT(complete(id, {{1, etag}}), testing::HasSubstr("still being sent"));
    ASSERT_TRUE(writer->write("redo").has_value());
    const std::string newer = writer->finish().value();
    EXPECT_THAT(complete(id, {{1, etag}}), testing::HasSubstr("has the ETag"));
    EXPECT_EQ(complete(id, {{1, newer}}), "");
    EXPECT_EQ(content(), "redo");
}

TEST_F(MultipartUploadsTest, RefusesTooManyOrTooFewBytes) {
    const std::string id = begin(1);
    auto writer = uploads().begin_part(id, 1, 4).value();
    EXPECT_EQ(writer->write("five!").error().code, Code::kBadRequest);
    ASSERT_TRUE(writer->write("abc").has_value());
    EXPECT_EQ(writer->finish().error().code, Code::kBadRequest);
}

TEST_F(MultipartUploadsTest, AbortLeavesNothing) {
    const std::string id = begin(2);
    static_cast<void>(send(id, 1, "aaaa"));
    auto writer = uploads().begin_part(id, 2, 2).value();
    EXPECT_EQ(uploads().abort(id, "1/run/artifacts/other").error().code,
              Code::kResourceDoesNotExist);
    ASSERT_TRUE(uploads().abort(id, kPath).has_value());
    EXPECT_FALSE(writer->write("bb").has_value());
    EXPECT_FALSE(writer->finish().has_value());
    EXPECT_EQ(send(id, 1, "x"), "RESOURCE_DOES_NOT_EXIST");
    EXPECT_TRUE(uploads().abort(id, kPath).has_value()) << "clients retry POSTs";
    EXPECT_EQ(staged(), 0u);
    EXPECT_FALSE(fs::exists(root_ / "1")) << "not even the folders of the file";
}

TEST_F(MultipartUploadsTest, GoesOnAfterARestart) {
    const std::string id = begin(4);
    const std::string last = send(id, 4, "dd");
    const std::string a = send(id, 1, "aaaa");
    const std::string old = send(id, 2, "old!");
    auto unfinished = uploads().begin_part(id, 2, 4).value();  // drops the old one
    ASSERT_TRUE(unfinished->write("mi").has_value());
    unfinished.reset();
    // What a process that is killed at the wrong moment may leave.
    std::ofstream(root_ / kStaging / id / "log", std::ios::app) << "+ 3 8 4 abc";
    std::ofstream(root_ / kStaging / "0123456789abcdef") << "a PUT that was killed";
    fs::create_directories(root_ / kStaging / "feedfeedfeedfeedfeedfeedfeedfeed");
    open();
    EXPECT_EQ(staged(), 1u);
    const UploadStatus status = uploads().find(id).value();
    ASSERT_EQ(status.parts.size(), 2u);
    EXPECT_EQ(status.parts[0].part_number, 1);
    EXPECT_EQ(status.parts[0].etag, a);
    EXPECT_EQ(status.parts[1].part_number, 4);
    EXPECT_EQ(status.part_bytes, 4u);
    ASSERT_EQ(uploads().list(kPath).size(), 1u);
    EXPECT_EQ(uploads().list(kPath)[0].id, id);
    EXPECT_TRUE(uploads().list("1/run/artifacts/other").empty());
    const std::string b = send(id, 2, "bbbb");
    const std::string c = send(id, 3, "cccc");
    open();
    EXPECT_EQ(complete(id, {{1, a}, {2, b}, {3, c}, {4, last}}), "");
    EXPECT_EQ(content(), "aaaabbbbccccdd");
    EXPECT_NE(old, b);
}

TEST_F(MultipartUploadsTest, ForgetsPartsWhoseBytesAreGone) {
    const std::string id = begin(2);
    static_cast<void>(send(id, 1, "aaaa"));
    fs::resize_file(root_ / kStaging / id / "data", 2);
    open();
    EXPECT_TRUE(uploads().find(id)->parts.empty());
}

TEST_F(MultipartUploadsTest, DeletesWhatNobodyContinues) {
    const std::string idle = begin(1);
    clock_.advance_ms(kUploadIdleMax_ms - 1);
    const std::string busy = begin(2, "1/run/artifacts/busy");
    auto writer = uploads().begin_part(busy, 1, 4).value();
    clock_.advance_ms(1);
    uploads().remove_expired();
    EXPECT_FALSE(uploads().find(idle).has_value());
    clock_.advance_ms(2 * kUploadIdleMax_ms);
    uploads().remove_expired();
    EXPECT_TRUE(uploads().find(busy).has_value()) << "a part of it is on its way";
    writer.reset();
    open();
    EXPECT_FALSE(uploads().find(busy).has_value()) << "too old at the start";
    EXPECT_EQ(staged(), 0u);
}

TEST_F(MultipartUploadsTest, TokensAreBoundToUploadPartAndTime) {
    const std::string id = begin(2);
    const std::string other = begin(2);
    const std::int64_t later_s = clock_.now_ms() / 1000 + 10;
    const std::string token = uploads().sign(id, 1, later_s);
    EXPECT_EQ(token.size(), 64u);
    EXPECT_TRUE(uploads().authorise(id, 1, later_s, token).has_value());
    const auto refused = [&](const std::string& upload, int part, std::int64_t at,
                             std::string_view with) {
        const Result<void> done = uploads().authorise(upload, part, at, with);
        return !done && done.error().code == Code::kPermissionDenied;
    };
    EXPECT_TRUE(refused(id, 2, later_s, token));
    EXPECT_TRUE(refused(other, 1, later_s, token));
    EXPECT_TRUE(refused(id, 1, later_s + 1, token));
    EXPECT_TRUE(refused(id, 1, later_s, ""));
    EXPECT_TRUE(refused(id, 1, later_s, token.substr(1)));
    EXPECT_EQ(uploads().authorise(id, 3, later_s, token).error().code,
              Code::kInvalidParameterValue);
    EXPECT_EQ(uploads().authorise("x", 1, later_s, token).error().code,
              Code::kResourceDoesNotExist);
    open();
    EXPECT_TRUE(uploads().authorise(id, 1, later_s, token).has_value()) << "also after a restart";
    clock_.advance_ms(10'000);
    EXPECT_TRUE(refused(id, 1, later_s, token));
}

TEST_F(MultipartUploadsTest, SendsClientsBackToOnePieceBeyondItsLimits) {
    EXPECT_THAT(uploads().create(kPath, kUploadPartsMax + 1).error().message,
                testing::StartsWith(
                    "Multipart upload is not supported for the current artifact repository"));
    EXPECT_EQ(uploads().create(kPath, -1).error().code, Code::kInvalidParameterValue);
    const std::size_t fill = kOpenPartsMax / kUploadPartsMax;
    for (std::size_t i = 0; i < fill; ++i) ASSERT_NE(begin(kUploadPartsMax), "");
    const Result<UploadStatus> refused = uploads().create(kPath, 1);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kNotImplemented);
    ASSERT_TRUE(uploads().abort(uploads().list("")[0].id, kPath).has_value());
    EXPECT_NE(begin(kUploadPartsMax), "");
    open();
    EXPECT_EQ(uploads().list("").size(), fill);
    EXPECT_FALSE(uploads().create(kPath, 1).has_value());
}

TEST_F(MultipartUploadsTest, RefusesPathsBeforeAByteIsSent) {
    ASSERT_TRUE(store_->put("folder/file", "x").has_value());
    for (const char* path : {"../x", "a/../../x", "/etc/passwd", "", "a/", "a#b",
                             ".artifact.uploading.parts/x", "folder", "folder/file/x"})
        EXPECT_EQ(uploads().create(path, 1).error().code, Code::kInvalidParameterValue) << path;
    fs::create_directory_symlink("/tmp", root_ / "link");
    EXPECT_EQ(uploads().create("link/x", 1).error().code, Code::kInvalidParameterValue);
    // A link that is planted while the parts come.
    const std::string id = begin(1, "later/x");
    const std::string etag = send(id, 1, "bytes");
    const fs::path outside = root_.string() + "-outside";
    fs::create_directory(outside);
    fs::create_directory_symlink(outside, root_ / "later");
    EXPECT_THAT(complete(id, {{1, etag}}, "later/x"), testing::HasSubstr("INVALID_PARAMETER"));
    EXPECT_TRUE(fs::is_empty(outside));
    fs::remove(outside);
    fs::remove(root_ / "later");
    EXPECT_EQ(complete(id, {{1, etag}}, "later/x"), "") << "and goes on when it is gone";
}

TEST_F(MultipartUploadsTest, ReportsAFullDiskAndGoesOnLater) {
    const std::string id = begin(2);
    const std::string a = send(id, 1, std::string(4096, 'a'));
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = before;
    small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string refused = send(id, 2, "b");
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(refused, "RESOURCE_EXHAUSTED");
    EXPECT_EQ(uploads().find(id)->parts.size(), 1u);
    EXPECT_EQ(complete(id, {{1, a}, {2, send(id, 2, "b")}}), "");
    EXPECT_EQ(content(), std::string(4096, 'a') + "b");
}

TEST_F(MultipartUploadsTest, TakesPartsFromManyThreads) {
    constexpr int kParts = 64;
    const std::string id = begin(kParts);
    std::vector<ClaimedPart> claims(kParts);
    std::vector<std::thread> senders;
    for (int t = 0; t < 8; ++t)
        senders.emplace_back([&, t] {
            for (int number = kParts - t; number >= 1; number -= 8)
                claims[static_cast<std::size_t>(number - 1)] = {
                    number, send(id, number, bytes_of(5000, static_cast<unsigned>(number)))};
        });
    for (std::thread& sender : senders) sender.join();
    EXPECT_EQ(complete(id, claims), "");
    std::string expected;
    for (int number = 1; number <= kParts; ++number)
        expected += bytes_of(5000, static_cast<unsigned>(number));
    EXPECT_EQ(content(), expected);
}

}  // namespace
}  // namespace tune::tracker
