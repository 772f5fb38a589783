#pragma once
// What a lease says to the agent that gets it.

#include "tuner/protocol.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// The part of a trial that this agent is about to get.
[[nodiscard]] Member make_member(const Agent& agent, const LeaseRequest& request, Part part);

/// `member`: one of the trial's.
[[nodiscard]] Lease make_lease(const Study& study, const Trial& trial, const Member& member);

/// Whether the study's commands log in themselves: a client sends only one credential.
[[nodiscard]] bool logs_in(const Study& study);

}  // namespace tune::tuner
