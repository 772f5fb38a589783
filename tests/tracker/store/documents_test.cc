#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using DocumentsTest = StoreTest;

TEST_F(DocumentsTest, ArePutReplacedListedAndDeleted) {
    run(PutDocument{"studies", "b/1", "{\"v\": 1}"});
    run(PutDocument{"studies", "b/2", "2"});
    run(PutDocument{"studies", "a", "3"});
    run(PutDocument{"other", "b/3", "4"});
    run(PutDocument{"studies", "b/1", "5"});
    const auto listed = [&](const std::string& prefix) {
        std::string out;
        const auto found = store_->list_documents("studies", prefix);
        for (const Document& one : *found) out += one.key + "=" + one.json_text + " ";
        return out;
    };
    EXPECT_EQ(listed(""), "a=3 b/1=5 b/2=2 ");
    EXPECT_EQ(listed("b/"), "b/1=5 b/2=2 ");
    EXPECT_EQ(listed("c"), "");
    EXPECT_EQ((*store_->get_document("studies", "a"))->json_text, "3");
    EXPECT_FALSE(store_->get_document("studies", "x")->has_value());
    run(DeleteDocument{"studies", "a"});
    run(DeleteDocument{"studies", "a"});
    reopen();
    EXPECT_EQ(listed(""), "b/1=5 b/2=2 ");
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<DocumentPut>().size(), 5u);
    EXPECT_EQ(observer_.of<DocumentDeleted>().size(), 1u);
}

}  // namespace
}  // namespace tune::tracker
