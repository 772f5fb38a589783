// One struct of function pointers, filled by name. A function that the library lacks answers as one
// that the device does not support, so an old driver gives less and never fails. Handles are opened
// once; those of slices answer for memory, name and processes, all else is asked of their GPU.

#include "worker/agent/devices/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tune::worker {
namespace {

using Device = void*;
using EventSet = void*;

// Values and layouts of nvml.h.
constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr int kGpuIsLost = 15;
constexpr int kResetRequired = 16;
constexpr unsigned kTemperatureOfGpu = 0;
constexpr unsigned kUncorrectedErrors = 1;
constexpr unsigned kSinceDriverLoad = 0;
constexpr std::uint64_t kEventDoubleBitEcc = 0x2;
constexpr std::uint64_t kEventXid = 0x8;
constexpr unsigned kNoInstance = 0xFFFFFFFF;
constexpr std::uint64_t kNoValue = 0xFFFFFFFFFFFFFFFF;
constexpr unsigned kTextBytes = 96;
constexpr unsigned kMaskWords = 64;  // 4096 cores
constexpr int kProcessTries = 3;
constexpr unsigned kWithinNode = 0;

using Mask = std::array<unsigned long, kMaskWords>;

struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};
struct Utilization {
    unsigned gpu;
    unsigned memory;
};
struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
};
struct EventData {
    Device device;
    unsigned long long type;
    unsigned long long data;
    unsigned gpu_instance;
    unsigned compute_instance;
};

/// A call that answers "not supported" where the library does not have it.
template <class... Args>
class Call {
public:
    void bind(void* library, const char* name) {
        function_ = reinterpret_cast<Function>(dlsym(library, name));
    }
    int operator()(Args... args) const {
        return function_ == nullptr ? kNotSupported : function_(args...);
    }

private:
    using Function = int (*)(Args...);
    Function function_ = nullptr;
};

struct Api {
    explicit Api(void* library) {
        init.bind(library, "nvmlInit_v2");
        shutdown.bind(library, "nvmlShutdown");
        driver_version.bind(library, "nvmlSystemGetDriverVersion");
        count.bind(library, "nvmlDeviceGetCount_v2");
        by_index.bind(library, "nvmlDeviceGetHandleByIndex_v2");
        uuid.bind(library, "nvmlDeviceGetUUID");
        name.bind(library, "nvmlDeviceGetName");
        memory.bind(library, "nvmlDeviceGetMemoryInfo");
        cpu_mask.bind(library, "nvmlDeviceGetCpuAffinity");
        node_mask.bind(library, "nvmlDeviceGetMemoryAffinity");
        mig_mode.bind(library, "nvmlDeviceGetMigMode");
        mig_count.bind(library, "nvmlDeviceGetMaxMigDeviceCount");
        mig_by_index.bind(library, "nvmlDeviceGetMigDeviceHandleByIndex");
        mig_instance.bind(library, "nvmlDeviceGetGpuInstanceId");
        utilization.bind(library, "nvmlDeviceGetUtilizationRates");
        power.bind(library, "nvmlDeviceGetPowerUsage");
        power_limit.bind(library, "nvmlDeviceGetEnforcedPowerLimit");
        temperature.bind(library, "nvmlDeviceGetTemperature");
        energy.bind(library, "nvmlDeviceGetTotalEnergyConsumption");
        ecc_errors.bind(library, "nvmlDeviceGetTotalEccErrors");
        remapped_rows.bind(library, "nvmlDeviceGetRemappedRows");
        processes.bind(library, "nvmlDeviceGetComputeRunningProcesses_v3");
        event_set_create.bind(library, "nvmlEventSetCreate");
        event_set_free.bind(library, "nvmlEventSetFree");
        event_types.bind(library, "nvmlDeviceGetSupportedEventTypes");
        event_register.bind(library, "nvmlDeviceRegisterEvents");
        event_wait.bind(library, "nvmlEventSetWait_v2");
        error_text = reinterpret_cast<const char* (*)(int)>(dlsym(library, "nvmlErrorString"));
    }
    Call<> init, shutdown;
    Call<char*, unsigned> driver_version;
    Call<unsigned*> count;
    Call<unsigned, Device*> by_index;
    Call<Device, char*, unsigned> uuid, name;
    Call<Device, Memory*> memory;
    Call<Device, unsigned, unsigned long*> cpu_mask;
    Call<Device, unsigned, unsigned long*, unsigned> node_mask;
    Call<Device, unsigned*, unsigned*> mig_mode;
    Call<Device, unsigned*> mig_count;
    Call<Device, unsigned, Device*> mig_by_index;
    Call<Device, unsigned*> mig_instance;
    Call<Device, Utilization*> utilization;
    Call<Device, unsigned*> power, power_limit;
    Call<Device, unsigned, unsigned*> temperature;
    Call<Device, unsigned long long*> energy;
    Call<Device, unsigned, unsigned, unsigned long long*> ecc_errors;
    Call<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows;
    Call<Device, unsigned*, ProcessInfo*> processes;
    Call<EventSet*> event_set_create;
    Call<EventSet> event_set_free;
    Call<Device, unsigned long long*> event_types;
    Call<Device, unsigned long long, EventSet> event_register;
    Call<EventSet, EventData*, unsigned> event_wait;
    const char* (*error_text)(int) = nullptr;

