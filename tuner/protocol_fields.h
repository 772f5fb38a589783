#pragma once
// The fields of each struct of the protocol, listed once: name on the wire, member, and whether it
// must be there. Private to protocol.cc, which reads and writes by these lists.

#include <type_traits>

#include "tuner/protocol.h"

namespace tune::tuner {
namespace {

/// Absent fields keep their default, unless they are required.
enum class Presence { kOptional, kRequired };

template <class Struct, class Value>
struct Field {
    const char* name;
    Value Struct::*member;
    Presence presence = Presence::kOptional;
    /// Whether it is written; null: always.
    bool (*is_written)(const Struct&) = nullptr;
};
template <class Struct, class Value>
Field(const char*, Value Struct::*) -> Field<Struct, Value>;
template <class Struct, class Value>
Field(const char*, Value Struct::*, Presence) -> Field<Struct, Value>;
template <class Struct, class Value, class Test>
Field(const char*, Value Struct::*, Presence, Test) -> Field<Struct, Value>;

constexpr Presence kRequired = Presence::kRequired;
constexpr Presence kOptional = Presence::kOptional;

/// A text that holds a JSON object, which travels as that object.
template <class Struct>
struct JsonText {
    const char* name;
    std::string Struct::*member;
};

/// The struct that a pointer to a member is of.
template <class Struct, class Value>
Struct owner_of(Value Struct::*);

/// For fields that are written only where they say something.
template <auto Member>
bool is_set(const decltype(owner_of(Member))& message) {
    return message.*Member != std::remove_cvref_t<decltype(message.*Member)>{};
}

// The fields of each struct, in the order in which they are read.

template <class Visit>
void visit_fields(const AttemptId*, Visit visit) {
    visit(Field{"run_id", &AttemptId::run_id, kRequired});
    visit(Field{"attempt", &AttemptId::attempt});
}

template <class Visit>
void visit_fields(const GpuFacts*, Visit visit) {
    visit(Field{"uuid", &GpuFacts::uuid, kRequired});
    visit(Field{"bytes", &GpuFacts::bytes});
    visit(Field{"name", &GpuFacts::name});
    visit(Field{"index", &GpuFacts::index});
}

template <class Visit>
void visit_fields(const RegisterRequest*, Visit visit) {
    visit(Field{"agent_id", &RegisterRequest::agent_id, kRequired});
    visit(Field{"host", &RegisterRequest::host});
    visit(Field{"pid", &RegisterRequest::pid});
    visit(Field{"slots", &RegisterRequest::slots});
    visit(Field{"cpus", &RegisterRequest::cpus});
    visit(Field{"gpus", &RegisterRequest::gpus});
    visit(
        Field{"devices", &RegisterRequest::devices, kOptional, is_set<&RegisterRequest::devices>});
    visit(Field{"memory_bytes", &RegisterRequest::memory_bytes, kOptional,
                is_set<&RegisterRequest::memory_bytes>});
    visit(Field{"labels", &RegisterRequest::labels, kOptional, is_set<&RegisterRequest::labels>});
    visit(
        Field{"address", &RegisterRequest::address, kOptional, is_set<&RegisterRequest::address>});
    visit(Field{"version", &RegisterRequest::version});
    visit(Field{"running", &RegisterRequest::running});
    visit(
        Field{"session", &RegisterRequest::session, kOptional, is_set<&RegisterRequest::session>});
    visit(Field{"ack", &RegisterRequest::ack, kOptional, is_set<&RegisterRequest::ack>});
    visit(Field{"excluded", &RegisterRequest::excluded, kOptional,
                is_set<&RegisterRequest::excluded>});
    visit(
        Field{"leaving", &RegisterRequest::leaving, kOptional, is_set<&RegisterRequest::leaving>});
}

template <class Visit>
void visit_fields(const RegisterReply*, Visit visit) {
    visit(Field{"agent_id", &RegisterReply::agent_id, kRequired});
    visit(Field{"heartbeat_ms", &RegisterReply::heartbeat_ms});
    visit(Field{"lease_ttl_ms", &RegisterReply::lease_ttl_ms});
    visit(Field{"lost", &RegisterReply::lost});
}

template <class Visit>
void visit_fields(const ScrapePattern*, Visit visit) {
    visit(Field{"name", &ScrapePattern::name, kOptional,
                [](const ScrapePattern& pattern) { return !pattern.name.empty(); }});
    visit(Field{"pattern", &ScrapePattern::pattern, kRequired});
}

template <class Visit>
void visit_fields(const LogRule*, Visit visit) {
    visit(Field{"pattern", &LogRule::pattern, kRequired});
    visit(Field{"action", &LogRule::action, kRequired});
}

template <class Visit>
void visit_fields(const CheckpointPolicy*, Visit visit) {
    visit(Field{"store", &CheckpointPolicy::store});
    visit(Field{"every_ms", &CheckpointPolicy::every_ms});
    visit(Field{"keep", &CheckpointPolicy::keep});
    visit(Field{"keeps_after_end", &CheckpointPolicy::keeps_after_end});
}

template <class Visit>
void visit_fields(const GrantedGpu*, Visit visit) {
    visit(Field{"uuid", &GrantedGpu::uuid, kRequired});
    visit(Field{"bytes", &GrantedGpu::bytes});
}

template <class Visit>
void visit_fields(const GangNode*, Visit visit) {
    visit(Field{"address", &GangNode::address, kRequired});
    visit(Field{"port", &GangNode::port});
}

template <class Visit>
void visit_fields(const Gang*, Visit visit) {
    visit(Field{"nproc", &Gang::nproc});
    visit(Field{"node", &Gang::node});
    visit(Field{"nodes", &Gang::nodes});
}

template <class Visit>
void visit_fields(const PoolPlace*, Visit visit) {
    visit(Field{"name", &PoolPlace::name, kRequired});
    visit(Field{"size", &PoolPlace::size});
}

template <class Visit>
void visit_fields(const Lease*, Visit visit) {
    visit(Field{"study", &Lease::study, kRequired});
    visit(Field{"number", &Lease::number});
    visit(Field{"attempt", &Lease::attempt});
    visit(Field{"run_id", &Lease::run_id, kRequired});
    visit(Field{"experiment_id", &Lease::experiment_id});
    visit(JsonText<Lease>{"params", &Lease::params_json});
    visit(Field{"seed", &Lease::seed});
    visit(Field{"command", &Lease::command});
    visit(Field{"env", &Lease::env});
    visit(Field{"working_dir", &Lease::working_dir});
    visit(Field{"checkpoint_dir", &Lease::checkpoint_dir});
    visit(Field{"resume_from", &Lease::resume_from});
    visit(Field{"resume_run_id", &Lease::resume_run_id, kOptional, is_set<&Lease::resume_run_id>});
    visit(Field{"checkpoints", &Lease::checkpoints, kOptional, is_set<&Lease::checkpoints>});
    visit(Field{"is_continued", &Lease::is_continued, kOptional, is_set<&Lease::is_continued>});
    visit(Field{"grace_ms", &Lease::grace_ms});
    visit(Field{"timeout_ms", &Lease::timeout_ms});
    visit(Field{"metric", &Lease::metric});
    visit(Field{"scrape", &Lease::scrape});
    visit(Field{"log_rules", &Lease::log_rules, kOptional,
                [](const Lease& lease) { return !lease.log_rules.empty(); }});
    visit(Field{"cpus_per_trial", &Lease::cpus_per_trial});
    visit(Field{"gpus_per_trial", &Lease::gpus_per_trial});
    visit(Field{"devices", &Lease::devices, kOptional, is_set<&Lease::devices>});
    visit(Field{"memory_bytes", &Lease::memory_bytes, kOptional, is_set<&Lease::memory_bytes>});
    visit(Field{"gang", &Lease::gang});
    visit(Field{"pool", &Lease::pool});
    visit(Field{"token", &Lease::token, kOptional, is_set<&Lease::token>});
}

template <class Visit>
void visit_fields(const LeaseRequest*, Visit visit) {
    visit(Field{"request_id", &LeaseRequest::request_id});
    visit(Field{"free_slots", &LeaseRequest::free_slots});
    visit(Field{"wait_ms", &LeaseRequest::wait_ms});
    visit(Field{"port", &LeaseRequest::port, kOptional, is_set<&LeaseRequest::port>});
    visit(Field{"wants_tokens", &LeaseRequest::wants_tokens, kOptional,
                is_set<&LeaseRequest::wants_tokens>});
}

template <class Visit>
void visit_fields(const LeaseReply*, Visit visit) {
    visit(Field{"leases", &LeaseReply::leases});
}

template <class Visit>
void visit_fields(const Directive*, Visit visit) {
    visit(Field{"run_id", &Directive::run_id, kRequired});
    visit(Field{"attempt", &Directive::attempt});
    visit(Field{"action", &Directive::action, kRequired});
    visit(Field{"reason", &Directive::reason});
    visit(Field{"steps", &Directive::steps, kOptional, is_set<&Directive::steps>});
    visit(Field{"turn", &Directive::turn, kOptional, is_set<&Directive::turn>});
}

template <class Visit>
void visit_fields(const HeartbeatRequest*, Visit visit) {
    visit(Field{"wait_ms", &HeartbeatRequest::wait_ms});
    visit(Field{"running", &HeartbeatRequest::running});
}

template <class Visit>
void visit_fields(const HeartbeatReply*, Visit visit) {
    visit(Field{"directives", &HeartbeatReply::directives});
    visit(Field{"lost", &HeartbeatReply::lost});
    visit(Field{"draining", &HeartbeatReply::draining});
}

template <class Visit>
void visit_fields(const PollRequest*, Visit visit) {
    visit(Field{"session", &PollRequest::session, kRequired});
    visit(Field{"turn", &PollRequest::turn});
    visit(Field{"ack", &PollRequest::ack});
    visit(Field{"wait_ms", &PollRequest::wait_ms});
    visit(Field{"running", &PollRequest::running});
    visit(Field{"free_slots", &PollRequest::free_slots});
    visit(Field{"port", &PollRequest::port, kOptional, is_set<&PollRequest::port>});
    visit(Field{"wants_tokens", &PollRequest::wants_tokens, kOptional,
                is_set<&PollRequest::wants_tokens>});
    visit(Field{"declined", &PollRequest::declined, kOptional, is_set<&PollRequest::declined>});
    visit(Field{"leaving", &PollRequest::leaving, kOptional, is_set<&PollRequest::leaving>});
    visit(
        Field{"interrupts", &PollRequest::interrupts, kOptional, is_set<&PollRequest::interrupts>});
}

template <class Visit>
void visit_fields(const PollReply*, Visit visit) {
    visit(Field{"sequence", &PollReply::sequence});
    visit(Field{"leases", &PollReply::leases});
    visit(Field{"directives", &PollReply::directives});
    visit(Field{"lost", &PollReply::lost});
    visit(
        Field{"lease_error", &PollReply::lease_error, kOptional, is_set<&PollReply::lease_error>});
    visit(Field{"draining", &PollReply::draining});
}

template <class Visit>
void visit_fields(const ReportedMetric*, Visit visit) {
    visit(Field{"key", &ReportedMetric::key, kRequired});
    visit(Field{"value", &ReportedMetric::value});
    visit(Field{"step", &ReportedMetric::step});
    visit(Field{"timestamp_ms", &ReportedMetric::timestamp_ms});
}

template <class Visit>
void visit_fields(const ReportedParam*, Visit visit) {
    visit(Field{"key", &ReportedParam::key, kRequired});
    visit(Field{"value", &ReportedParam::value, kRequired});
}

template <class Visit>
void visit_fields(const ReportedTag*, Visit visit) {
    visit(Field{"key", &ReportedTag::key, kRequired});
    visit(Field{"value", &ReportedTag::value, kRequired});
}

template <class Visit>
void visit_fields(const FinishRequest*, Visit visit) {
    visit(Field{"request_id", &FinishRequest::request_id});
    visit(Field{"outcome", &FinishRequest::outcome, kRequired});
    visit(Field{"exit_code", &FinishRequest::exit_code});
    visit(Field{"signal", &FinishRequest::signal});
    visit(Field{"timed_out", &FinishRequest::timed_out, kOptional,
                is_set<&FinishRequest::timed_out>});
    visit(Field{"reason", &FinishRequest::reason});
    visit(Field{"max_rss_kb", &FinishRequest::max_rss_kb});
    visit(Field{"cpu_ms", &FinishRequest::cpu_ms});
    visit(Field{"wall_ms", &FinishRequest::wall_ms});
    visit(Field{"peak_memory_bytes", &FinishRequest::peak_memory_bytes, kOptional,
                is_set<&FinishRequest::peak_memory_bytes>});
    visit(Field{"peak_gpu_memory_bytes", &FinishRequest::peak_gpu_memory_bytes, kOptional,
                is_set<&FinishRequest::peak_gpu_memory_bytes>});
}

template <class Visit>
void visit_fields(const NeededCheckpoints*, Visit visit) {
    visit(Field{"folder", &NeededCheckpoints::folder, kRequired});
    visit(Field{"from", &NeededCheckpoints::from});
    visit(Field{"below", &NeededCheckpoints::below});
    visit(Field{"trials", &NeededCheckpoints::trials});
}

template <class Visit>
void visit_fields(const FinishReply*, Visit visit) {
    visit(Field{"checkpoints", &FinishReply::checkpoints});
}

template <class Visit>
void visit_fields(const AttemptReport*, Visit visit) {
    visit(Field{"run_id", &AttemptReport::run_id, kRequired});
    visit(Field{"attempt", &AttemptReport::attempt});
    visit(Field{"metrics", &AttemptReport::metrics});
    visit(Field{"params", &AttemptReport::params});
    visit(Field{"tags", &AttemptReport::tags, kOptional,
                [](const AttemptReport& report) { return !report.tags.empty(); }});
    visit(Field{"finish", &AttemptReport::finish});
}

template <class Visit>
void visit_fields(const ReportRequest*, Visit visit) {
    visit(Field{"reports", &ReportRequest::reports});
}

template <class Visit>
void visit_fields(const ReportResult*, Visit visit) {
    const auto has_failed = [](const ReportResult& result) { return !result.ok; };
    visit(Field{"run_id", &ReportResult::run_id, kRequired});
    visit(Field{"attempt", &ReportResult::attempt});
    visit(Field{"ok", &ReportResult::ok});
    visit(Field{"error_code", &ReportResult::error_code, kOptional, has_failed});
    visit(Field{"message", &ReportResult::message, kOptional, has_failed});
    visit(Field{"finished", &ReportResult::finished, kOptional, is_set<&ReportResult::finished>});
    visit(Field{"checkpoints", &ReportResult::checkpoints});
}

template <class Visit>
void visit_fields(const ReportReply*, Visit visit) {
    visit(Field{"results", &ReportReply::results});
}

}  // namespace
}  // namespace tune::tuner
