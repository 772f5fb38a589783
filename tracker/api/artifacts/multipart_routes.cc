// MLflow's clients get part URLs that point back to this server; each carries the upload's id and
// secret, which is all that a part request needs. Bytes of a part go from the network to the pool
// piece by piece, so a part of any size holds one buffer.

#include "tracker/api/artifacts/multipart_routes.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "tracker/api/artifacts/artifact_handlers.h"
#include "tracker/api/http/base_url.h"
#include "tracker/api/http/message.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/multipart_uploads.h"

namespace tune::tracker {
namespace {

struct MultipartApi {
    TrackingParts parts;
    std::string static_prefix;

    [[nodiscard]] MultipartUploads& uploads() const { return parts.artifacts.multipart(); }
};

/// MLflow's client sends the whole path of its local file: the name is what counts.
std::string_view name_of_local_file(std::string_view path) {
    const bool is_windows =
        path.starts_with("\\\\") || (path.size() > 2 && path[1] == ':' && path[2] == '\\');
    const std::size_t cut = path.find_last_of(is_windows ? "/\\" : "/");
    return cut == std::string_view::npos ? path : path.substr(cut + 1);
}

/// The artifact that a mpu call is about: the folder in the route and the name in the body.
Result<std::string> target_of(const Request& request, const Message& message) {
    TUNE_TRY(folder, normal_artifact_path(request.parameter("path")));
    TUNE_TRY(local, message.required_text("path"));
    const std::string_view name = name_of_local_file(local);
    if (name.empty() || name == "." || name == "..")
        return Error{Code::kInvalidParameterValue, "Invalid path"};
    return artifact_file_path(join_artifact_path(folder, name));
}

Json credential(const MultipartApi& api, const Request& request, const UploadStatus& upload,
                int number) {
    const std::int64_t expires_s = upload.expires_ms / 1000;
    const std::string token = api.uploads().sign(upload.id, number, expires_s);
    return {{"part_number", number},
            {"url", base_url(request, api.static_prefix) + "/api/2.0/tune/uploads/" + upload.id +
                        "/parts/" + std::to_string(number) +
                        "?expires=" + std::to_string(expires_s) + "&token=" + token}};
}

/// URLs of the parts that are missing.
Json credentials(const MultipartApi& api, const Request& request, const UploadStatus& upload) {
    Json list = Json::array();
    auto there = upload.parts.begin();
    for (int number = 1; number <= upload.part_count; ++number) {
        if (there != upload.parts.end() && there->part_number == number)
            ++there;
        else
            list.push_back(credential(api, request, upload, number));
    }
    return list;
}

Json summary(const UploadStatus& upload) {
    std::uint64_t received = 0;
    for (const PartStatus& part : upload.parts) received += part.size_bytes;
    return {{"upload_id", upload.id},
            {"path", upload.path},
            {"num_parts", upload.part_count},
            {"part_size", upload.part_bytes},
            {"received_parts", upload.parts.size()},
            {"received_bytes", received},
            {"expires_time", upload.expires_ms}};
}

// --- MLflow's calls ------------------------------------------------------------------------------

Result<Response> create(const MultipartApi& api, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, target_of(request, message));
    TUNE_TRY(count, message.integer("num_parts"));
    TUNE_TRY(upload, api.uploads().create(path, count.value_or(0)));
    return json_response(
        {{"upload_id", upload.id}, {"credentials", credentials(api, request, upload)}});
}

Result<std::vector<ClaimedPart>> claimed_parts(const Message& message) {
    TUNE_TRY(messages, message.messages("parts"));
    std::vector<ClaimedPart> parts;
    for (const Message& each : messages) {
        TUNE_TRY(number, each.required_integer("part_number"));
        TUNE_TRY(etag, each.text("etag"));
        parts.push_back({number, std::move(etag)});
    }
    return parts;
}

Result<Response> complete(const MultipartApi& api, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, target_of(request, message));
    TUNE_TRY(id, message.required_text("upload_id"));
    TUNE_TRY(parts, claimed_parts(message));
    TUNE_TRY_VOID(api.uploads().complete(id, path, parts));
    announce_artifact(api.parts.hub, path);
    return json_text_response("{}");
}

Result<Response> abort(const MultipartApi& api, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, target_of(request, message));
    TUNE_TRY(id, message.required_text("upload_id"));
    TUNE_TRY_VOID(api.uploads().abort(id, path));
    return json_text_response("{}");
}

// --- resuming after a break ----------------------------------------------------------------------

Result<Response> list_uploads(const MultipartApi& api, const Request& request) {
    TUNE_TRY(path, normal_artifact_path(request.query_value("path").value_or("")));
    Json list = Json::array();
    for (const UploadStatus& upload : api.uploads().list(path)) list.push_back(summary(upload));
    return json_response({{"uploads", std::move(list)}});
}

