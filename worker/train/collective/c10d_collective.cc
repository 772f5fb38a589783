// c10d behind the two interfaces: a TCPStore where the ranks meet, Gloo for small values and for
// gradients on the CPU, the Reducer of DistributedDataParallel for the backward pass. Its headers
// are among LibTorch's heaviest, hence one file. Gloo is inside libtorch_cpu.so; only its headers
// come from elsewhere.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <cstdlib>

#include "worker/train/collective/collective.h"
#include "worker/train/collective/gradients.h"
#include "worker/train/device/device.h"
#include "worker/train/step/clipping.h"

namespace tune::train {
namespace {

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// Gloo and TCPStore have no error type of their own; their texts name their source or a socket.
bool is_of_a_connection(const std::string& text) {
    for (const char* part : {"gloo", "Gloo", "NCCL", "onnection", "ocket", "timed out", "Timed out",
                             "imeout", "TCPStore"})
        if (text.find(part) != std::string::npos) return true;
    return false;
}

/// Runs a collective and turns its exceptions into one error.
template <class F>
auto connected(const Collective& group, const char* what, F f) -> decltype(f()) {
    const auto lost = [&](const std::string& reason) {
        return Error{Code::kTemporarilyUnavailable,
                     "rank " + std::to_string(group.rank()) + " of " +
                         std::to_string(group.size()) + ": another rank is gone or stuck, while " +
                         what + " (" + first_line(reason) +
                         "); all ranks end, the next start resumes from the last checkpoint"};
    };
    try {
        return f();
    } catch (const c10::OutOfMemoryError&) {
        throw;
    } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        if (!is_of_a_connection(text)) throw;
        return lost(text);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const RankLost&) {
        throw;  // it says all this already
    } catch (const std::exception& error) {
        return lost(error.what());
    }
}

/// An allgather that Gloo's threads carry out.
class GatheredSum final : public PendingSum {
public:
    GatheredSum(const Collective& group, std::span<const double> values)
        : group_(group), own_(values.begin(), values.end()) {
        all_.assign(static_cast<std::size_t>(group.size()), std::vector<double>(values.size()));
    }

    void start(c10d::ProcessGroupGloo& gloo) {
        const auto count = static_cast<std::int64_t>(own_.size());
        std::vector<std::vector<at::Tensor>> outputs(1);
        for (std::vector<double>& of_rank : all_)
            outputs[0].push_back(at::from_blob(of_rank.data(), {count}, at::kDouble));
        std::vector<at::Tensor> inputs = {at::from_blob(own_.data(), {count}, at::kDouble)};
        work_ = gloo.allgather(outputs, inputs);
    }

    /// The other ranks write into memory of this object.
    ~GatheredSum() override {
        if (!work_ || work_->isCompleted()) return;
        try {
            work_->wait();
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody asked for it
        }
    }