    [[nodiscard]] std::string text_of(int status) const {
        const char* text = error_text == nullptr ? nullptr : error_text(status);
        return text == nullptr ? "NVML error " + std::to_string(status) : text;
    }
};

/// Why a device that answers with this status cannot be used; empty: that is no reason.
std::string fault_of_status(int status) {
    if (status == kGpuIsLost)
        return "the GPU is lost: it has fallen off the bus or cannot be reached any more";
    if (status == kResetRequired) return "the GPU must be reset before it can be used again";
    return {};
}

/// The bits that are set, ascending.
std::vector<int> numbers_in(const Mask& mask) {
    constexpr unsigned kBits = sizeof(unsigned long) * 8;
    std::vector<int> numbers;
    for (unsigned i = 0; i < kMaskWords * kBits; ++i)
        if ((mask[i / kBits] >> (i % kBits) & 1) != 0) numbers.push_back(static_cast<int>(i));
    return numbers;
}

template <class To, class From>
std::optional<To> given(int status, From value, double scale = 1) {
    if (status != kSuccess) return std::nullopt;
    return static_cast<To>(static_cast<double>(value) * scale);
}

}  // namespace

std::string fault_of_xid(std::uint64_t xid) {
    // 13 exception in a kernel, 31 page fault, 43 and 45 the program was stopped, 68 its video
    // engine, 109 its context switch; 63 and 92 are memory errors that the device mended.
    constexpr std::array<std::uint64_t, 8> kHarmless = {13, 31, 43, 45, 63, 68, 92, 109};
    if (std::find(kHarmless.begin(), kHarmless.end(), xid) != kHarmless.end()) return {};
    std::string what;
    if (xid == 48 || xid == 95) what = " (uncorrectable memory error)";
    if (xid == 79) what = " (the GPU has fallen off the bus)";
    return "the driver reported Xid " + std::to_string(xid) + what;
}

