// openapi_compile OUTPUT DESCRIPTION...: runs when the project is built. Writes OUTPUT, the
// initialiser of an OpenApiPart (tracker/api/ops/openapi.h), from the description files.

#include <cstdio>
#include <exception>
#include <fstream>

#include "tracker/openapi/page.h"

namespace {

using tune::openapi::Description;
using tune::openapi::Schema;

/// The members of an object or list without its brackets, so that parts join with a comma.
std::string members(const Schema& value) {
    const std::string text = value.dump();
    return text.substr(1, text.size() - 2);
}

std::string raw_string(const std::string& text) {
    return "R\"openapi(" + text + ")openapi\",\n";
}

}  // namespace

int main(int argc, char** argv) {
    try {
        Description description;
        for (int i = 2; i < argc; ++i) tune::openapi::read_description(argv[i], description);
        if (argc < 3) throw std::runtime_error("usage: openapi_compile OUTPUT DESCRIPTION...");
        std::ofstream out(argv[1], std::ios::binary);
        out << "{" << raw_string(members(description.tags))
            << raw_string(members(description.paths)) << raw_string(members(description.schemas))
            << raw_string(tune::openapi::operations_html(description))
            << raw_string(tune::openapi::schemas_html(description)) << "}";
        out.close();
        if (!out) throw std::runtime_error(std::string("cannot write ") + argv[1]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "openapi_compile: %s\n", error.what());
        return 1;
    }
}
