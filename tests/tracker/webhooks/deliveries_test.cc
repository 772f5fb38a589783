// From a commit to a receiver: signatures, retries, restarts, bounds.

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "tests/tracker/store/store_fixture.h"
#include "tests/tracker/webhooks/receiver.h"
#include "tracker/webhooks/signature.h"
#include "tracker/webhooks/webhook_service.h"

namespace tune::tracker {
namespace {

constexpr WebhookEvent kRunCreated{100, 1};
constexpr WebhookEvent kRunFinished{100, 100};

/// The machine's clock until it gets a time of its own.
class SettableClock final : public Clock {
public:
    [[nodiscard]] std::int64_t now_ms() const override {
        const std::int64_t told_ms = told_ms_.load();
        return told_ms != 0 ? told_ms : clock_.now_ms();
    }
    [[nodiscard]] std::int64_t monotonic_ms() const override { return clock_.monotonic_ms(); }
    void set_now_ms(std::int64_t now_ms) { told_ms_.store(now_ms); }

private:
    SystemClock clock_;
    std::atomic<std::int64_t> told_ms_{0};
};

class DeliveriesTest : public testing::Test {
protected:
    DeliveriesTest() {
        options_.post.policy = {.allow_private = true, .allow_http = true};
        options_.post.timeout_ms = 60'000;
        options_.backoff_ms = 1;
        open();
    }
    ~DeliveriesTest() override { close(); }

    void open(bool starts = true) {
        store_ = Store::open({.directory = directory_.path()}).value();
        service_ = WebhookService::open(*store_, clock_, options_).value();
        if (starts) service_->start();
    }
    void close() {
        if (service_) service_->stop();
        if (store_) store_->stop();
        service_.reset();
        store_.reset();
    }
    void reopen(bool starts = true) {
        close();
        open(starts);
    }