class Nvml::Impl {
public:
    explicit Impl(void* library) : library_(library), api_(library) {}
    ~Impl() {
        if (events_ != nullptr) api_.event_set_free(events_);
        if (ready_) api_.shutdown();
        dlclose(library_);
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    struct Entry {
        Device device = nullptr;  // of the slice, or of the GPU
        Device gpu = nullptr;
    };

    Result<void> start() {
        const int status = api_.init();
        if (status != kSuccess)
            return Error{Code::kInternalError,
                         "the NVIDIA driver does not answer: " + api_.text_of(status)};
        ready_ = true;
        driver_version_ = text(api_.driver_version);
        unsigned count = 0;
        if (api_.count(&count) != kSuccess) return {};
        for (unsigned i = 0; i < count; ++i) add_gpu(i);
        register_events();
        return {};
    }

    [[nodiscard]] const Entry* find(const std::string& uuid) const {
        for (std::size_t i = 0; i < devices_.size(); ++i)
            if (devices_[i].uuid == uuid) return &entries_[i];
        return nullptr;
    }

    GpuReading read(const Entry& entry) const {
        GpuReading reading;
        Memory memory{};
        const int with_memory = api_.memory(entry.device, &memory);
        reading.used_bytes = given<std::int64_t>(with_memory, memory.used);
        reading.total_bytes = given<std::int64_t>(with_memory, memory.total);
        // Of a slice the driver says the rest for its whole GPU only, which others use too.
        if (entry.device != entry.gpu) return reading;
        Utilization use{};
        int status = api_.utilization(entry.gpu, &use);
        reading.utilization_percent = given<double>(status, use.gpu);
        unsigned milliwatts = 0;
        status = api_.power(entry.gpu, &milliwatts);
        reading.power_watts = given<double>(status, milliwatts, 1e-3);
        status = api_.power_limit(entry.gpu, &milliwatts);
        reading.power_limit_watts = given<double>(status, milliwatts, 1e-3);
        unsigned celsius = 0;
        status = api_.temperature(entry.gpu, kTemperatureOfGpu, &celsius);
        reading.temperature_celsius = given<double>(status, celsius);
        unsigned long long millijoules = 0;
        if (api_.energy(entry.gpu, &millijoules) == kSuccess)
            reading.energy_mj = static_cast<std::int64_t>(millijoules);
        return reading;
    }

    GpuHealth health(const Entry& entry) const {
        GpuHealth health;
        Memory memory{};
        health.fault = fault_of_status(api_.memory(entry.device, &memory));
        unsigned long long errors = 0;
        const int status =
            api_.ecc_errors(entry.gpu, kUncorrectedErrors, kSinceDriverLoad, &errors);
        if (health.fault.empty()) health.fault = fault_of_status(status);
        if (status == kSuccess) health.uncorrected_errors = static_cast<std::int64_t>(errors);
        unsigned corrected = 0;
        unsigned uncorrected = 0;
        unsigned pending = 0;
        unsigned failed = 0;
        const bool known =
            api_.remapped_rows(entry.gpu, &corrected, &uncorrected, &pending, &failed) == kSuccess;
        if (health.fault.empty() && known && failed != 0)
            health.fault = "the GPU has no spare rows left for those of its memory that failed";
        return health;
    }

    std::vector<GpuProcess> processes(const Entry& entry) const {
        std::vector<ProcessInfo> infos;
        unsigned count = 0;
        int status = api_.processes(entry.device, &count, nullptr);
        for (int i = 0; i < kProcessTries && status == kInsufficientSize; ++i) {
            count = count * 2 + 5;  // others may start meanwhile
            infos.resize(count);
            status = api_.processes(entry.device, &count, infos.data());
        }
        if (status != kSuccess) count = 0;
        std::vector<GpuProcess> found;
        for (unsigned i = 0; i < count && i < infos.size(); ++i)
            found.push_back({static_cast<int>(infos[i].pid),
                             infos[i].used_bytes == kNoValue
                                 ? 0
                                 : static_cast<std::int64_t>(infos[i].used_bytes)});
        return found;
    }

    std::optional<GpuEvent> wait_for_event(unsigned timeout_ms) const {
        EventData data{};
        if (api_.event_wait(events_, &data, timeout_ms) != kSuccess) return std::nullopt;
        GpuEvent event;
        for (std::size_t i = 0; i < devices_.size(); ++i)
            if (entries_[i].gpu == data.device)
                event.parent = devices_[i].parent.empty() ? devices_[i].uuid : devices_[i].parent;
        if (data.gpu_instance != kNoInstance) event.gpu_instance = data.gpu_instance;
        event.fault = data.type == kEventXid
                          ? fault_of_xid(data.data)
                          : "the driver reported an uncorrectable memory error (ECC)";
        if (event.parent.empty() || event.fault.empty()) return std::nullopt;
        return event;
    }

    std::vector<GpuFacts> devices_;
    std::vector<std::string> unusable_;
    std::string driver_version_;
    bool has_events_ = false;

private:
    template <class Function, class... Args>
    static std::string text(const Function& call, Args... args) {
        char buffer[kTextBytes] = {};
        return call(args..., buffer, kTextBytes) == kSuccess ? buffer : "";
    }

    void add_gpu(unsigned index) {
        Device gpu = nullptr;
        const int status = api_.by_index(index, &gpu);
        std::string uuid = status == kSuccess ? text(api_.uuid, gpu) : "";
        if (uuid.empty()) {
            unusable_.push_back("GPU " + std::to_string(index) +
                                " cannot be opened: " + api_.text_of(status));
            return;
        }
        GpuFacts facts;
        facts.index = static_cast<int>(index);
        add_place(gpu, facts);
        unsigned mode = 0;
        unsigned pending = 0;
        if (api_.mig_mode(gpu, &mode, &pending) == kSuccess && mode != 0)
            return add_slices(gpu, uuid, facts);
        facts.uuid = std::move(uuid);
        add_device({gpu, gpu}, std::move(facts));
    }

    void add_slices(Device gpu, const std::string& parent, const GpuFacts& common) {
        unsigned slices = 0;
        if (api_.mig_count(gpu, &slices) != kSuccess) slices = 0;
        for (unsigned i = 0; i < slices; ++i) {
            Device slice = nullptr;
            if (api_.mig_by_index(gpu, i, &slice) != kSuccess) continue;
            GpuFacts facts = common;
            facts.uuid = text(api_.uuid, slice);
            facts.parent = parent;
            if (api_.mig_instance(slice, &facts.gpu_instance) != kSuccess) facts.gpu_instance = 0;
            if (!facts.uuid.empty()) add_device({slice, gpu}, std::move(facts));
        }
    }

    void add_device(Entry entry, GpuFacts facts) {
        Memory memory{};
        if (api_.memory(entry.device, &memory) == kSuccess)
            facts.bytes = static_cast<std::int64_t>(memory.total);
        facts.name = text(api_.name, entry.device);
        devices_.push_back(std::move(facts));
        entries_.push_back(entry);
    }

    void add_place(Device gpu, GpuFacts& facts) const {
        Mask mask{};
        if (api_.node_mask(gpu, kMaskWords, mask.data(), kWithinNode) == kSuccess)
            for (const int node : numbers_in(mask))
                if (facts.numa_node < 0) facts.numa_node = node;
        mask = {};
        if (api_.cpu_mask(gpu, kMaskWords, mask.data()) == kSuccess) facts.cores = numbers_in(mask);
    }

    void register_events() {
        if (api_.event_set_create(&events_) != kSuccess) {
            events_ = nullptr;
            return;
        }
        std::vector<Device> registered;
        for (const Entry& entry : entries_) {
            if (std::find(registered.begin(), registered.end(), entry.gpu) != registered.end())
                continue;
            registered.push_back(entry.gpu);
            unsigned long long known = 0;
            if (api_.event_types(entry.gpu, &known) != kSuccess) continue;
            known &= kEventXid | kEventDoubleBitEcc;
            if (known != 0 && api_.event_register(entry.gpu, known, events_) == kSuccess)
                has_events_ = true;
        }
    }

    void* library_;
    const Api api_;
    bool ready_ = false;
    EventSet events_ = nullptr;
    std::vector<Entry> entries_;  // of devices_, in the same order
};

Nvml::Nvml(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Nvml::~Nvml() = default;

Result<std::unique_ptr<Nvml>> Nvml::load(const std::string& library) {
    void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr)
        return Error{Code::kResourceDoesNotExist, std::string("no NVIDIA driver: ") + dlerror()};
    auto impl = std::make_unique<Impl>(loaded);
    TUNE_TRY_VOID(impl->start());
    return std::unique_ptr<Nvml>(new Nvml(std::move(impl)));
}

const std::vector<GpuFacts>& Nvml::devices() const {
    return impl_->devices_;
}
const std::vector<std::string>& Nvml::unusable() const {
    return impl_->unusable_;
}
const std::string& Nvml::driver_version() const {
    return impl_->driver_version_;
}
bool Nvml::has_events() const {
    return impl_->has_events_;
}

GpuReading Nvml::read(const std::string& uuid) const {
    const Impl::Entry* entry = impl_->find(uuid);
    return entry == nullptr ? GpuReading{} : impl_->read(*entry);
}
GpuHealth Nvml::health(const std::string& uuid) const {
    const Impl::Entry* entry = impl_->find(uuid);
    return entry == nullptr ? GpuHealth{} : impl_->health(*entry);
}
std::vector<GpuProcess> Nvml::processes(const std::string& uuid) const {
    const Impl::Entry* entry = impl_->find(uuid);
    return entry == nullptr ? std::vector<GpuProcess>{} : impl_->processes(*entry);
}
std::optional<GpuEvent> Nvml::wait_for_event(unsigned timeout_ms) const {
    return impl_->wait_for_event(timeout_ms);
}

}  // namespace tune::worker
