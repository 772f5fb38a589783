#include "tracker/store/writer/apply.h"

#include "tracker/sqlite/transaction.h"

namespace tune::tracker {
namespace {

Result<Outcome> apply_each(WriteContext& context, Atomic& atomic) {
    AtomicOutcome all;
    all.outcomes.reserve(atomic.commands.size());
    for (Command& command : atomic.commands) {
        TUNE_TRY(outcome, apply(context, command));
        all.outcomes.push_back(std::move(outcome));
    }
    return Outcome(std::move(all));
}

Result<void> check(const Atomic& atomic) {
    if (atomic.commands.size() > kAtomicCommandsMax)
        return Error{Code::kInvalidParameterValue,
                     "An atomic command may hold at most " + std::to_string(kAtomicCommandsMax) +
                         " commands, not " + std::to_string(atomic.commands.size()) + "."};
    for (const Command& command : atomic.commands)
        if (std::holds_alternative<Atomic>(command))
            return Error{Code::kInvalidParameterValue,
                         "An atomic command cannot hold another one."};
    return {};
}

Result<Outcome> apply(WriteContext& context, Atomic& atomic) {
    TUNE_TRY_VOID(check(atomic));
    // Heads that were changed before must survive when this command is undone.
    TUNE_TRY_VOID(context.metrics.flush());
    const std::size_t events = context.events.size();
    const std::size_t deferred = context.deferred.size();
    TUNE_TRY(savepoint, sqlite::Savepoint::begin(context.connection));
    Result<Outcome> outcome = apply_each(context, atomic);
    if (outcome) {
        TUNE_TRY_VOID(context.metrics.flush());
        TUNE_TRY_VOID(savepoint.release());
        return outcome;
    }
    context.forget();
    context.events.erase(context.events.begin() + static_cast<std::ptrdiff_t>(events),
                         context.events.end());
    context.deferred.resize(deferred);
    return outcome;
}

Result<Outcome> apply(WriteContext& context, Operation& operation) {
    return std::visit([&](auto& one) { return tracker::apply(context, one); },
                      static_cast<OperationVariant&>(operation));
}

}  // namespace

Result<Outcome> apply(WriteContext& context, Command& command) {
    return std::visit([&](auto& one) { return apply(context, one); },
                      static_cast<CommandVariant&>(command));
}

std::string join_uri(std::string_view root, std::string_view path) {
    // Of a URI the path grows, and its query stays behind it.
    const bool has_scheme = !root.starts_with('/') && root.find(':') != std::string_view::npos;
    const std::size_t query = has_scheme ? std::min(root.find('?'), root.size()) : root.size();
    std::string uri(root.substr(0, query));
    if (!uri.ends_with('/')) uri += '/';
    uri += path;
    uri += root.substr(query);
    return uri;
}

}  // namespace tune::tracker
