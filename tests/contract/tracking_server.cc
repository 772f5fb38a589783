// The tracking part alone, as a program: what the contract tests run where `tune` is not built.
//   tracking_server --data DIR [--port N] [--host H] [--threads N]
// Prints "Listening on http://127.0.0.1:PORT" when it answers. SIGTERM drains.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "tracker/api/app.h"
#include "tracker/api/ops/maintenance_routes.h"
#include "tracker/api/ops/openapi.h"
#include "tracker/api/ui/live_events.h"
#include "tracker/http/server.h"

namespace {

using namespace tune;
using namespace tune::tracker;

int fail(const Error& error) {
    std::fprintf(stderr, "tracking_server: %s\n", error.text().c_str());
    return 1;
}

int serve(const std::string& data, const ServerOptions& options) {
    SystemClock clock;
    StoreOptions store_options;
    store_options.directory = data;
    auto store = Store::open(store_options);
    if (!store) return fail(store.error());
    auto artifacts = ArtifactStore::open(data + "/artifacts");
    if (!artifacts) return fail(artifacts.error());
    EventHub hub(clock);
    LiveEvents live(hub, clock);
    (*store)->add_observer(&live);
    Router router;
    add_tracking_routes(router, {**store, **artifacts, hub}, {});
    Maintenance maintenance(**store, **artifacts, data, clock);
    add_maintenance_routes(router, maintenance, **artifacts);
    add_openapi_routes(router, {tracking_openapi()});
    auto server = Server::start(options, router);
    if (!server) return fail(server.error());
    std::printf("Listening on %s\n", (*server)->url().c_str());
    std::fflush(stdout);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    int received = 0;
    sigwait(&signals, &received);
    maintenance.stop();
    (*server)->stop();
    (*store)->stop();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    // A file-size limit must be an error of one request, not the end of the server.
    ::signal(SIGXFSZ, SIG_IGN);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::string data = "./tune-data";
    ServerOptions options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--data") data = argv[i + 1];
        if (name == "--port") options.port = static_cast<std::uint16_t>(std::atoi(argv[i + 1]));
        if (name == "--host") options.host = argv[i + 1];
        if (name == "--threads") options.threads = std::atoi(argv[i + 1]);
    }
    return serve(data, options);
}
