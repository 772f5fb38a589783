#pragma once
// Calls of the Kubernetes API, and a thread that follows the pods of a group by a watch.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/result.h"
#include "tracker/client/client.h"
#include "worker/launch/k8s/kube_config.h"

namespace tune::launch {

/// One connection. Errors of the API come with its own message; those of missing rights and expired
/// credentials say what to do.
[[nodiscard]] Result<std::unique_ptr<tracker::Client>> make_kube_client(const KubeAccess& access);

/// The error with what to do about it.
[[nodiscard]] Error explain_kube_error(Error error);

/// The pods that a selector names, kept up to date by one list and a watch from there on; after the
/// watch ends or is too old, from a new list.
class PodWatch {
public:
    /// Lists once before it returns. Errors: those of the list.
    [[nodiscard]] static Result<std::unique_ptr<PodWatch>> start(const KubeAccess& access,
                                                                 const std::string& selector);
    ~PodWatch();
    PodWatch(const PodWatch&) = delete;
    PodWatch& operator=(const PodWatch&) = delete;

    /// By name. Thread-safe. Errors: why the API cannot be read just now.
    [[nodiscard]] Result<std::map<std::string, Json>> pods() const;

private:
    PodWatch(std::unique_ptr<tracker::Client> client, std::string path)
        : client_(std::move(client)), path_(std::move(path)) {}
    [[nodiscard]] Result<void> list();
    void follow();
    [[nodiscard]] Result<void> watch();
    [[nodiscard]] Result<void> take(const std::string& line);

    std::unique_ptr<tracker::Client> client_;
    std::string path_;     // of the list, with the selector
    std::string version_;  // of the thread, once it runs
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::map<std::string, Json> pods_;  // guarded by mutex_
    std::string error_;                 // guarded by mutex_
    bool stop_ = false;                 // guarded by mutex_
    std::thread thread_;
};

}  // namespace tune::launch
