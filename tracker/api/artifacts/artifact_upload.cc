#include "tracker/api/artifacts/artifact_upload.h"

namespace tune::tracker {
namespace {

/// What the jobs on the pool share. One job at a time: the next one is posted after the last one's
/// end.
struct UploadState {
    UploadState(ArtifactStore& artifact_store, UploadTarget upload_target)
        : store(artifact_store), target(std::move(upload_target)) {}

    Result<void> open() {
        if (upload) return {};
        TUNE_TRY(resolved, target.resolve_path());
        if (target.range) {
            TUNE_TRY(opened, store.begin_append(resolved, target.range->begin, target.range->end));
            upload = std::move(opened);
        } else {
            TUNE_TRY(opened, store.begin_upload(resolved));
            upload = std::move(opened);
        }
        path = std::move(resolved);
        return {};
    }

    Result<void> write(std::string_view chunk) {
        if (chunk.size() > target.bytes_max - size_bytes)
            return Error{Code::kInvalidParameterValue, target.too_large};
        size_bytes += chunk.size();
        TUNE_TRY_VOID(open());
        Result<void> written = upload->write(chunk);
        // What a full disk made fail gives its space back before anybody hears of it.
        if (!written) upload.reset();
        return written;
    }

    Result<void> commit() {
        if (size_bytes == 0 && !target.empty.empty())
            return Error{Code::kInvalidParameterValue, target.empty};
        TUNE_TRY_VOID(open());
        TUNE_TRY_VOID(upload->commit());
        if (target.on_done) target.on_done(path);
        return {};
    }

    ArtifactStore& store;
    UploadTarget target;
    std::string path;
    std::unique_ptr<ArtifactWriter> upload;
    std::uint64_t size_bytes = 0;
};

class UploadSink final : public BodySink {
public:
    UploadSink(ArtifactStore& store, UploadTarget target)
        : state_(std::make_shared<UploadState>(store, std::move(target))) {}

    /// Dropping a large unfinished file takes the disk some time: not on a network thread.
    ~UploadSink() override {
        ArtifactStore& store = state_->store;
        store.pool().post([state = std::move(state_)] {});
    }

    void write(std::string_view chunk, std::function<void(Result<void>)> done) override {
        state_->store.pool().post(
            [state = state_, chunk, done = std::move(done)] { done(state->write(chunk)); });
    }

    void finish(Responder respond) override {
        state_->store.pool().post([state = state_, respond = std::move(respond)] {
            if (const Result<void> done = state->commit(); !done)
                return respond(error_response(done.error()));
            respond(Response{});
        });
    }

private:
    std::shared_ptr<UploadState> state_;
};

}  // namespace

std::unique_ptr<BodySink> make_upload_sink(ArtifactStore& store, UploadTarget target) {
    return std::make_unique<UploadSink>(store, std::move(target));
}

}  // namespace tune::tracker
