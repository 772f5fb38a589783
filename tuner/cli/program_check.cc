#include "tuner/cli/program_check.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "tuner/cli/study_flags.h"

namespace tune::cli {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& program) {
    const char* const path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "" : path;
    while (!rest.empty()) {
        const std::size_t end = rest.find(':');
        if (is_program(fs::path(rest.substr(0, end)) / program)) return true;
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return false;
}

/// Only what looks like a path: other words may be names that the interpreter looks up.
Result<void> check_script(const tuner::StudyConfig& config) {
    const std::size_t index = script_index(config.command);
    const std::string& script = config.command[index];
    std::error_code ignored;
    if (index == 0 || script.find_first_of("./") == std::string::npos ||
        fs::exists(fs::path(config.working_dir) / script, ignored))
        return {};
    const fs::path folder =
        config.working_dir.empty() ? fs::current_path(ignored) : fs::path(config.working_dir);
    return Error{Code::kInvalidParameterValue,
                 "script not found: there is no file '" + script + "' in " + folder.string()};
}

}  // namespace

Result<void> check_program(const tuner::StudyConfig& config) {
    TUNE_TRY_VOID(check_script(config));
    const std::string& program = config.command.front();
    if (program.find('{') != std::string::npos) return {};
    if (program.find('/') != std::string::npos) {
        if (is_program(fs::path(config.working_dir) / program)) return {};
        return Error{Code::kInvalidParameterValue,
                     "command not found: '" + program + "' is not an executable file"};
    }
    std::error_code ignored;
    const fs::path own_folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    if (is_program(own_folder / program) || is_in_path(program)) return {};
    return Error{Code::kInvalidParameterValue,
                 "command not found: there is no program '" + program + "' in PATH or beside tune"};
}

}  // namespace tune::cli
