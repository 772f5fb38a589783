#include "tuner/cli/access/tls_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tuner/cli/options.h"

namespace tune::cli {
namespace {

/// An option whose value becomes a variable: the program's threads and its trials find it there.
void add_variable(CLI::App& verb, const char* name, const char* variable, const char* summary) {
    verb.add_option_function<std::string>(
        name,
        [variable](const std::string& file) {
            std::error_code failed;
            const std::filesystem::path whole = std::filesystem::absolute(file, failed);
            ::setenv(variable, failed ? file.c_str() : whole.c_str(), 1);
        },
        summary);
}

void add_tls_flags(CLI::App& verb, ServerTls& tls) {
    CLI::Option* const certificate = verb.add_option(
        "--tls-cert", tls.certificate,
        "speak HTTPS with the certificate in this PEM file; read anew when it changes");
    CLI::Option* const key =
        verb.add_option("--tls-key", tls.key, "its key, in a PEM file without a passphrase");
    certificate->needs(key);
    key->needs(certificate);
    CLI::Option* const clients = verb.add_option(
        "--tls-client-ca", tls.client_authority,
        "agents on other machines need a certificate signed by one in this PEM file");
    clients->needs(certificate);
    verb.add_flag("--tls-client-required", tls.is_client_required,
                  "every client needs such a certificate")
        ->needs(clients);
}

}  // namespace

void add_listen_flags(CLI::App& verb, ListenFlags& listen) {
    verb.add_flag("--insecure-no-auth", listen.insecure_no_auth,
                  "no authentication, also where other machines reach the server");
    verb.add_flag("--insecure-no-tls", listen.insecure_no_tls,
                  "no encryption where other machines reach the server");
    add_tls_flags(verb, listen.tls);
}

void add_trust_flags(CLI::App& app) {
    for (CLI::App* const verb : app.get_subcommands([](const CLI::App*) { return true; })) {
        add_trust_flags(*verb);
        if (verb->get_option_no_throw("--server") == nullptr) continue;
        add_variable(*verb, "--ca", "TUNE_CA_FILE",
                     "PEM file with the authorities to trust for https:// (default: the system's)");
        add_variable(*verb, "--client-cert", "TUNE_CLIENT_CERT",
                     "PEM file with a certificate and its key, for a server that asks for one");
    }
}

}  // namespace tune::cli
