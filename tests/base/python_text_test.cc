#include "base/text/python_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tune {
namespace {

TEST(PythonText, IsWhatPythonPrints) {
    EXPECT_EQ(python_text(Json(true)), "True");
    EXPECT_EQ(python_text(Json(nullptr)), "None");
    EXPECT_EQ(python_text(Json(3)), "3");
    EXPECT_EQ(python_text(Json(1.0)), "1.0");
    EXPECT_EQ(python_text(Json(1e-5)), "1e-05");
    EXPECT_EQ(python_text(Json("it's")), "it's") << "a text is itself";
    EXPECT_EQ(python_text(Json::parse(R"([1, "it's", [false], {}])")),
              R"([1, "it's", [False], {}])");
    EXPECT_EQ(python_text(Json::parse(R"({"a": null, "b": ["x"]})")), "{'a': None, 'b': ['x']}");
    EXPECT_EQ(python_text(Json::array()), "[]");
}

}  // namespace
}  // namespace tune
