// One function for each family of variables. The names are a contract with programs that we do not
// know, so none is left out because it follows from the others.

#include "worker/agent/attempts/rank_environment.h"

#include <nlohmann/json.hpp>

namespace tune::worker {
namespace {

using RankVariables = std::vector<std::string>;

/// In the block of an agent: the first port is torch's meeting place, those that follow are
/// TensorFlow's workers, and the last one is Horovod's meeting place.
constexpr int kRendezvousPort = tuner::kGangPorts - 1;

void set(RankVariables& variables, const char* name, const std::string& value) {
    variables.push_back(std::string(name) + "=" + value);
}
void set(RankVariables& variables, const char* name, int value) {
    set(variables, name, std::to_string(value));
}

/// An IPv6 address stands in brackets before a port.
std::string with_port(const std::string& address, int port) {
    const bool is_v6 = address.find(':') != std::string::npos;
    return (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

void add_torch(RankVariables& variables, const tuner::Lease& lease, int local_rank) {
    const tuner::Gang& gang = *lease.gang;
    const int rank = gang.node * gang.nproc + local_rank;
    const int nodes = static_cast<int>(gang.nodes.size());
    set(variables, "RANK", rank);
    set(variables, "LOCAL_RANK", local_rank);
    set(variables, "GROUP_RANK", gang.node);
    set(variables, "NODE_RANK", gang.node);
    set(variables, "ROLE_RANK", rank);
    set(variables, "ROLE_NAME", "default");
    set(variables, "LOCAL_WORLD_SIZE", gang.nproc);
    set(variables, "WORLD_SIZE", gang.size());
    set(variables, "GROUP_WORLD_SIZE", nodes);
    set(variables, "ROLE_WORLD_SIZE", gang.size());
    set(variables, "MASTER_ADDR", gang.nodes.front().address);
    set(variables, "MASTER_PORT", gang.nodes.front().port);
    set(variables, "TORCHELASTIC_RESTART_COUNT", lease.attempt - 1);
    set(variables, "TORCHELASTIC_MAX_RESTARTS", 0);
    set(variables, "TORCHELASTIC_RUN_ID", lease.run_id + "-" + std::to_string(lease.attempt));
    set(variables, "TORCHELASTIC_USE_AGENT_STORE", "False");
    set(variables, "TORCH_NCCL_ASYNC_ERROR_HANDLING", 1);
}

void add_tensorflow(RankVariables& variables, const tuner::Gang& gang, int local_rank) {
    if (gang.nproc >= kRendezvousPort) return;
    Json workers = Json::array();
    for (const tuner::GangNode& node : gang.nodes)
        for (int i = 0; i < gang.nproc; ++i)
            workers.push_back(with_port(node.address, node.port + 1 + i));
    const Json config = {
        {"cluster", {{"worker", std::move(workers)}}},
        {"task", {{"type", "worker"}, {"index", gang.node * gang.nproc + local_rank}}}};
    set(variables, "TF_CONFIG", to_text(config));
}

void add_mpi(RankVariables& variables, const tuner::Gang& gang, int local_rank) {
    const int rank = gang.node * gang.nproc + local_rank;
    set(variables, "OMPI_COMM_WORLD_RANK", rank);
    set(variables, "OMPI_COMM_WORLD_SIZE", gang.size());
    set(variables, "OMPI_COMM_WORLD_LOCAL_RANK", local_rank);
    set(variables, "OMPI_COMM_WORLD_LOCAL_SIZE", gang.nproc);
    set(variables, "OMPI_COMM_WORLD_NODE_RANK", local_rank);
    set(variables, "PMI_RANK", rank);
    set(variables, "PMI_SIZE", gang.size());
    set(variables, "MPI_LOCALRANKID", local_rank);
    set(variables, "MPI_LOCALNRANKS", gang.nproc);
}

/// Where they meet: the leader of the machine with rank 0 (supervisor/rendezvous.h). Horovod's
/// client puts "http://", this address, ":", the port and "/SCOPE/KEY" together, so that what
/// stands after the slash is the beginning of the path.
void add_meeting_place(RankVariables& variables, const tuner::Lease& lease,
                       const std::string& interface) {
    const tuner::GangNode& first = lease.gang->nodes.front();
    set(variables, "HOROVOD_CONTROLLER", "gloo");
    set(variables, "HOROVOD_CPU_OPERATIONS", "gloo");
    if (!interface.empty()) set(variables, "HOROVOD_GLOO_IFACE", interface);
    if (first.address.find(':') != std::string::npos) return;  // it speaks IPv4 only
    const std::string port = std::to_string(first.port + kRendezvousPort);
    set(variables, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
        first.address + ":" + port + "/" + lease.run_id + "-" + std::to_string(lease.attempt));
    set(variables, "HOROVOD_GLOO_RENDEZVOUS_PORT", port);
}

void add_horovod(RankVariables& variables, const tuner::Gang& gang, int local_rank) {
    const int rank = gang.node * gang.nproc + local_rank;
    const int nodes = static_cast<int>(gang.nodes.size());
    set(variables, "HOROVOD_RANK", rank);
    set(variables, "HOROVOD_SIZE", gang.size());
    set(variables, "HOROVOD_LOCAL_RANK", local_rank);
    set(variables, "HOROVOD_LOCAL_SIZE", gang.nproc);
    set(variables, "HOROVOD_CROSS_RANK", gang.node);
    set(variables, "HOROVOD_CROSS_SIZE", nodes);
    // A name by which it knows who is on one machine; two agents may have one address.
    set(variables, "HOROVOD_HOSTNAME", "node-" + std::to_string(gang.node));
}

}  // namespace

std::vector<std::string> rank_environment(const tuner::Lease& lease, int local_rank,
                                          const std::string& interface) {
    RankVariables variables;
    add_torch(variables, lease, local_rank);
    add_tensorflow(variables, *lease.gang, local_rank);
    add_mpi(variables, *lease.gang, local_rank);
    add_horovod(variables, *lease.gang, local_rank);
    add_meeting_place(variables, lease, interface);
    return variables;
}

std::string rank_log(const tuner::Gang& gang, int local_rank) {
    if (local_rank == 0) return {};
    return "rank-" + std::to_string(gang.node * gang.nproc + local_rank) + ".log";
}

std::string ranks_file(const tuner::Lease& lease, const std::string& interface) {
    std::string text;
    for (int rank = 0; rank < lease.gang->nproc; ++rank) {
        text += rank_log(*lease.gang, rank) + '\0';
        for (const std::string& variable : rank_environment(lease, rank, interface))
            text += variable + '\0';
        text += '\0';
    }
    return text;
}

}  // namespace tune::worker
