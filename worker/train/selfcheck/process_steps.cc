// Steps of the self-check that run whole trainers, as users run them: as processes.
//
// Resume: a run that is killed with SIGKILL and started again must leave the checkpoint of an
// uninterrupted one, byte for byte on a CPU; on a GPU atomic additions have no fixed order, so
// weights may differ by rounding. Pool: pruned and finished trials of one process end with their
// own exit codes. Ranks: two ranks must give what one gives. Packed: GPU memory after a stopped
// training is what it was before it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/system/file.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/device/device.h"
#include "worker/train/selfcheck/child_process.h"
#include "worker/train/selfcheck/examples.h"
#include "worker/train/selfcheck/steps.h"
#include "worker/train/trainer.h"

namespace tune::train {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kSamples = 1200;
constexpr auto kRunLimit = seconds(100);
/// cuBLAS keeps a workspace for each stream.
constexpr std::int64_t kWorkspaceBytesMax = 64 << 20;

std::vector<std::string> train_command(const CheckContext& context, const std::string& directory,
                                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {context.program,
                                        "train",
                                        "--data=" + context.folder + "/data",
                                        "--checkpoint-dir=" + context.folder + "/" + directory,
                                        "--batch-size=120",
                                        "--width=32",
                                        "--dropout=0.2",
                                        "--log-every=1",
                                        std::string("--device=") + (context.cuda ? "cuda" : "cpu")};
    command.insert(command.end(), more.begin(), more.end());
    return command;
}

/// Runs to the end.
Result<ChildEnd> run_trainer(const std::vector<std::string>& command,
                             const std::map<std::string, std::string>& environment = {}) {
    TUNE_TRY(child, ChildProcess::start(command, environment));
    ChildEnd end = child.wait(kRunLimit);
    if (!end.ok()) return Error{Code::kInternalError, "the trainer: " + end.text()};
    return end;
}

Result<std::string> checkpoint_of(const CheckContext& context, const std::string& directory) {
    return read_file(context.folder + "/" + directory + "/last.safetensors", std::size_t{1} << 30);
}

/// The largest difference between float32 tensors of two checkpoints.
Result<double> difference(std::string first, std::string second) {
    TUNE_TRY(a, Safetensors::parse(std::move(first)));
    TUNE_TRY(b, Safetensors::parse(std::move(second)));
    double largest = 0.0;
    for (const TensorBytes& tensor : a.tensors()) {
        const TensorBytes* other = b.find(tensor.name);
        if (other == nullptr || other->data.size() != tensor.data.size())
            return Error{Code::kInternalError, "tensor '" + tensor.name + "' is in one file only"};
        for (std::size_t i = 0; i + sizeof(float) <= tensor.data.size(); i += sizeof(float)) {
            float x = 0;
            float y = 0;
            std::memcpy(&x, tensor.data.data() + i, sizeof x);
            std::memcpy(&y, other->data.data() + i, sizeof y);
            largest = std::max(largest, static_cast<double>(std::abs(x - y)));
        }
    }
    return largest;
}

Result<std::uint16_t> free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (fd >= 0) close(fd);
    if (!bound) return Error{Code::kInternalError, "there is no free port on 127.0.0.1"};
    return ntohs(address.sin_port);
}

std::string run_line(const CheckContext& context, int trial, const char* epochs) {
    return R"({"op":"run","attempt":1,"trial":")" + std::to_string(trial) +
           R"(","parameters":{"epochs":)" + epochs + R"(,"batch-size":120,"data":")" +
           context.folder + R"(/data"}})" + "\n";
}

/// What is allocated on the GPU once a training was stopped. Errors: those of the training.
Result<std::int64_t> bytes_left_by_a_pruned_trial(const CheckContext& context) {
    TUNE_TRY(device, open_device(DeviceKind::kCuda, 0));
    TrainConfig config;
    config.data = context.folder + "/data";
    config.width = 4096;
    std::atomic<bool> stop = false;
    TUNE_TRY_VOID(train_beside_others(
        config, *device,
        [&](const std::string& /*lines*/) {
            stop.store(true);
            return true;
        },
        stop));
    device->release_cached();
    return device->memory().allocated;
}

/// Ten trials of a pool, and one that is pruned. Trials a second. Errors: what went wrong.
Result<double> check_pool(const CheckContext& context) {
    constexpr int kTrials = 10;
    constexpr std::size_t kLinesOfFirst = 4;
    TUNE_TRY(pool,
             ChildProcess::start({context.program, "pool", "--parallel=2",
                                  std::string("--device=") + (context.cuda ? "cuda" : "cpu")}));
    TUNE_TRY_VOID(pool.write(run_line(context, 0, "1000000")));
    if (!pool.wait_lines(kLinesOfFirst, kRunLimit))
        return Error{Code::kInternalError, "a trial of the pool reports nothing"};
    const auto begin = std::chrono::steady_clock::now();
    std::string lines = R"({"op":"prune","trial":"0","attempt":1})"
                        "\n";
    for (int trial = 1; trial <= kTrials; ++trial) lines += run_line(context, trial, "1");
    TUNE_TRY_VOID(pool.write(lines));
    pool.close_input();
    const ChildEnd end = pool.wait(kRunLimit);
    if (!end.ok()) return Error{Code::kInternalError, "the pool: " + end.text()};
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    for (int trial = 0; trial <= kTrials; ++trial) {
        const std::string wanted = R"({"event":"ended","trial":")" + std::to_string(trial) +
                                   R"(","attempt":1,"exit_code":)" + (trial == 0 ? "10," : "0,");
        if (end.output.find(wanted) == std::string::npos)
            return Error{Code::kInternalError,
                         "trial " + std::to_string(trial) + " of the pool did not end well"};
    }
    return kTrials / taken.count();
}

}  // namespace