    Webhook add(const std::string& url, std::vector<WebhookEvent> events = {kRunCreated},
                const std::string& secret = "") {
        WebhookFields fields{.name = "hook", .url = url, .events = std::move(events)};
        fields.secret = secret;
        Result<Webhook> made = service_->create(std::move(fields));
        EXPECT_TRUE(made) << made.error().text();
        return made ? std::move(*made) : Webhook{};
    }
    std::string create_run() {
        const Result<Outcome> made = store_->execute(CreateRun{.experiment_id = 0});
        return std::get<tracker::Run>(*made).info.run_id;
    }
    /// Until no delivery waits.
    DeliveryStats settled() {
        store_->wait_for_observers();
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (service_->stats().deliveries.waiting > 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        // The documents of finished deliveries are deleted by commands before this one.
        EXPECT_TRUE(store_->execute(DeleteDocument{"test", "barrier"}));
        return service_->stats().deliveries;
    }
    std::size_t stored() { return store_->list_documents(kDeliveryCollection)->size(); }

    TemporaryDirectory directory_;
    SettableClock clock_;
    DeliveryOptions options_;
    Receiver receiver_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<WebhookService> service_;
};

TEST_F(DeliveriesTest, AnEventArrivesSigned) {
    add(receiver_.url("/a?b=c"), {kRunCreated, kRunFinished}, "s3cret");
    const std::string run_id = create_run();
    const Received one = receiver_.wait_for(1).at(0);
    EXPECT_EQ(one.content_type, "application/json");
    EXPECT_EQ(one.signature, webhook_signature("s3cret", one.delivery_id, one.timestamp, one.body));
    const Json body = Json::parse(one.body);
    EXPECT_EQ(body["entity"], "run");
    EXPECT_EQ(body["action"], "created");
    EXPECT_EQ(body["data"]["run_id"], run_id);
    const DeliveryStats stats = settled();
    EXPECT_EQ(stats.delivered, 1u);
    EXPECT_EQ(stats.in_flight, 0u);
}

TEST_F(DeliveriesTest, WithoutASecretThereIsNoSignature) {
    add(receiver_.url());
    create_run();
    EXPECT_EQ(receiver_.wait_for(1).at(0).signature, "");
}

TEST_F(DeliveriesTest, OnlySubscribedEventsOfActiveWebhooksAreSent) {
    add(receiver_.url("/finished"), {kRunFinished});
    const Webhook disabled = add(receiver_.url("/disabled"));
    ASSERT_TRUE(service_->update(disabled.webhook_id, {.is_active = false}));
    const Webhook deleted = add(receiver_.url("/deleted"));
    ASSERT_TRUE(service_->remove(deleted.webhook_id));
    const std::string run_id = create_run();
    ASSERT_TRUE(store_->execute(UpdateRun{.run_id = run_id, .status = RunStatus::kFinished}));
    const auto received = receiver_.wait_for(1);
    settled();
    ASSERT_EQ(receiver_.count(), 1u);
    EXPECT_EQ(received[0].path, "/finished");
}

TEST_F(DeliveriesTest, TheseStatusesAreTriedAgainWithTheSameId) {
    add(receiver_.url(), {kRunCreated}, "k");
    for (const int status : {429, 500, 503}) receiver_.answer_next(status);
    create_run();
    const auto received = receiver_.wait_for(4);
    ASSERT_EQ(received.size(), 4u);
    for (const Received& one : received) {
        EXPECT_EQ(one.delivery_id, received[0].delivery_id);
        EXPECT_EQ(one.body, received[0].body);
        EXPECT_EQ(one.signature, webhook_signature("k", one.delivery_id, one.timestamp, one.body));
    }
    const DeliveryStats stats = settled();
    EXPECT_EQ(stats.delivered, 1u);
    EXPECT_EQ(stats.retried, 3u);
}

TEST_F(DeliveriesTest, ThreeRetriesAreTheLimit) {
    add(receiver_.url());
    for (int i = 0; i < 5; ++i) receiver_.answer_next(502);
    create_run();
    const DeliveryStats stats = settled();
    EXPECT_EQ(receiver_.count(), 4u);
    EXPECT_EQ(stats.failed, 1u);
    EXPECT_EQ(stored(), 0u);
}

TEST_F(DeliveriesTest, OtherRefusalsAreFinal) {
    add(receiver_.url());
    receiver_.answer_next(404);
    create_run();
    EXPECT_EQ(settled().failed, 1u);
    EXPECT_EQ(receiver_.count(), 1u);
}

TEST_F(DeliveriesTest, RedirectsAreNotFollowed) {
    add(receiver_.url("/from"));
    Response response = text_response("", 307);
    response.headers.emplace_back("Location", receiver_.url("/to"));
    receiver_.answer_next(std::move(response));
    create_run();
    settled();
    ASSERT_EQ(receiver_.count(), 1u);
    EXPECT_EQ(receiver_.wait_for(1)[0].path, "/from");
}

TEST_F(DeliveriesTest, RetryAfterIsObeyedUpToALimit) {
    options_.backoff_max_ms = 1;
    reopen();
    add(receiver_.url());
    Response response = text_response("", 503);
    response.headers.emplace_back("Retry-After", "3600");
    receiver_.answer_next(std::move(response));
    create_run();
    EXPECT_EQ(settled().delivered, 1u);
}

TEST_F(DeliveriesTest, OneWebhooksDeliveriesKeepTheirOrder) {
    add(receiver_.url());
    receiver_.answer_next(500);
    std::vector<std::string> runs;
    for (int i = 0; i < 20; ++i) runs.push_back(create_run());
    const auto received = receiver_.wait_for(21);
    ASSERT_EQ(received.size(), 21u);
    for (std::size_t i = 0; i < runs.size(); ++i)
        EXPECT_EQ(Json::parse(received[i + 1].body)["data"]["run_id"], runs[i]);
}

TEST_F(DeliveriesTest, WhatWasNotSentIsSentAfterARestart) {
    reopen(false);
    add(receiver_.url(), {kRunCreated}, "k");
    for (int i = 0; i < 3; ++i) create_run();
    EXPECT_EQ(stored(), 3u);
    EXPECT_EQ(receiver_.count(), 0u);
    reopen(true);
    const auto received = receiver_.wait_for(3);
    settled();
    EXPECT_EQ(received.size(), 3u);
    reopen(true);
    settled();
    EXPECT_EQ(receiver_.count(), 3u) << "and only once";
    EXPECT_EQ(stored(), 0u);
}

TEST_F(DeliveriesTest, KeepTheirOrderOverRestartsWithinAMillisecondAndWhenTheClockIsSetBack) {
    reopen(false);
    add(receiver_.url());
    std::vector<std::string> runs;
    for (const std::int64_t now_ms : {1'700'000'000'000, 1'700'000'000'000, 1'600'000'000'000}) {
        clock_.set_now_ms(now_ms);
        for (int i = 0; i < 20; ++i) runs.push_back(create_run());
        reopen(false);
    }
    service_->start();
    const auto received = receiver_.wait_for(runs.size());
    ASSERT_EQ(received.size(), runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i)
        EXPECT_EQ(Json::parse(received[i].body)["data"]["run_id"], runs[i]) << i;
}

TEST_F(DeliveriesTest, ADeletedWebhooksDeliveriesVanish) {
    reopen(false);
    const Webhook webhook = add(receiver_.url());
    create_run();
    ASSERT_TRUE(service_->remove(webhook.webhook_id));
    service_->start();
    EXPECT_EQ(settled().dropped, 1u);
    EXPECT_EQ(receiver_.count(), 0u);
    EXPECT_EQ(stored(), 0u);
}

TEST_F(DeliveriesTest, TheQueueIsBounded) {
    reopen(false);
    constexpr std::size_t kHooks = 20;
    for (std::size_t i = 0; i < kHooks; ++i) add(receiver_.url());
    const std::size_t runs = kDeliveriesWaitingMax / kHooks + 5;
    std::vector<Command> commands;
    for (std::size_t i = 0; i < runs; ++i) commands.push_back(CreateRun{.experiment_id = 0});
    ASSERT_TRUE(store_->execute(Atomic{std::move(commands)}));
    store_->wait_for_observers();
    EXPECT_EQ(service_->stats().deliveries.waiting, kDeliveriesWaitingMax);
    EXPECT_EQ(service_->stats().overflowed, 5 * kHooks);
    EXPECT_EQ(stored(), kDeliveriesWaitingMax);
}

TEST_F(DeliveriesTest, PrivateAddressesAreRefusedWhenConnecting) {
    // The webhook was allowed when it was made, or its name had another address then: what counts
    // is the address that is connected to.
    add(receiver_.url());
    add("http://localhost:" + receiver_.url("").substr(receiver_.url("").rfind(':') + 1) + "/");
    options_.post.policy.allow_private = false;
    reopen();
    create_run();
    const DeliveryStats stats = settled();
    EXPECT_EQ(stats.refused, 2u);
    EXPECT_EQ(stats.retried, 0u) << "a refusal is never tried again";
    EXPECT_EQ(receiver_.count(), 0u);
}

TEST_F(DeliveriesTest, PlainHttpIsRefusedUnlessAllowed) {
    add(receiver_.url());
    options_.post.policy.allow_http = false;
    reopen();
    create_run();
    EXPECT_EQ(settled().refused, 1u);
    EXPECT_EQ(receiver_.count(), 0u);
}

TEST_F(DeliveriesTest, ProxiesOfTheEnvironmentAreIgnored) {
    ASSERT_EQ(::setenv("http_proxy", "http://127.0.0.1:9", 1), 0);
    ASSERT_EQ(::setenv("ALL_PROXY", "http://127.0.0.1:9", 1), 0);
    add(receiver_.url());
    create_run();
    EXPECT_EQ(settled().delivered, 1u);
    ::unsetenv("http_proxy");
    ::unsetenv("ALL_PROXY");
}

TEST_F(DeliveriesTest, AHugeAnswerIsCutOff) {
    add(receiver_.url());
    receiver_.answer_next(text_response(std::string(50u << 20, 'x')));
    create_run();
    EXPECT_EQ(settled().delivered, 1u);
}

TEST_F(DeliveriesTest, NobodyListeningIsAFailureAfterRetries) {
    std::string url;
    {
        Receiver gone;
        url = gone.url();
    }
    add(url);
    create_run();
    const DeliveryStats stats = settled();
    EXPECT_EQ(stats.failed, 1u);
    EXPECT_EQ(stats.retried, 3u);
}

}  // namespace
}  // namespace tune::tracker
