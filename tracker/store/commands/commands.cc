// The special members of commands, outcomes and events, here once: those of a variant of
// thirty structs are a hundred functions, which every file that writes would compile again.

#include "tracker/store/commands/commands.h"

#include "tracker/store/commands/events.h"

namespace tune::tracker {

Command::Command() = default;
Command::Command(const Command&) = default;
Command::Command(Command&&) noexcept = default;
Command& Command::operator=(const Command&) = default;
Command& Command::operator=(Command&&) noexcept = default;
Command::~Command() = default;

Outcome::Outcome() = default;
Outcome::Outcome(const Outcome&) = default;
Outcome::Outcome(Outcome&&) noexcept = default;
Outcome& Outcome::operator=(const Outcome&) = default;
Outcome& Outcome::operator=(Outcome&&) noexcept = default;
Outcome::~Outcome() = default;

RegistryCommand::RegistryCommand() = default;
RegistryCommand::RegistryCommand(const RegistryCommand&) = default;
RegistryCommand::RegistryCommand(RegistryCommand&&) noexcept = default;
RegistryCommand& RegistryCommand::operator=(const RegistryCommand&) = default;
RegistryCommand& RegistryCommand::operator=(RegistryCommand&&) noexcept = default;
RegistryCommand::~RegistryCommand() = default;

Operation::Operation() = default;
Operation::Operation(const Operation&) = default;
Operation::Operation(Operation&&) noexcept = default;
Operation& Operation::operator=(const Operation&) = default;
Operation& Operation::operator=(Operation&&) noexcept = default;
Operation::~Operation() = default;

ImportRows::ImportRows() = default;
ImportRows::ImportRows(const ImportRows&) = default;
ImportRows::ImportRows(ImportRows&&) noexcept = default;
ImportRows& ImportRows::operator=(const ImportRows&) = default;
ImportRows& ImportRows::operator=(ImportRows&&) noexcept = default;
ImportRows::~ImportRows() = default;

PermissionCommand::PermissionCommand() = default;
PermissionCommand::PermissionCommand(const PermissionCommand&) = default;
PermissionCommand::PermissionCommand(PermissionCommand&&) noexcept = default;
PermissionCommand& PermissionCommand::operator=(const PermissionCommand&) = default;
PermissionCommand& PermissionCommand::operator=(PermissionCommand&&) noexcept = default;
PermissionCommand::~PermissionCommand() = default;

PermissionOutcome::PermissionOutcome() = default;
PermissionOutcome::PermissionOutcome(const PermissionOutcome&) = default;
PermissionOutcome::PermissionOutcome(PermissionOutcome&&) noexcept = default;
PermissionOutcome& PermissionOutcome::operator=(const PermissionOutcome&) = default;
PermissionOutcome& PermissionOutcome::operator=(PermissionOutcome&&) noexcept = default;
PermissionOutcome::~PermissionOutcome() = default;
Event::Event() = default;
Event::Event(const Event&) = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(const Event&) = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

}  // namespace tune::tracker
