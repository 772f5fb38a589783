// study_api_description FILE: runs when the project is built. Writes the description of a study's
// options in the API, for openapi_compile.

#include <cstdio>
#include <fstream>

#include "tuner/config/study_schema.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: study_api_description FILE\n");
        return 2;
    }
    std::ofstream out(argv[1], std::ios::binary);
    out << tune::tuner::study_api_description();
    out.close();
    if (out) return 0;
    std::fprintf(stderr, "study_api_description: cannot write %s\n", argv[1]);
    return 1;
}