Result<Response> get_upload(const MultipartApi& api, const Request& request) {
    TUNE_TRY(upload, api.uploads().find(request.parameter("upload_id")));
    Json answer = summary(upload);
    Json parts = Json::array();
    for (const PartStatus& part : upload.parts)
        parts.push_back({{"part_number", part.part_number},
                         {"etag", "\"" + part.etag + "\""},
                         {"size", part.size_bytes}});
    answer["parts"] = std::move(parts);
    answer["credentials"] = credentials(api, request, upload);
    return json_response(answer);
}

// --- the parts -----------------------------------------------------------------------------------

struct PartState {
    ArtifactStore& store;
    std::string upload_id;
    std::int64_t number = 0;
    std::uint64_t size_bytes = 0;
    std::unique_ptr<PartWriter> writer = {};

    Result<void> write(std::string_view chunk) {
        TUNE_TRY_VOID(open());
        return writer->write(chunk);
    }
    Result<std::string> finish() {
        TUNE_TRY_VOID(open());
        return writer->finish();
    }

private:
    Result<void> open() {
        if (writer) return {};
        TUNE_TRY(begun, store.multipart().begin_part(upload_id, number, size_bytes));
        writer = std::move(begun);
        return {};
    }
};

/// One part from the network to its place. All disk work is done on the store's pool.
class PartSink final : public BodySink {
public:
    explicit PartSink(std::shared_ptr<PartState> state) : state_(std::move(state)) {}

    ~PartSink() override {
        ArtifactStore& store = state_->store;
        store.pool().post([state = std::move(state_)] {});
    }

    void write(std::string_view chunk, std::function<void(Result<void>)> done) override {
        state_->store.pool().post(
            [state = state_, chunk, done = std::move(done)] { done(state->write(chunk)); });
    }

    void finish(Responder respond) override {
        state_->store.pool().post([state = state_, respond = std::move(respond)] {
            const Result<std::string> etag = state->finish();
            if (!etag) return respond(error_response(etag.error()));
            Response response;
            response.etag = "\"" + *etag + "\"";
            respond(std::move(response));
        });
    }

private:
    std::shared_ptr<PartState> state_;
};

std::optional<std::int64_t> number_in(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

Result<std::unique_ptr<BodySink>> open_part(const MultipartApi& api, const Request& request) {
    const std::string& id = request.parameter("upload_id");
    const auto number = number_in(request.parameter("part_number"));
    const auto expires_s = number_in(request.query_value("expires").value_or(""));
    if (!number || !expires_s)
        return Error{Code::kInvalidParameterValue,
                     "A part's URL holds its number and when it expires; take it as it was given."};
    TUNE_TRY_VOID(api.uploads().authorise(id, *number, *expires_s,
                                          request.query_value("token").value_or("")));
    const auto size = number_in(request.header("Content-Length"));
    if (!size)
        return Error{Code::kBadRequest,
                     "A part needs a Content-Length: its place in the file follows from it."};
    auto state = std::make_shared<PartState>(
        PartState{api.parts.artifacts, id, *number, static_cast<std::uint64_t>(*size)});
    return std::unique_ptr<BodySink>(std::make_unique<PartSink>(std::move(state)));
}

}  // namespace

void add_multipart_routes(Router& router, TrackingParts parts, const std::string& static_prefix) {
    const auto api = std::make_shared<const MultipartApi>(MultipartApi{parts, static_prefix});
    const auto on_pool = [&](Result<Response> (*work)(const MultipartApi&, const Request&)) {
        return pool_handler(parts.artifacts,
                            [api, work](const Request& request) { return work(*api, request); });
    };
    constexpr Needs kUpload = {Access::kWrite, Subject::kArtifact};
    const std::string mpu = "/mlflow-artifacts/mpu";
    router.add_api(2, {Method::kPost, kUpload, mpu + "/create/{path...}", Body::kJson,
                       "Begin a file in parts: path!, num_parts", on_pool(create)});
    router.add_api(2, {Method::kPost, kUpload, mpu + "/complete/{path...}", Body::kJson,
                       "Make it visible: path!, upload_id!, parts!", on_pool(complete)});
    router.add_api(2, {Method::kPost, kUpload, mpu + "/abort/{path...}", Body::kJson,
                       "Delete what there is: path!, upload_id!", on_pool(abort)});
    router.add_api(2, {Method::kGet,
                       {Access::kRead, Subject::kArtifact},
                       "/tune/uploads",
                       Body::kNone,
                       "Open uploads in parts, to resume: path",
                       on_pool(list_uploads)});
    router.add_api(2, {Method::kGet,
                       {Access::kRead, Subject::kUpload, Permission::kEdit},
                       "/tune/uploads/{upload_id}",
                       Body::kNone,
                       "The parts that are there, URLs for the others",
                       on_pool(get_upload)});
    router.add_api(
        2, {Method::kPut, Access::kByUrl, "/tune/uploads/{upload_id}/parts/{part_number}",
            Body::kStream, "One part, by the URL that was given for it", nullptr,
            [api](const std::shared_ptr<Request>& request) { return open_part(*api, *request); }});
}

}  // namespace tune::tracker