Result<CheckResult> check_resume(const CheckContext& context) {
    TUNE_TRY_VOID(write_example_data(context.folder + "/data", kSamples));
    const std::vector<std::string> length = {"--epochs=30", "--checkpoint-every=3"};
    TUNE_TRY_VOID(run_trainer(train_command(context, "whole", length)));
    TUNE_TRY(child, ChildProcess::start(train_command(context, "pieces", length)));
    if (!child.wait_lines(40, kRunLimit)) return check_failed("the trainer printed no metrics");
    child.signal(SIGKILL);
    if (child.wait(kRunLimit).signal != SIGKILL)
        return check_failed("the trainer ended before it could be killed");
    TUNE_TRY(end, run_trainer(train_command(context, "pieces", length)));
    const std::size_t line = end.errors.find("resumed from");
    if (line == std::string::npos) return check_failed("the second run began anew");
    TUNE_TRY(whole, checkpoint_of(context, "whole"));
    TUNE_TRY(pieces, checkpoint_of(context, "pieces"));
    const std::size_t step = end.errors.find("step ", line);
    const std::string where = end.errors.substr(step, end.errors.find('\n', step) - step);
    if (whole == pieces) return check_ok("killed, resumed at " + where + ": the same bytes");
    if (!context.cuda) return check_failed("the bytes of the checkpoints differ");
    // Sums of atomic additions on a GPU have no fixed order.
    TUNE_TRY(largest, difference(std::move(whole), std::move(pieces)));
    if (largest > 1e-3) return check_failed("weights differ by " + std::to_string(largest));
    return check_ok("killed, resumed at " + where + ": weights differ by rounding", largest,
                    "at most");
}

Result<CheckResult> check_ranks(const CheckContext& context) {
    if (context.cuda) return check_skipped("needs a GPU for each of two ranks");
    TUNE_TRY_VOID(write_example_data(context.folder + "/data", kSamples));
    const std::vector<std::string> length = {"--epochs=3"};
    TUNE_TRY_VOID(run_trainer(train_command(context, "alone", length)));
    TUNE_TRY(port, free_port());
    std::vector<ChildProcess> ranks;
    for (int rank = 0; rank < 2; ++rank) {
        TUNE_TRY(child, ChildProcess::start(train_command(context, "ranks", length),
                                            {{"RANK", std::to_string(rank)},
                                             {"LOCAL_RANK", std::to_string(rank)},
                                             {"WORLD_SIZE", "2"},
                                             {"MASTER_ADDR", "127.0.0.1"},
                                             {"MASTER_PORT", std::to_string(port)}}));
        ranks.push_back(std::move(child));
    }
    for (ChildProcess& rank : ranks) {
        const ChildEnd end = rank.wait(kRunLimit);
        if (!end.ok()) return check_failed("a rank: " + end.text());
    }
    TUNE_TRY(alone, checkpoint_of(context, "alone"));
    TUNE_TRY(together, checkpoint_of(context, "ranks"));
    TUNE_TRY(largest, difference(std::move(alone), std::move(together)));
    if (largest > 1e-3)
        return check_failed("weights differ by " + std::to_string(largest) + " from one rank's");
    return check_ok("two Gloo ranks against one: weights differ at most by", largest, "apart");
}

Result<CheckResult> check_packed(const CheckContext& context) {
    TUNE_TRY_VOID(write_example_data(context.folder + "/data", kSamples));
    std::vector<ChildProcess> trainers;
    for (const char* directory : {"a", "b"}) {
        TUNE_TRY(child, ChildProcess::start(train_command(context, directory, {"--epochs=3"})));
        trainers.push_back(std::move(child));
    }
    for (ChildProcess& trainer : trainers) {
        const ChildEnd end = trainer.wait(kRunLimit);
        if (!end.ok()) return check_failed("one of two trainers: " + end.text());
    }
    TUNE_TRY(first, checkpoint_of(context, "a"));
    TUNE_TRY(second, checkpoint_of(context, "b"));
    TUNE_TRY(largest, difference(std::move(first), std::move(second)));
    if (largest > (context.cuda ? 1e-3 : 0.0))
        return check_failed("two equal trainings side by side differ by " +
                            std::to_string(largest));
    TUNE_TRY(per_second, check_pool(context));
    if (context.cuda) {
        TUNE_TRY(left, bytes_left_by_a_pruned_trial(context));
        if (left > kWorkspaceBytesMax)
            return check_failed("a pruned trial leaves " + std::to_string(left) +
                                " bytes on the device");
    }
    return check_ok("two processes at once trained the same; a pool trained and pruned, trials",
                    per_second, "1/s");
}

}  // namespace tune::train
