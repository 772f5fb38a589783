#pragma once
// The shell script that an engine runs for one agent: POSIX sh, the same for all engines.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worker/launch/engine.h"

namespace tune::launch {

/// `text` as one word of a POSIX shell.
[[nodiscard]] std::string shell_quoted(std::string_view text);
/// The words with blanks between them, each quoted where it needs it.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

/// What differs between engines. Texts named `..._word` are words of the script, quoted by the
/// caller or made to be expanded there.
struct ScriptParts {
    std::string engine = {};        ///< its kind's name
    std::string url = {};           ///< of the server, as seen from there
    std::string program_word = {};  ///< e.g. '/opt/tune/bin/tune'
    std::string state_word = {};    ///< the folder shared by all, e.g. "$HOME/.tune/agents"
    std::string name_word = {};     ///< of this agent's own folder below it; unique, also after a
                                    ///< requeue: an agent that comes up twice is two agents
    std::string token_file_word = {};  ///< empty: no token
    std::string address_word = {};     ///< where other machines reach this one; empty: the agent
                                       ///< finds it by itself
    bool shares_gpus = false;  ///< the engine masks no GPUs: the agent takes as many as it is given
};

/// The script without its first line (#!); it ends in `exec tune agent ...`.
[[nodiscard]] std::string agent_script(const Launch& launch, const ScriptParts& parts);

/// Where agents keep their state on this machine: the setting, else ~/.tune/agents.
[[nodiscard]] Result<std::string> local_state_folder(const AgentSettings& settings);
/// This program, or the one that is set.
[[nodiscard]] Result<std::string> local_program(const AgentSettings& settings);
/// Writes the token where only this user can read it: `folder`/<group>.token. Empty: no token.
[[nodiscard]] Result<std::string> write_token_file(const std::string& folder, const Launch& launch);

}  // namespace tune::launch
