#include "tracker/api/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tracker/api/artifacts/file_responses.h"
#include "tracker/api/http/url.h"

namespace tune::tracker {
namespace {

Handler named(std::string name) {
    return [name](const auto&, const Responder& respond) { respond(text_response(name)); };
}

/// What does not build, so that no route can be forgotten: one that declares nothing, or that is
/// about something and does not say what.
template <class R>
concept BuildsWithNeeds = requires {
    R{.method = Method::kGet, .access = Access::kOpen, .pattern = "/x"};
};
template <class R>
concept BuildsWithoutNeeds = requires {
    R{.method = Method::kGet, .pattern = "/x"};
};
template <class R>
concept BuildsOfItsMethod = requires {
    R{Method::kGet};
};
template <class R>
concept BuildsOfItsPath = requires {
    R{Method::kGet, "/x"};
};
template <Access access>
concept IsAboutNothing = requires {
    typename std::integral_constant<bool, (static_cast<void>(Needs(access)), true)>;
};

static_assert(BuildsWithNeeds<Route>);
static_assert(!BuildsWithoutNeeds<Route>);
static_assert(!BuildsOfItsMethod<Route>);
static_assert(!BuildsOfItsPath<Route>);
static_assert(!std::is_default_constructible_v<Route>);
static_assert(IsAboutNothing<Access::kOpen>);
static_assert(IsAboutNothing<Access::kByUrl>);
static_assert(IsAboutNothing<Access::kAdmin>);
static_assert(!IsAboutNothing<Access::kRead>);
static_assert(!IsAboutNothing<Access::kWrite>);
static_assert(!IsAboutNothing<Access::kAgent>);
static_assert(!IsAboutNothing<Access::kRun>);

class RouterTest : public testing::Test {
protected:
    RouterTest() {
        add(Method::kGet, "/a/b");
        add(Method::kPost, "/a/b");
        add(Method::kGet, "/m/{id}");
        add(Method::kDelete, "/m/{id}/tags/{key...}");
        add(Method::kPost, "/m/search");
        add(Method::kGet, "/files/{path...}");
    }
    void add(Method method, const std::string& pattern) {
        router_.add({method, Access::kOpen, pattern, Body::kNone, "",
                     named(std::string(method_name(method)) + " " + pattern)});
    }
    Response ask(Method method, std::string path) {
        auto request = std::make_shared<Request>();
        request->method = method;
        request->path = std::move(path);
        Response answer;
        router_.dispatch(request, [&](Response response) { answer = std::move(response); });
        last_ = request;
        return answer;
    }

