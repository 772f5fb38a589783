#pragma once
// One kept-alive HTTP connection of the client.

#include <memory>

#include "tracker/client/transport.h"
#include "tracker/client/url_parts.h"

namespace tune::tracker {

class ClientConnection final : public Transport {
public:
    ClientConnection(UrlParts url, TransportOptions options);
    ~ClientConnection() override;
    ClientConnection(const ClientConnection&) = delete;
    ClientConnection& operator=(const ClientConnection&) = delete;

    [[nodiscard]] bool exchange(const Outgoing& request, HttpResponse& answer,
                                AttemptError& error) override;
    void cancel() override;
    [[nodiscard]] bool is_cancelled() const override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tune::tracker
