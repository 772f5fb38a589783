#include "tracker/http/session/admission.h"

#include "tracker/http/tls/tls_identity.h"

namespace tune::tracker {
namespace {

std::optional<Response> refuse_coding(const Request& request, const Route& route) {
    const std::string_view coding = request.header("Content-Encoding");
    if (coding.empty() || coding == "identity") return {};
    if (route.body != Body::kStream && coding == "gzip") return {};
    Response response = error_response(
        {Code::kBadRequest,
         "This route does not take a body with Content-Encoding " + std::string(coding) + "."});
    response.status = 415;
    return response;
}

/// Where the server asks clients for certificates, agents of other machines need one besides their
/// token.
std::optional<Response> refuse_stranger(const Route& route, const Endpoints& endpoints,
                                        const ServerOptions& options) {
    const bool is_wanted = options.tls && options.tls->asks_clients() &&
                           route.access.access() == Access::kAgent && !endpoints.is_loopback;
    if (!is_wanted || endpoints.has_client_certificate) return {};
    return error_response(
        {Code::kPermissionDenied,
         "Agents on other machines need a client certificate here: give the "
         "agent one with --client-cert, signed by the server's --tls-client-ca."});
}

std::optional<Response> refuse_length(std::uint64_t content_length, std::size_t limit) {
    if (content_length <= limit) return {};
    return error_response(
        {Code::kRequestEntityTooLarge, "The request body has " + std::to_string(content_length) +
                                           " bytes; the limit is " + std::to_string(limit) + "."});
}

}  // namespace

Admission admit(Request& request, std::optional<std::uint64_t> content_length,
                const Endpoints& endpoints, const ServerContext& context) {
    Admission admission;
    context.router.strip_prefix(request);
    admission.refusal = context.host_check.objection(request, endpoints.local_address);
    if (admission.refusal) return admission;
    Response not_found;
    admission.route = context.router.resolve(request, not_found);
    if (admission.route == nullptr) {
        admission.refusal = std::move(not_found);
        return admission;
    }
    admission.refusal = refuse_stranger(*admission.route, endpoints, context.options);
    if (admission.refusal) return admission;
    admission.refusal = refuse_coding(request, *admission.route);
    if (admission.refusal) return admission;
    if (admission.route->body != Body::kStream)
        admission.refusal =
            refuse_length(content_length.value_or(0), context.options.json_body_bytes_max);
    return admission;
}

void open_sink(Admission& admission, const std::shared_ptr<Request>& request) {
    if (admission.route->body != Body::kStream) return;
    Result<std::unique_ptr<BodySink>> sink = admission.route->open_sink(request);
    if (sink)
        admission.sink = std::move(sink).value();
    else
        admission.refusal = error_response(sink.error());
}

}  // namespace tune::tracker