    Result<std::vector<double>> wait() override {
        using Values = std::vector<double>;
        return connected(group_, "adding up values", [&]() -> Result<Values> {
            work_->wait();
            Values sums(own_.size(), 0.0);
            for (const Values& of_rank : all_)
                for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_rank[i];
            return sums;
        });
    }

private:
    const Collective& group_;
    std::vector<double> own_;
    std::vector<std::vector<double>> all_;
    c10::intrusive_ptr<c10d::Work> work_;
};

class C10dCollective final : public Collective {
public:
    C10dCollective(const Ranks& ranks, const CollectiveOptions& options)
        : rank_(ranks.rank), size_(ranks.size) {
        c10d::TCPStoreOptions store_options;
        store_options.port = ranks.master_port;
        store_options.isServer = ranks.rank == 0 && !ranks.store_is_running;
        store_options.numWorkers = static_cast<std::size_t>(ranks.size);
        // Gloo waits for all ranks; with torchrun's store their number is not that of its clients.
        store_options.waitWorkers = false;
        store_options.timeout = options.timeout;
        store_ = c10::make_intrusive<c10d::PrefixStore>(
            ranks.store_prefix,
            c10::make_intrusive<c10d::TCPStore>(ranks.master_host, store_options));
        store_->setTimeout(options.timeout);

        const auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
        gloo_options->devices.push_back(device(ranks));
        const auto rank = static_cast<int>(rank_);
        const auto size = static_cast<int>(size_);
        gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
            c10::make_intrusive<c10d::PrefixStore>("gloo", store_), rank, size, gloo_options);
        group_ = c10::make_intrusive<c10d::ProcessGroup>(store_, rank, size);
        group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo_);
        group_->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
        if (options.device == nullptr) return;
        const auto nccl = options.device->gradient_backend(
            c10::make_intrusive<c10d::PrefixStore>("nccl", store_), rank, size, options.timeout);
        if (!nccl) return;
        group_->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, nccl);
    }

    std::int64_t rank() const override { return rank_; }
    std::int64_t size() const override { return size_; }

    Result<std::vector<std::vector<double>>> gather(std::span<const double> values) override {
        using Values = std::vector<std::vector<double>>;
        return connected(*this, "gathering values", [&]() -> Result<Values> {
            const auto count = static_cast<std::int64_t>(values.size());
            std::vector<double> own(values.begin(), values.end());
            Values all(static_cast<std::size_t>(size_), std::vector<double>(values.size()));
            std::vector<std::vector<at::Tensor>> outputs(1);
            for (std::vector<double>& of_rank : all)
                outputs[0].push_back(at::from_blob(of_rank.data(), {count}, at::kDouble));
            std::vector<at::Tensor> inputs = {at::from_blob(own.data(), {count}, at::kDouble)};
            gloo_->allgather(outputs, inputs)->wait();
            return all;
        });
    }

    Result<std::unique_ptr<PendingSum>> start_sum(std::span<const double> values) override {
        using Pending = std::unique_ptr<PendingSum>;
        return connected(*this, "adding up values", [&]() -> Result<Pending> {
            auto pending = std::make_unique<GatheredSum>(*this, values);
            pending->start(*gloo_);
            return Pending(std::move(pending));
        });
    }

    Result<void> broadcast(std::string& bytes, std::int64_t from) override {
        const auto own = static_cast<double>(bytes.size());
        TUNE_TRY(sizes, gather({&own, 1}));
        bytes.resize(static_cast<std::size_t>(sizes[static_cast<std::size_t>(from)][0]));
        if (bytes.empty()) return {};
        return connected(*this, "broadcasting", [&]() -> Result<void> {
            std::vector<at::Tensor> tensors = {
                at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte)};
            c10d::BroadcastOptions options;
            options.rootRank = from;
            gloo_->broadcast(tensors, options)->wait();
            return {};
        });
    }

    Result<void> barrier() override {
        return connected(*this, "waiting for each other", [&]() -> Result<void> {
            gloo_->barrier()->wait();
            return {};
        });
    }

    [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return group_; }

private:
    /// The network through which the ranks talk. By the host's own name ranks of one machine would
    /// depend on how that name resolves.
    static std::shared_ptr<gloo::transport::Device> device(const Ranks& ranks) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
        if (const char* name = std::getenv("GLOO_SOCKET_IFNAME"); name != nullptr && *name != '\0')
            return c10d::ProcessGroupGloo::createDeviceForInterface(name);
        if (ranks.master_host == "127.0.0.1" || ranks.master_host == "localhost")
            return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
        return c10d::ProcessGroupGloo::createDefaultDevice();
    }

    const std::int64_t rank_;
    const std::int64_t size_;
    c10::intrusive_ptr<c10d::Store> store_;
    c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
    c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

class C10dSums final : public RankSums {
public:
    explicit C10dSums(C10dCollective& collective) : collective_(collective) {}

    at::Tensor sum(const at::Tensor& own) override {
        const auto all = connected(collective_, "normalising", [&]() -> Result<at::Tensor> {
            std::vector<at::Tensor> tensors = {own.clone()};
            collective_.group()->allreduce(tensors)->wait();
            return tensors.front();
        });
        if (!all) throw RankLost(all.error());
        return *all;
    }

private:
    C10dCollective& collective_;
};

using Names = std::unordered_map<std::size_t, std::string>;

Names numbered(const std::vector<std::string>& names) {
    Names map;
    for (std::size_t i = 0; i < names.size(); ++i) map.emplace(i, names[i]);
    return map;
}

