#pragma once
// Attempt credentials (tuner/study/registry/attempt_credentials.h) as the tracker asks for them.

#include "tracker/api/http/principal.h"
#include "tuner/study/registry/studies.h"

namespace tune::tuner {

/// Knows the credentials of `credentials`, which outlives it; everybody else is anonymous.
class AttemptAuthenticator final : public tracker::Authenticator {
public:
    explicit AttemptAuthenticator(const AttemptCredentials& credentials)
        : credentials_(credentials) {}

    [[nodiscard]] tracker::Principal authenticate(
        const tracker::Credentials& credentials) const override;
    [[nodiscard]] Result<void> check_metrics(
        const tracker::Principal& principal, std::string_view run_id,
        std::span<const tracker::Metric> metrics) const override;

private:
    const AttemptCredentials& credentials_;
};

}  // namespace tune::tuner
