// A request to the rendezvous of Horovod's processes. Properties: a request that is whole stays the
// same whatever follows it, one that is not becomes no other by waiting, and what is answered lies
// within the bytes and the bounds.

#include "tests/fuzz/fuzz.h"
#include "worker/agent/supervisor/rendezvous_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::worker;
    constexpr std::string_view kPrefix = "/r-1:20095/";
    const std::string_view text = tune::fuzz::text_of(data, size);
    const auto is_within = [&](std::string_view part) {
        return part.empty() ||
               (part.data() >= text.data() && part.data() + part.size() <= text.data() + size);
    };
    const RendezvousRequest whole = read_rendezvous_request(text, kPrefix);
    FUZZ_CHECK(whole.is_whole || size < kRendezvousHeadMax + kRendezvousValueMax);
    if (whole.is_whole && whole.refusal == 0) {
        FUZZ_CHECK(is_within(whole.scope) && is_within(whole.key) && is_within(whole.value));
        FUZZ_CHECK(!whole.scope.empty() && !whole.key.empty());
        FUZZ_CHECK(whole.value.size() <= kRendezvousValueMax);
    }
    for (std::size_t some = 0; some < size; some += size / 16 + 1) {
        const RendezvousRequest part = read_rendezvous_request(text.substr(0, some), kPrefix);
        if (!part.is_whole) continue;
        FUZZ_CHECK(whole.is_whole && part.refusal == whole.refusal);
        FUZZ_CHECK(part.key == whole.key && part.value == whole.value);
    }
    return 0;
}
