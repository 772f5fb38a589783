#include "worker/agent/models/registered_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tune::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kChampion = "models:/digits@champion";

TEST(RegisteredModel, ModelsThatACommandStartsFrom) {
    EXPECT_THAT(wanted_models({"tune-trainer", "train", "--init-from=models:/digits@champion",
                               "--init_from", "models:/digits/3", "--init-from=models:/digits/3"}),
                ElementsAre(kChampion, "models:/digits/3"));
    // Of other arguments the program makes what it likes, and paths are there already.
    EXPECT_THAT(wanted_models({"models:/digits/3", "--model=models:/digits/3", "--init-from=best",
                               "--init-fromage=models:/digits/3", "--init-from"}),
                IsEmpty());
}

TEST(RegisteredModel, APathTakesThePlaceOfAName) {
    std::vector<std::string> command = {"train", "--init-from=models:/digits@champion",
                                        "--init-from", kChampion, kChampion};
    put_model_path(command, kChampion, "/state/models/digits-3");
    EXPECT_THAT(command, ElementsAre("train", "--init-from=/state/models/digits-3", "--init-from",
                                     "/state/models/digits-3", kChampion));
    put_model_path(command, "models:/digits", "/elsewhere");
    EXPECT_EQ(command[1], "--init-from=/state/models/digits-3");
}

}  // namespace
}  // namespace tune::worker