    Router router_;
    std::shared_ptr<Request> last_;
};

TEST_F(RouterTest, FindsExactAndParameterRoutes) {
    EXPECT_EQ(ask(Method::kGet, "/a/b").body, "GET /a/b");
    EXPECT_EQ(ask(Method::kHead, "/a/b").body, "GET /a/b");
    EXPECT_EQ(ask(Method::kPost, "/a/b").body, "POST /a/b");
    EXPECT_EQ(ask(Method::kGet, "/m/7").body, "GET /m/{id}");
    EXPECT_EQ(last_->parameter("id"), "7");
    EXPECT_EQ(ask(Method::kPost, "/m/search").body, "POST /m/search");
    EXPECT_EQ(ask(Method::kGet, "/m/search").body, "GET /m/{id}");
    EXPECT_EQ(ask(Method::kDelete, "/m/7/tags/a/b").body, "DELETE /m/{id}/tags/{key...}");
    EXPECT_EQ(last_->parameter("key"), "a/b");
    EXPECT_EQ(ask(Method::kGet, "/files/x/y/").body, "GET /files/{path...}");
    EXPECT_EQ(last_->parameter("path"), "x/y/");
    ask(Method::kGet, "/files/");
    EXPECT_EQ(last_->parameter("path"), "");
}

TEST_F(RouterTest, StandsUnderItsPrefix) {
    add(Method::kGet, "/api/2.0/mlflow-artifacts/artifacts/{path...}");
    add(Method::kPut, "/api/2.0/mlflow-artifacts/artifacts/{path...}");
    add(Method::kDelete, "/api/2.0/mlflow-artifacts/artifacts/{path...}");
    router_.set_fallback(named("page"));
    router_.set_prefix("/ml/x");
    EXPECT_EQ(ask(Method::kGet, "/ml/x/a/b").body, "GET /a/b");
    EXPECT_EQ(last_->path, "/a/b");
    EXPECT_EQ(ask(Method::kGet, "/ml/x/experiments").body, "page");
    EXPECT_EQ(ask(Method::kGet, "/ml/x/").body, "page");
    EXPECT_EQ(ask(Method::kGet, "/ml/x").body, "page");
    for (const char* path :
         {"/a/b", "/", "", "/ml", "/ml/x2/a/b", "/ml/xa/b", "/x/a/b", "/ML/x/a/b"})
        EXPECT_EQ(ask(Method::kGet, path).status, 404) << path;
    const std::string file = "/api/2.0/mlflow-artifacts/artifacts/f";
    for (const std::string& path : {file, "/ml/x" + file}) {
        EXPECT_EQ(ask(Method::kGet, path).status, 200);
        EXPECT_EQ(ask(Method::kPut, path).status, 200);
    }
    EXPECT_EQ(ask(Method::kDelete, file).status, 404);
    EXPECT_EQ(ask(Method::kDelete, "/ml/x" + file).status, 200);
    EXPECT_EQ(ask(Method::kGet, "/api/2.0/mlflow-artifacts/artifacts").status, 404);
}

TEST_F(RouterTest, AnswersCleanly404And405) {
    for (const char* path :
         {"/", "/a", "/a/b/", "/a//b", "/m/", "/m", "/m/7/x", "/files", "", "a/b", "/A/B"})
        EXPECT_EQ(ask(Method::kGet, path).status, 404) << path;
    const Response wrong = ask(Method::kPut, "/a/b");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_THAT(wrong.headers,
                testing::Contains(testing::Pair("Allow", "GET, POST, HEAD, OPTIONS")));
    EXPECT_EQ(ask(Method::kPost, "/m/7").status, 405);
    EXPECT_EQ(ask(Method::kOptions, "/m/7").status, 204);
}

TEST_F(RouterTest, GivesPagesToTheFallbackButNotTheApi) {
    router_.set_fallback(named("page"));
    EXPECT_EQ(ask(Method::kGet, "/experiments/3").body, "page");
    EXPECT_EQ(ask(Method::kHead, "/").body, "page");
    EXPECT_EQ(ask(Method::kPost, "/experiments/3").status, 404);
    for (const char* path : {"/api", "/api/x", "/ajax-api/2.0/none"})
        EXPECT_EQ(ask(Method::kGet, path).status, 404) << path;
    EXPECT_EQ(ask(Method::kGet, "/apis").body, "page");
}

TEST_F(RouterTest, MountsApiRoutesTwice) {
    router_.add_api(3, {Method::kGet, Access::kOpen, "/mlflow/x", Body::kNone, "", named("x")});
    EXPECT_EQ(ask(Method::kGet, "/api/3.0/mlflow/x").body, "x");
    EXPECT_EQ(ask(Method::kGet, "/ajax-api/3.0/mlflow/x").body, "x");
    EXPECT_EQ(ask(Method::kGet, "/api/2.0/mlflow/x").status, 404);
}

TEST_F(RouterTest, RefusesTheSameRouteTwice) {
    EXPECT_DEATH(add(Method::kGet, "/a/b"), "exists already");
    EXPECT_DEATH(add(Method::kGet, "/m/{id}"), "exists already");
    EXPECT_DEATH(add(Method::kGet, "no-slash"), "begins with");
}

TEST(FileResponse, NamesTheTimeOfItsFile) {
    OpenArtifact opened;
    opened.modified_s = 1'769'862'896;
    const Response response = file_response(std::move(opened), "a/b.json");
    const auto header =
        std::find_if(response.headers.begin(), response.headers.end(),
                     [](const auto& each) { return each.first == "Last-Modified"; });
    ASSERT_NE(header, response.headers.end());
    EXPECT_EQ(header->second, "Sat, 31 Jan 2026 12:34:56 GMT");
}

TEST(Url, NamesAttachments) {
    EXPECT_EQ(attachment_disposition("a b.txt"), "attachment; filename=\"a b.txt\"");
    EXPECT_EQ(attachment_disposition("ü\".txt"),
              "attachment; filename=\"__.txt\"; filename*=UTF-8''%C3%BC%22.txt");
}

}  // namespace
}  // namespace tune::tracker
