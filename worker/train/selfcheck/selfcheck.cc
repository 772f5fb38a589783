// `tune-trainer selfcheck`: runs the steps of steps.cc, one process each, and reports.
//
// A step may crash, hang or run out of memory; as a process it takes nothing else with it and has a
// limit of time. The device is probed by a process, too: a driver's state does not survive a fork,
// and this process starts others. Steps print their result as one line of JSON, the last one that
// begins like one.

#include "worker/train/selfcheck/selfcheck.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "worker/train/exit_code.h"
#include "worker/train/selfcheck/child_process.h"

namespace tune::train {
namespace {

using Status = CheckResult::Status;

const char* status_name(Status status) {
    switch (status) {
        case Status::kOk: return "ok";
        case Status::kFailed: return "failed";
        case Status::kSkipped: return "skipped";
    }
    return "";
}

Json to_json(const CheckResult& result) {
    Json json = {{"status", status_name(result.status)}, {"detail", result.detail}};
    if (!result.unit.empty()) {
        json["value"] = json_number(result.value);
        json["unit"] = result.unit;
    }
    return json;
}

CheckResult from_json(const Json& json) {
    CheckResult result;
    const std::string status = json.value("status", "failed");
    result.status = status == "ok"        ? Status::kOk
                    : status == "skipped" ? Status::kSkipped
                                          : Status::kFailed;
    result.detail = json.value("detail", "");
    if (json.contains("unit") && json["value"].is_number()) {
        result.unit = json["unit"].get<std::string>();
        result.value = json["value"].get<double>();
    }
    return result;
}

/// Runs one step here and prints its result.
int run_step(const CheckStep& step, bool cuda) {
    std::string folder = (std::filesystem::temp_directory_path() / "tune-selfcheck.XXXXXX");
    if (mkdtemp(folder.data()) == nullptr) {
        std::perror(folder.c_str());
        return static_cast<int>(ExitCode::kFailed);
    }
    Result<CheckResult> result = check_failed("");
    try {
        result = step.run({.cuda = cuda, .program = own_program(), .folder = folder});
    } catch (const std::exception& error) {
        const std::string text = error.what();
        result = check_failed(text.substr(0, text.find('\n')));
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    const CheckResult found = result ? *result : check_failed(result.error().text());
    std::printf("%s\n", to_text(to_json(found)).c_str());
    return static_cast<int>(ExitCode::kDone);
}

/// Runs one step as a process.
CheckResult check(const CheckStep& step, const std::string& device) {
    auto child =
        ChildProcess::start({own_program(), "selfcheck", "--device", device, "--step", step.name});
    if (!child) return check_failed(child.error().text());
    const ChildEnd end = child->wait(step.limit);
    if (!end.ok()) return check_failed(end.text());
    const std::size_t begin = end.output.rfind("{\"detail\"");
    const auto json =
        parse_json(begin == std::string::npos ? std::string_view()
                                              : std::string_view(end.output).substr(begin));
    if (!json) return check_failed("the step printed no result");
    return from_json(*json);
}

/// cpu or cuda; opened in a process of its own, since a driver's state does not survive a fork and
/// this process starts others.
Result<std::string> resolved(const std::string& device) {
    if (device == "cpu" || device == "cuda") return device;
    if (device != "auto")
        return invalid_parameter("device: '" + device + "' is not one of cpu, cuda, auto");
    TUNE_TRY(child, ChildProcess::start(
                        {own_program(), "selfcheck", "--device", "cuda", "--step", "device"}));
    const ChildEnd end = child.wait(std::chrono::minutes(1));
    return std::string(end.output.find("\"failed\"") == std::string::npos && end.ok() ? "cuda"
                                                                                      : "cpu");
}

void print_line(std::size_t number, const CheckStep& step, const CheckResult& result,
                double taken_s) {
    char value[48] = "";
    if (!result.unit.empty())
        std::snprintf(value, sizeof value, "%.4g %s", result.value, result.unit.c_str());
    std::printf("%2zu %-7s %-14s %-14s %s (%.1f s)\n", number, status_name(result.status),
                step.name.c_str(), value, result.detail.c_str(), taken_s);
    std::fflush(stdout);
}

int run_all(const std::string& device, bool json) {
    if (!json) std::printf("tune-trainer selfcheck on %s\n", device.c_str());
    Json list = Json::array();
    std::size_t counts[3] = {0, 0, 0};
    for (std::size_t i = 0; i < check_steps().size(); ++i) {
        const CheckStep& step = check_steps()[i];
        const auto begin = std::chrono::steady_clock::now();
        const CheckResult result = check(step, device);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        ++counts[static_cast<std::size_t>(result.status)];
        if (!json) print_line(i + 1, step, result, taken.count());
        Json entry = to_json(result);
        entry["number"] = i + 1;
        entry["name"] = step.name;
        entry["seconds"] = taken.count();
        list.push_back(std::move(entry));
    }
    if (json)
        std::printf("%s\n", to_text({{"device", device},
                                     {"steps", list},
                                     {"ok", counts[0]},
                                     {"failed", counts[1]},
                                     {"skipped", counts[2]}})
                                .c_str());
    else
        std::printf("%zu ok, %zu failed, %zu skipped\n", counts[0], counts[1], counts[2]);
    return static_cast<int>(counts[1] == 0 ? ExitCode::kDone : ExitCode::kFailed);
}

}  // namespace

CheckResult check_ok(std::string detail, double value, std::string unit) {
    return {Status::kOk, value, std::move(unit), std::move(detail)};
}

CheckResult check_failed(std::string detail) {
    return {Status::kFailed, 0.0, {}, std::move(detail)};
}

CheckResult check_skipped(std::string reason) {
    return {Status::kSkipped, 0.0, {}, std::move(reason)};
}

int selfcheck(const SelfcheckOptions& options) {
    const auto report = [](const Error& error) {
        std::fprintf(stderr, "tune-trainer: %s\n", error.text().c_str());
        return static_cast<int>(exit_code_of(error));
    };
    if (options.step.empty()) {
        const auto device = resolved(options.device);
        if (!device) return report(device.error());
        return run_all(*device, options.json);
    }
    const auto& steps = check_steps();
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const CheckStep& step) {
        return step.name == options.step;
    });
    if (found == steps.end())
        return report(invalid_parameter("step: there is no '" + options.step + "'"));
    return run_step(*found, options.device == "cuda");
}

}  // namespace tune::train
