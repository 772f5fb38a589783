#pragma once
// What Optuna allows and we do not, changed before a study is read as one of ours.

#include <string>
#include <vector>

#include "tuner/interop/optuna/optuna_db.h"

namespace tune::tuner {

/// Gives parameters, metrics and constraints names that ours may have (other characters become
/// '_'), and constraints of the list form (`constraints_func`) the names that Optuna gives them:
/// "0", "1" and so on. Adds a sentence a name that changed to `notes`.
void make_names_usable(OptunaStudy& study, std::vector<std::string>& notes);

}  // namespace tune::tuner