/// Buckets in the order in which a backward pass fills them: the last layers first.
std::vector<std::vector<std::size_t>> buckets_of(const std::vector<at::Tensor>& parameters) {
    auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
        parameters, {static_cast<std::size_t>(c10d::kDefaultFirstBucketBytes),
                     static_cast<std::size_t>(c10d::kDefaultBucketBytesCap)}));
    std::reverse(buckets.begin(), buckets.end());
    return buckets;
}

/// Steps whose gradients are there on this rank before any of them leaves it: the first ones, in
/// which memory runs out if it ever does.
constexpr int kCarefulSteps = 3;

/// Two ways to one result. The Reducer sends a bucket while the backward pass still computes the
/// others; if that fails half way, the other ranks wait for the rest in vain. A careful step ends
/// its backward pass first, so that it can be done again or measured, and then sends the same
/// buckets in the same order: ranks may go different ways in one step.
class ReducedGradients final : public BackwardPass {
public:
    ReducedGradients(C10dCollective& collective, const std::vector<at::Tensor>& parameters,
                     const std::vector<std::string>& names)
        : collective_(collective), names_(names) {
        set_leaves(parameters);
    }

    void set_leaves(const std::vector<at::Tensor>& parameters) override {
        parameters_ = parameters;
        accumulated_ = false;
        careful_steps_ = kCarefulSteps;
        drop_gradients();
        if (reducer_) reducer_->remove_autograd_hooks();
        buckets_ = buckets_of(parameters);
        // Gradients are views of the buckets, and none are there when a backward pass begins:
        // each is copied once, scaled on the way. rebuild_buckets() is never called.
        reducer_ = std::make_unique<c10d::Reducer>(
            parameters, buckets_, collective_.group(), std::vector<bool>(parameters.size(), false),
            c10d::kDefaultBucketBytesCap,
            /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
            parameters.size() == names_.size() ? numbered(names_) : Names(),
            c10d::kDefaultFirstBucketBytes, /*skip_all_reduce_unused_params=*/false,
            /*use_python_reducer=*/false, /*bucket_bytes_cap_list=*/std::vector<std::int64_t>());
    }

    Result<std::vector<at::Tensor>> backward(const at::Tensor& loss) override {
        if (careful_steps_ > 0 || measures_) {
            accumulate(loss);  // may throw, and nobody has heard of it
            if (measures_) square_ = squared_norm(own_gradients());
            return connected(collective_, "averaging gradients", [&] { return reduced(); });
        }
        using Tensors = std::vector<at::Tensor>;
        return connected(collective_, "averaging gradients", [&]() -> Result<Tensors> {
            if (!accumulated_) drop_gradients();
            accumulated_ = false;
            is_sending_ = true;
            reducer_->prepare_for_forward();
            reducer_->prepare_for_backward({});
            torch::autograd::backward({loss});
            reducer_->check_finalized();
            is_sending_ = false;
            return own_gradients();
        });
    }

    void accumulate(const at::Tensor& loss) override {
        if (!accumulated_) drop_gradients();
        accumulated_ = true;
        torch::autograd::backward({loss});
    }

    void measure_parts(bool wanted) override { measures_ = wanted; }
    [[nodiscard]] std::vector<at::Tensor> part_squares() const override {
        return square_.defined() ? std::vector<at::Tensor>{square_} : std::vector<at::Tensor>();
    }
    [[nodiscard]] bool measures_ranks() const override { return true; }

    [[nodiscard]] bool start_anew() override {
        if (is_sending_) return false;
        accumulated_ = false;
        measures_ = false;
        careful_steps_ = kCarefulSteps;
        drop_gradients();
        return true;
    }

private:
    void drop_gradients() {
        for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    }

    [[nodiscard]] std::vector<at::Tensor> own_gradients() const {
        std::vector<at::Tensor> gradients;
        for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
        return gradients;
    }

