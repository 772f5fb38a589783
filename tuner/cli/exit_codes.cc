#include "tuner/cli/exit_codes.h"

#include <algorithm>
#include <array>

#include "tuner/cli/options.h"

namespace tune::cli {
namespace {

struct VerbCodes {
    std::string_view verb;
    std::vector<int> codes;
};

std::string line_of(int code) {
    std::string text = "  " + std::to_string(code);
    text.resize(7, ' ');
    switch (code) {
        case kExitOk: return text + "ok\n";
        case kExitFailed: return text + "failed; stderr has the reason\n";
        case kExitUsage: return text + "usage: an argument or a value in a file is wrong\n";
        case kExitNoTrial: return text + "no trial has completed\n";
        case kExitTime: return text + "the time or cost budget ran out before the trials\n";
        default: return text + "interrupted\n";
    }
}

}  // namespace

std::vector<int> codes_of_verb(std::string_view verb) {
    static const std::array<VerbCodes, 10> kCodes = {
        {{"run", {kExitNoTrial, kExitTime, kExitInterrupted}},
         {"best", {kExitNoTrial}},
         {"plot", {kExitNoTrial}},
         {"importance", {kExitNoTrial}},
         {"pruners", {kExitNoTrial}},
         {"bench", {kExitInterrupted}},
         {"import", {kExitInterrupted}},
         {"export", {kExitInterrupted}},
         {"backup", {kExitInterrupted}},
         {"restore", {kExitInterrupted}}}};
    const auto found = std::find_if(kCodes.begin(), kCodes.end(),
                                    [&](const VerbCodes& one) { return one.verb == verb; });
    return found == kCodes.end() ? std::vector<int>() : found->codes;
}

std::string exit_codes(const std::vector<int>& more) {
    if (more.empty()) return "Exit codes: 0 ok, 1 failed (stderr has the reason), 2 usage\n";
    std::string text = "Exit codes:\n";
    for (const int code : {kExitOk, kExitFailed, kExitUsage}) text += line_of(code);
    for (const int code : more) text += line_of(code);
    return text;
}

}  // namespace tune::cli
