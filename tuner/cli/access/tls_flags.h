#pragma once
// The flags about TLS: what the server shows, whom the other commands believe.

namespace CLI {
class App;
}

namespace tune::cli {

struct ListenFlags;

/// --insecure-no-auth, --insecure-no-tls, --tls-cert, --tls-key, --tls-client-ca,
/// --tls-client-required: of each command with a server of its own.
void add_listen_flags(CLI::App& verb, ListenFlags& listen);

/// --ca and --client-cert for each command with --server, put into TUNE_CA_FILE and
/// TUNE_CLIENT_CERT, where clients look. Call it once the commands are complete.
void add_trust_flags(CLI::App& app);

}  // namespace tune::cli
