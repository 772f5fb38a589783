// The joules of an attempt are a difference of two counters, its part of them where it shared the
// device. The first reading is kept in the attempt's folder, so that an agent that takes the
// attempt over subtracts the same.

#include "worker/agent/devices/gpu_accounts.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/system/file.h"
#include "worker/agent/devices/gpu_metrics.h"

namespace tune::worker {
namespace {

constexpr const char* kEnergyFile = "energy.json";
constexpr int kLastReading_ms = 2'000;

std::map<std::string, std::int64_t> energy_of(const GpuWatch::Readings& readings) {
    std::map<std::string, std::int64_t> energy;
    for (const WatchedReading& device : readings)
        if (device.energy_mj) energy[device.uuid] = *device.energy_mj;
    return energy;
}

}  // namespace

GpuAccounts::GpuAccounts(Loop& loop, GpuWatch* watch, std::vector<GpuFacts> facts,
                         GpuAccountEvents events)
    : loop_(loop), watch_(watch), facts_(std::move(facts)), events_(std::move(events)) {}

void GpuAccounts::open(std::uint64_t serial, GpuUse use) {
    if (watch_ == nullptr || use.gpus.empty()) return;
    accounts_.insert_or_assign(serial, Account{std::move(use)});
    mark_used();
}

void GpuAccounts::begin(std::uint64_t serial, const AttemptFiles& files) {
    const auto found = accounts_.find(serial);
    if (found == accounts_.end()) return;
    read(found->second, [this, serial, files](const GpuWatch::Readings& readings) {
        on_first_reading(serial, files, readings);
    });
}

void GpuAccounts::on_first_reading(std::uint64_t serial, const AttemptFiles& files,
                                   const GpuWatch::Readings& readings) {
    const auto found = accounts_.find(serial);
    if (found == accounts_.end() || found->second.has_ended) return;
    std::map<std::string, std::int64_t>& begin = found->second.begin_mj;
    begin = energy_of(readings);
    const std::filesystem::path path = files.path(kEnergyFile);
    if (const Result<std::string> kept = read_file(path)) {
        const Result<Json> json = parse_json(*kept);
        if (json && json->is_object())
            for (const auto& [uuid, energy] : json->items())
                if (energy.is_number_integer()) begin[uuid] = energy.get<std::int64_t>();
        return;
    }
    const Result<void> written = write_file_atomic(path, to_text(Json(begin)));
    if (!written) files.note(written.error().text());
}

void GpuAccounts::set_fault(std::uint64_t serial, const std::string& fault) {
    const auto found = accounts_.find(serial);
    if (found != accounts_.end()) found->second.fault = fault;
}

void GpuAccounts::end(std::uint64_t serial) {
    const auto found = accounts_.find(serial);
    if (found == accounts_.end()) return;
    Account& account = found->second;
    account.has_ended = true;
    account.is_settled = false;
    read(account,
         [this, serial](const GpuWatch::Readings& readings) { on_last_reading(serial, readings); });
    account.timer =
        loop_.at(loop_.now_ms() + kLastReading_ms, [this, serial] { on_last_reading(serial, {}); });
    mark_used();
}

void GpuAccounts::on_last_reading(std::uint64_t serial, const GpuWatch::Readings& readings) {
    const auto found = accounts_.find(serial);
    if (found == accounts_.end() || found->second.is_settled) return;
    Account& account = found->second;
    loop_.cancel(account.timer);
    account.is_settled = true;
    for (const WatchedReading& device : readings)
        if (!device.fault.empty() && account.fault.empty())
            account.fault = device.uuid + ": " + device.fault;
    const double share = energy_share(account.use);
    const std::optional<double> joules =
        joules_between(account.begin_mj, energy_of(readings), share);
    if (joules && share > 0)
        events_.report(serial,
                       {{"tune.energy_joules", *joules, account.use.attempt, loop_.wall_ms()}});
    events_.settled(serial);  // may forget it
}

void GpuAccounts::forget(std::uint64_t serial) {
    const auto found = accounts_.find(serial);
    if (found == accounts_.end()) return;
    loop_.cancel(found->second.timer);
    accounts_.erase(found);
    mark_used();
}

bool GpuAccounts::is_settled(std::uint64_t serial) const {
    const auto found = accounts_.find(serial);
    return found == accounts_.end() || found->second.is_settled;
}

std::string GpuAccounts::fault(std::uint64_t serial) const {
    const auto found = accounts_.find(serial);
    return found == accounts_.end() ? "" : found->second.fault;
}

void GpuAccounts::read(const Account& account,
                       std::function<void(const GpuWatch::Readings&)> done) {
    watch_->read(account.use.gpus, [this, done = std::move(done)](GpuWatch::Readings readings) {
        loop_.post([done, readings = std::move(readings)] { done(readings); });
    });
}

/// Of GPUs that are given by bytes, its part of their memory; 0: unknown.
double GpuAccounts::energy_share(const GpuUse& use) const {
    if (use.granted.empty() || use.granted.front().bytes <= 0) return use.share;
    for (const GpuFacts& gpu : facts_)
        if (gpu.uuid == use.granted.front().uuid && gpu.bytes > 0)
            return static_cast<double>(use.granted.front().bytes) / static_cast<double>(gpu.bytes);
    return 0;
}

void GpuAccounts::mark_used() {
    std::set<std::string> used;
    for (const auto& [serial, account] : accounts_)
        if (!account.has_ended) used.insert(account.use.gpus.begin(), account.use.gpus.end());
    watch_->set_used(GpuWatch::Users::kAttempts, std::move(used));
}

}  // namespace tune::worker
