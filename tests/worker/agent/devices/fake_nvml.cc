// libnvidia-ml.so.1 for tests: the driver's functions with the driver's prototypes over a text
// file, which $FAKE_NVML names and which is read anew at each call, so that a test changes a
// machine's GPUs by replacing it. One thing a line:
//
//   driver 575.57.08
//   gpu UUID [name=...] [bytes=N] [used=N] [util=N] [power=MILLIWATTS] [limit=MILLIWATTS] [temp=N]
//       [energy=MILLIJOULES] [ecc=N] [rows_failed=1] [node=N] [cores=0,1] [lost=1] [reset=1]
//       [mig=1]
//   mig PARENT UUID [name=...] [bytes=N] [used=N] [instance=N]
//   process UUID PID BYTES
//   xid PARENT NUMBER [INSTANCE]     each is announced once to each set of events
//   ecc PARENT
//
// $FAKE_NVML.looks gets a byte whenever somebody has been told of a device's processes.
//
// What a line leaves out, the driver does not support. `_` in a value stands for a blank.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kTimeout = 10;
constexpr int kGpuIsLost = 15;
constexpr int kResetRequired = 16;

using Fields = std::map<std::string, std::string>;

struct Device {
    std::string uuid;
    std::string parent;  // of a slice
};
struct Event {
    std::string parent;
    unsigned long long type = 0;
    unsigned long long data = 0;
    unsigned instance = 0xFFFFFFFF;
};
struct Machine {
    bool is_there = false;
    std::string driver;
    std::vector<std::string> gpus;
    std::map<std::string, Fields> fields;
    std::map<std::string, std::vector<std::string>> slices;
    std::map<std::string, std::vector<std::pair<unsigned, unsigned long long>>> processes;
    std::vector<Event> events;
};
struct EventSet {
    std::size_t seen = 0;
};

std::mutex g_mutex;
int g_users = 0;
std::map<std::string, Device*> g_devices;  // handles live as long as the library

Device* handle_of(const std::string& uuid, const std::string& parent = "") {
    const std::lock_guard lock(g_mutex);
    Device*& device = g_devices[uuid];
    if (device == nullptr) device = new Device{uuid, parent};
    return device;
}

Fields read_fields(std::istringstream& words) {
    Fields fields;
    for (std::string word; words >> word;) {
        const std::size_t at = word.find('=');
        std::string value = word.substr(at + 1);
        for (char& c : value)
            if (c == '_') c = ' ';
        fields[word.substr(0, at)] = value;
    }
    return fields;
}

void read_event(std::istringstream& words, unsigned long long type, Machine& machine) {
    Event event;
    words >> event.parent;
    event.type = type;
    if (type == 0x8) words >> event.data;
    if (unsigned instance = 0; words >> instance) event.instance = instance;
    machine.events.push_back(event);
}

Machine machine() {
    Machine machine;
    const char* path = std::getenv("FAKE_NVML");
    std::ifstream file(path == nullptr ? "" : path);
    machine.is_there = file.good();
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string kind;
        std::string uuid;
        words >> kind;
        if (kind == "driver") {
            words >> machine.driver;
        } else if (kind == "gpu") {
            words >> uuid;
            machine.gpus.push_back(uuid);
            machine.fields[uuid] = read_fields(words);
        } else if (kind == "mig") {
            std::string parent;
            words >> parent >> uuid;
            machine.slices[parent].push_back(uuid);
            machine.fields[uuid] = read_fields(words);
        } else if (kind == "process") {
            unsigned pid = 0;
            unsigned long long bytes = 0;
            words >> uuid >> pid >> bytes;
            machine.processes[uuid].emplace_back(pid, bytes);
        } else if (kind == "xid") {
            read_event(words, 0x8, machine);
        } else if (kind == "ecc") {
            read_event(words, 0x2, machine);
        }
    }
    return machine;
}

/// What keeps the device from answering; kSuccess: nothing.
int state_of(const Machine& machine, const Device* device) {
    if (device == nullptr) return kInvalidArgument;
    const std::string& gpu = device->parent.empty() ? device->uuid : device->parent;
    const auto found = machine.fields.find(gpu);
    if (found == machine.fields.end() || found->second.contains("lost")) return kGpuIsLost;
    return found->second.contains("reset") ? kResetRequired : kSuccess;
}

/// The text of a field of the device.
int field(const void* device, const char* name, std::string& out) {
    const Machine now = machine();
    const auto* const handle = static_cast<const Device*>(device);
    if (const int state = state_of(now, handle); state != kSuccess) return state;
    const Fields& fields = now.fields.at(handle->uuid);
    const auto found = fields.find(name);
    if (found == fields.end()) return kNotSupported;
    out = found->second;
    return kSuccess;
}

template <class Number>
int number(const void* device, const char* name, Number* out) {
    std::string text;
    const int status = field(device, name, text);
    if (status == kSuccess) *out = static_cast<Number>(std::strtoull(text.c_str(), nullptr, 10));
    return status;
}