    /// What the Reducer does with a bucket, after the backward pass.
    Result<std::vector<at::Tensor>> reduced() {
        const at::NoGradGuard no_grad;
        const double part = 1.0 / static_cast<double>(collective_.size());
        std::vector<at::Tensor> gradients(parameters_.size());
        std::vector<at::Tensor> flats;
        for (const std::vector<std::size_t>& bucket : buckets_) {
            std::vector<at::Tensor> pieces;
            // In the order in memory, which is the parameter's and may be channels last.
            for (const std::size_t i : bucket) {
                at::Tensor piece = at::empty_like(parameters_[i].detach());
                at::mul_out(piece, parameters_[i].grad(), at::scalar_tensor(part, piece.options()));
                pieces.push_back(piece.as_strided({piece.numel()}, {1}));
            }
            flats.push_back(at::cat(pieces));
        }
        // Only now, when nothing can fail for want of memory.
        is_sending_ = true;
        std::vector<c10::intrusive_ptr<c10d::Work>> works;
        for (const at::Tensor& flat : flats) {
            std::vector<at::Tensor> tensors = {flat};
            works.push_back(collective_.group()->allreduce(tensors));
        }
        for (const auto& work : works) work->wait();
        is_sending_ = false;
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            std::int64_t offset = 0;
            for (const std::size_t i : buckets_[b]) {
                const at::Tensor& parameter = parameters_[i];
                gradients[i] = flats[b].as_strided(parameter.sizes(), parameter.strides(), offset);
                offset += parameter.numel();
            }
        }
        accumulated_ = false;
        if (careful_steps_ > 0) --careful_steps_;
        return gradients;
    }

    C10dCollective& collective_;
    const std::vector<std::string> names_;
    std::vector<at::Tensor> parameters_;
    std::vector<std::vector<std::size_t>> buckets_;
    std::unique_ptr<c10d::Reducer> reducer_;  // its destructor may throw
    bool accumulated_ = false;                ///< .grad holds parts of this step
    bool is_sending_ = false;                 ///< the others may have some buckets of this step
    bool measures_ = false;
    int careful_steps_ = kCarefulSteps;
    at::Tensor square_;  ///< of this rank's own gradients in the step that was measured
};

}  // namespace

Result<std::unique_ptr<RankSums>> make_rank_sums(Collective& collective) {
    auto* c10d_collective = dynamic_cast<C10dCollective*>(&collective);
    if (c10d_collective == nullptr)
        return Error{Code::kInvalidState, "tensors are added up over a group that meet() made"};
    return std::unique_ptr<RankSums>(std::make_unique<C10dSums>(*c10d_collective));
}

Result<std::unique_ptr<Collective>> meet(const Ranks& ranks, const CollectiveOptions& options) {
    const auto failed = [&](const std::string& reason) {
        return Error{Code::kTemporarilyUnavailable,
                     "rank " + std::to_string(ranks.rank) + " of " + std::to_string(ranks.size) +
                         " did not meet the others at " + ranks.master_host + ":" +
                         std::to_string(ranks.master_port) + " within " +
                         std::to_string(options.timeout.count() / 1000) + " s (" +
                         first_line(reason) + ")"};
    };
    try {
        return std::unique_ptr<Collective>(std::make_unique<C10dCollective>(ranks, options));
    } catch (const c10::Error& error) {
        return failed(error.what_without_backtrace());
    } catch (const std::exception& error) {
        return failed(error.what());
    }
}

Result<std::unique_ptr<BackwardPass>> make_gradients(Collective& collective,
                                                     const std::vector<at::Tensor>& parameters,
                                                     const std::vector<std::string>& names) {
    auto* c10d_collective = dynamic_cast<C10dCollective*>(&collective);
    if (c10d_collective == nullptr)
        return Error{Code::kInvalidState, "gradients are averaged over a group that meet() made"};
    return connected(
        collective, "comparing parameters", [&]() -> Result<std::unique_ptr<BackwardPass>> {
            try {
                c10d::verify_params_across_processes(c10d_collective->group(), parameters, {});
            } catch (const c10::Error& error) {
                const std::string text = error.what_without_backtrace();
                if (is_of_a_connection(text)) throw;
                return invalid_parameter("the ranks do not train the same network: " +
                                         first_line(text));
            }
            return std::unique_ptr<BackwardPass>(
                std::make_unique<ReducedGradients>(*c10d_collective, parameters, names));
        });
}

}  // namespace tune::train
