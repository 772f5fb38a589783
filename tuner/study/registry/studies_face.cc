// The public face of Studies: calls about whole studies are forwarded to the part that they
// concern, so that callers know none of these; what clients and agents call are parts of their own.

#include "tuner/study/registry/studies.h"

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {

Studies::Studies(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Studies::~Studies() = default;

Result<std::unique_ptr<Studies>> Studies::open(StudiesOptions options) {
    TUNE_CHECK(options.store != nullptr, "Studies needs a store");
    auto impl = std::make_unique<Impl>(std::move(options));
    TUNE_TRY_VOID(impl->load());
    impl->observe_store();
    impl->prepare_large();
    impl->start_ticker();
    return std::unique_ptr<Studies>(new Studies(std::move(impl)));
}

void Studies::warm_up() {
    impl_->warm_up();
}
void Studies::drain() {
    impl_->drain();
}
void Studies::stop() {
    impl_->stop();
}
void Studies::create(StudyConfig config, CreateOptions options, Done<Created> done) {
    impl_->creation_.create(std::move(config), options, std::move(done));
}
void Studies::replay(const std::string& study, Done<ReplayReport> done) const {
    impl_->replays_.replay(study, std::move(done));
}
void Studies::change(const std::string& study, Change change, Done<void> done) {
    impl_->lifecycle_.change(study, change, std::move(done));
}
void Studies::set_priority(const std::string& study, int priority, Done<void> done) {
    impl_->lifecycle_.set_priority(study, priority, std::move(done));
}
void Studies::set_quota(Quota quota, Done<void> done) {
    impl_->broker_.turns.set_quota(std::move(quota), std::move(done));
}
void Studies::remove_quota(const std::string& user, Done<void> done, const Recording& record) {
    impl_->broker_.turns.remove_quota(user, std::move(done), record);
}
void Studies::rename(const std::string& study, const std::string& new_name, Done<void> done,
                     const Recording& record) {
    impl_->lifecycle_.rename(study, new_name, std::move(done), record);
}
void Studies::erase(const std::string& study, Done<void> done, const Recording& record) {
    impl_->lifecycle_.erase(study, std::move(done), record);
}
void Studies::restore(const std::string& study, Done<void> done, const Recording& record) {
    impl_->lifecycle_.restore(study, std::move(done), record);
}
void Studies::take_in(tracker::PutDocument study, tracker::DeleteDocument note, Done<void> done) {
    impl_->lifecycle_.take_in(std::move(study), std::move(note), std::move(done));
}
Result<void> Studies::read(std::string_view study,
                           const std::function<void(const Study&)>& read) const {
    return impl_->read(study, read);
}
std::optional<std::int64_t> Studies::experiment_of(const std::string& name, bool or_erased) const {
    return impl_->experiment_of(name, or_erased);
}
void Studies::read_all(const std::function<void(const Study&)>& read) const {
    impl_->read_all(read);
}
void Studies::wait(const std::string& study, std::int64_t version, std::int64_t wait_ms,
                   Done<void> done) {
    impl_->wait(study, version, wait_ms, std::move(done));
}
ClientTrials& Studies::clients() {
    return impl_->clients_;
}
AgentCalls& Studies::agents() {
    return impl_->broker_.calls;
}
QueueView Studies::queue(std::size_t agents_max) {
    return impl_->broker_.queue.view(agents_max);
}
const AttemptCredentials& Studies::credentials() const {
    return impl_->credentials_;
}
void Studies::tick() {
    impl_->tick();
}
std::size_t Studies::retired_count() const {
    return impl_->retired_count();
}

}  // namespace tune::tuner
