#pragma once
// Documents that must be there exactly when an event is: messages to the outside are written in
// the transaction of the change that they report, so that neither is ever without the other.

#include <span>
#include <vector>

#include "tracker/store/commands/events.h"

namespace tune::tracker {

/// Makes documents from the events of a transaction.
class Outbox {
public:
    virtual ~Outbox() = default;

    /// Called on the writer thread before each commit that has events; again when the transaction
    /// is tried again. Appends the documents to be put in the same transaction. The metrics of
    /// MetricsLogged are not there yet. Must be fast and not block; never calls the store.
    virtual void add_documents(std::span<const Event> events, std::vector<Document>& documents) = 0;

    /// Called on the writer thread when the transaction of the last add_documents failed: there are
    /// no such documents.
    virtual void forget_documents() {}
};

}  // namespace tune::tracker
