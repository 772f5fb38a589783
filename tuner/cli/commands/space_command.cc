// `tune space`: a space of another tuner as study.yaml. `tune schema`: what a study may hold.

#include "tuner/cli/commands/space_command.h"

#include "base/system/file.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_schema.h"
#include "tuner/interop/foreign/foreign.h"

namespace tune::cli {
namespace {

Result<std::string> translated(const SpaceCommand& options) {
    std::optional<tuner::ForeignSystem> system;
    if (!options.from.empty()) {
        system = tuner::foreign_system(options.from);
        if (!system)
            return Error{
                Code::kInvalidParameterValue,
                "--from '" + options.from + "' is unknown; known: " + tuner::foreign_systems()};
    }
    TUNE_TRY(text, read_file(options.file, tuner::kStudyBytesMax));
    Result<std::string> study = tuner::study_from_foreign(text, system);
    if (study) return study;
    Error error = std::move(study).error();
    error.context = options.file;
    return error;
}

}  // namespace

int run_space(const SpaceCommand& options) {
    const Result<std::string> study = translated(options);
    if (!study) return fail(study.error(), false);
    print(*study);
    return kExitOk;
}

int run_schema(const SchemaCommand& options) {
    print(options.markdown ? tuner::study_options_page() : std::string(tuner::study_schema()));
    return kExitOk;
}

}  // namespace tune::cli
