#include "tuner/config/study_schema.h"

namespace tune::tuner {

std::string_view study_schema() {
    static constexpr std::string_view kText =
#include "study_schema.inc"
        ;
    return kText;
}

}  // namespace tune::tuner
