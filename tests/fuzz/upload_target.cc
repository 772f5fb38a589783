// Files in parts: the bytes are a little program of creates, parts, completions, breaks and
// restarts against a real folder. Property: what is visible is what a model of it says, whole or
// not at all.

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/system/unique_fd.h"
#include "tests/fuzz/fuzz.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/multipart_uploads.h"
#include "tracker/artifacts/rooted_dir.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker;

constexpr const char* kPath = "run/file.bin";
constexpr int kStepsMax = 48;

/// The bytes of the input, one after another; zeros at the end.
class Bytes {
public:
    explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
    [[nodiscard]] bool is_at_end() const { return bytes_.empty(); }
    std::uint8_t take() {
        if (bytes_.empty()) return 0;
        const auto byte = static_cast<std::uint8_t>(bytes_[0]);
        bytes_.remove_prefix(1);
        return byte;
    }
    std::string_view take_text(std::size_t size) {
        const std::string_view text = bytes_.substr(0, size);
        bytes_.remove_prefix(text.size());
        return text;
    }

private:
    std::string_view bytes_;
};

struct Sent {
    std::string bytes;
    std::string etag;
};

/// One upload as its client knows it.
struct Model {
    std::string id;
    int part_count = 0;
    std::map<int, Sent> parts;
    bool is_completed = false;
};

class World {
public:
    World() { restart(); }

    void restart() {
        uploads_.reset();
        uploads_ = MultipartUploads::open(root_.get(), staging_.get(), clock_,
                                          MultipartUploads::Expiry::kByCaller)
                       .value();
    }

    void create(Bytes& bytes) {
        const int part_count = bytes.take() % 5;
        const Result<UploadStatus> made = uploads_->create(kPath, part_count);
        if (!made) return;  // as many as may be open
        model_ = Model{made->id, part_count, {}, false};
    }

    void send(Bytes& bytes, bool breaks_off) {
        const int number = bytes.take() % 6;
        const std::string text(bytes.take_text(bytes.take() % 8));
        auto writer = uploads_->begin_part(model_.id, number, text.size());
        if (!writer) {
            // What is sent again is dropped first, also when its new size is refused.
            const Result<UploadStatus> status = uploads_->find(model_.id);
            const auto is_it = [&](const PartStatus& part) { return part.part_number == number; };
            if (status && std::none_of(status->parts.begin(), status->parts.end(), is_it))
                model_.parts.erase(number);
            return;
        }
        FUZZ_CHECK(number >= 1 && number <= model_.part_count && !model_.is_completed);
        model_.parts.erase(number);
        const std::size_t half = text.size() / 2;
        FUZZ_CHECK((*writer)->write(text.substr(0, half)).has_value());
        if (breaks_off) return;
        FUZZ_CHECK((*writer)->write(text.substr(half)).has_value());
        const Result<std::string> etag = (*writer)->finish();
        FUZZ_CHECK(etag.has_value());
        model_.parts[number] = {text, *etag};
    }

    void complete(Bytes& bytes) {
        std::vector<ClaimedPart> claims;
        for (const auto& [number, sent] : model_.parts) claims.push_back({number, sent.etag});
        const std::uint8_t damage = bytes.take();
        const bool is_damaged = damage % 4 == 0 && !claims.empty();
        if (is_damaged && damage % 8 == 0) claims.front().etag += 'x';
        if (is_damaged && damage % 8 != 0) claims.push_back(claims.front());
        std::reverse(claims.begin(), claims.end());
        const Result<void> done = uploads_->complete(model_.id, kPath, claims);
        const bool was_completed = model_.is_completed;
        if (done && !was_completed) {
            FUZZ_CHECK(!is_damaged && static_cast<int>(model_.parts.size()) == model_.part_count);
            visible_ = std::string();
            for (const auto& [number, sent] : model_.parts) *visible_ += sent.bytes;
            model_.is_completed = true;
        }
        FUZZ_CHECK(done || !was_completed);
    }

    void abort() {
        FUZZ_CHECK(uploads_->abort(model_.id, kPath).has_value());
        if (!model_.is_completed) model_ = {};
    }

    void check() {
        std::ifstream in(folder_.path() / kPath, std::ios::binary);
        FUZZ_CHECK(in.is_open() == visible_.has_value());
        if (in) {
            const std::string text((std::istreambuf_iterator<char>(in)), {});
            FUZZ_CHECK(text == *visible_);
        }
        const Result<UploadStatus> status = uploads_->find(model_.id);
        FUZZ_CHECK(status.has_value() == (!model_.id.empty() && !model_.is_completed));
        if (!status) return;
        FUZZ_CHECK(status->parts.size() == model_.parts.size());
        for (const PartStatus& part : status->parts) {
            FUZZ_CHECK(model_.parts.contains(part.part_number));
            FUZZ_CHECK(model_.parts[part.part_number].etag == part.etag);
        }
    }

private:
    // Without ArtifactStore and without threads: starting and joining them cost 50 times all else.
    Folder folder_;
    UniqueFd root_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    UniqueFd staging_ = make_directories(root_.get(), kStagingFolder).value();
    ManualClock clock_{1'000'000'000'000};
    std::unique_ptr<MultipartUploads> uploads_;
    Model model_;
    std::optional<std::string> visible_;
};

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    World world;
    Bytes bytes(text_of(data, size));
    for (int step = 0; step < kStepsMax && !bytes.is_at_end(); ++step) {
        switch (bytes.take() % 8) {
            case 0: world.create(bytes); break;
            case 1: world.send(bytes, true); break;
            case 5: world.complete(bytes); break;
            case 6: world.abort(); break;
            case 7: world.restart(); break;
            default: world.send(bytes, false);
        }
        world.check();
    }
    return 0;
}
