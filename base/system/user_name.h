#pragma once

#include <string>

namespace tune {

/// Who runs this process, as Python's getpass.getuser() and so MLflow's clients call it: LOGNAME,
/// USER, LNAME or USERNAME of the environment, else the name of the account. Empty: it has none.
[[nodiscard]] std::string user_name();

}  // namespace tune
