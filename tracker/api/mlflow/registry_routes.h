#pragma once
// How the routes of the model registry are added.

#include <string>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/router.h"

namespace tune::tracker {

/// What the calls of the registry are about: the registered model or prompt `name`, its versions,
/// an alias of one.
inline constexpr Needs kReadModel = {Access::kRead, Subject::kRegisteredModel};
inline constexpr Needs kEditModel = {Access::kWrite, Subject::kRegisteredModel};
inline constexpr Needs kDeleteModel = {Access::kWrite, Subject::kWholeModel, Permission::kManage};
inline constexpr Needs kReadVersion = {Access::kRead, Subject::kModelVersion};
inline constexpr Needs kEditVersion = {Access::kWrite, Subject::kModelVersion};
inline constexpr Needs kManageVersion = {Access::kWrite, Subject::kModelVersion,
                                         Permission::kManage};
inline constexpr Needs kEditAlias = {Access::kWrite, Subject::kModelAlias};
inline constexpr Needs kManageAlias = {Access::kWrite, Subject::kModelAlias, Permission::kManage};
inline constexpr Needs kSearchModels = {Access::kRead, Subject::kCut};

/// Adds the calls under one name of the registry (`registered-models`, `model-versions`), for
/// both prefixes. The router and the store outlive it and what it adds.
class RegistryRoutes {
public:
    RegistryRoutes(Router& router, Store& store, std::string name)
        : router_(router), store_(store), name_(std::move(name)) {}

    void write(Method method, Needs needs, const char* call, const char* summary,
               ParseCommand parse, RenderOutcome render = {}) const {
        add(method, needs, call, summary,
            write_handler(store_, std::move(parse), std::move(render)));
    }

    void read(Method method, Needs needs, const char* call, const char* summary,
              Result<std::string> (*answer)(const Store&, const Request&)) const {
        add(method, needs, call, summary,
            read_handler(store_, [&store = store_, answer](const Request& request) {
                return answer(store, request);
            }));
    }

private:
    void add(Method method, Needs needs, const char* call, const char* summary,
             Handler handler) const {
        const bool has_body = method == Method::kPost || method == Method::kPatch;
        router_.add_api(2, {.method = method,
                            .access = needs,
                            .pattern = "/mlflow/" + name_ + "/" + call,
                            .body = has_body ? Body::kJson : Body::kNone,
                            .summary = summary,
                            .handler = std::move(handler)});
    }

    Router& router_;
    Store& store_;
    std::string name_;
};

}  // namespace tune::tracker