int put(const std::string& text, char* buffer, unsigned capacity) {
    if (text.size() >= capacity) return kInsufficientSize;
    std::strcpy(buffer, text.c_str());
    return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
    if (!machine().is_there) return kDriverNotLoaded;
    const std::lock_guard lock(g_mutex);
    ++g_users;
    return kSuccess;
}
int nvmlShutdown() {
    const std::lock_guard lock(g_mutex);
    return g_users-- > 0 ? kSuccess : kUninitialized;
}
const char* nvmlErrorString(int status) {
    switch (status) {
        case kDriverNotLoaded: return "Driver Not Loaded";
        case kGpuIsLost: return "GPU is lost";
        default: return "Unknown Error";
    }
}
int nvmlSystemGetDriverVersion(char* text, unsigned capacity) {
    const std::string driver = machine().driver;
    return driver.empty() ? kNotSupported : put(driver, text, capacity);
}
int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = static_cast<unsigned>(machine().gpus.size());
    return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    const Machine now = machine();
    if (index >= now.gpus.size()) return kInvalidArgument;
    Device* const handle = handle_of(now.gpus[index]);
    const int state = state_of(now, handle);
    if (state == kSuccess) *device = handle;
    return state;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned capacity) {
    return put(static_cast<Device*>(device)->uuid, text, capacity);
}
int nvmlDeviceGetName(void* device, char* text, unsigned capacity) {
    std::string name;
    const int status = field(device, "name", name);
    return status == kSuccess ? put(name, text, capacity) : status;
}
struct Memory {
    unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
    const int status = number(device, "bytes", &memory->total);
    if (status != kSuccess) return status;
    if (number(device, "used", &memory->used) != kSuccess) memory->used = 0;
    memory->free = memory->total - memory->used;
    return kSuccess;
}
int nvmlDeviceGetCpuAffinity(void* device, unsigned words, unsigned long* mask) {
    std::string cores;
    const int status = field(device, "cores", cores);
    if (status != kSuccess) return status;
    for (unsigned i = 0; i < words; ++i) mask[i] = 0;
    std::istringstream list(cores);
    for (std::string core; std::getline(list, core, ',');) {
        const auto at = static_cast<unsigned>(std::atoi(core.c_str()));
        if (at / 64 < words) mask[at / 64] |= 1ul << (at % 64);
    }
    return kSuccess;
}
int nvmlDeviceGetMemoryAffinity(void* device, unsigned words, unsigned long* mask, unsigned) {
    unsigned node = 0;
    const int status = number(device, "node", &node);
    if (status != kSuccess) return status;
    for (unsigned i = 0; i < words; ++i) mask[i] = i == node / 64 ? 1ul << (node % 64) : 0;
    return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* mode, unsigned* pending) {
    const int status = number(device, "mig", mode);
    *pending = *mode;
    return status;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
    *count = 7;
    return kSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** slice) {
    const Machine now = machine();
    const std::string& parent = static_cast<Device*>(device)->uuid;
    const auto found = now.slices.find(parent);
    if (found == now.slices.end() || index >= found->second.size()) return kNotFound;
    *slice = handle_of(found->second[index], parent);
    return kSuccess;
}
int nvmlDeviceGetGpuInstanceId(void* device, unsigned* instance) {
    return number(device, "instance", instance);
}
struct Utilization {
    unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, Utilization* use) {
    use->memory = 0;
    return number(device, "util", &use->gpu);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
    return number(device, "power", milliwatts);
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
    return number(device, "limit", milliwatts);
}
int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* celsius) {
    return number(device, "temp", celsius);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
    return number(device, "energy", millijoules);
}
int nvmlDeviceGetTotalEccErrors(void* device, unsigned kind, unsigned since,
                                unsigned long long* errors) {
    if (kind != 1 || since != 0) return kInvalidArgument;
    return number(device, "ecc", errors);
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
    *corrected = *uncorrected = *pending = 0;
    return number(device, "rows_failed", failed);
}
struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
    const Machine now = machine();
    const auto* const handle = static_cast<Device*>(device);
    if (const int state = state_of(now, handle); state != kSuccess) return state;
    const auto found = now.processes.find(handle->uuid);
    const std::size_t running = found == now.processes.end() ? 0 : found->second.size();
    const bool fits = running <= *count && (infos != nullptr || running == 0);
    if (fits) std::ofstream(std::string(std::getenv("FAKE_NVML")) + ".looks", std::ios::app) << '.';
    *count = static_cast<unsigned>(running);
    if (!fits) return kInsufficientSize;
    for (std::size_t i = 0; i < running; ++i)
        infos[i] = {found->second[i].first, found->second[i].second, 0, 0};
    return kSuccess;
}
int nvmlEventSetCreate(void** set) {
    *set = new EventSet;
    return kSuccess;
}
int nvmlEventSetFree(void* set) {
    delete static_cast<EventSet*>(set);
    return kSuccess;
}
int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
    *types = 0x2 | 0x8;
    return kSuccess;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) {
    return kSuccess;
}
struct EventData {
    void* device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
int nvmlEventSetWait_v2(void* set, EventData* data, unsigned timeout_ms) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    do {
        const Machine now = machine();
        std::size_t& seen = static_cast<EventSet*>(set)->seen;
        if (seen < now.events.size()) {
            const Event& event = now.events[seen++];
            *data = {handle_of(event.parent), event.type, event.data, event.instance, 0};
            return kSuccess;
        }
        usleep(2000);  // the driver's own wait; a file announces nothing
    } while (std::chrono::steady_clock::now() < until);
    return kTimeout;
}

}  // extern "C"
