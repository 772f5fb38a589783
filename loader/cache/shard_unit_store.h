#pragma once
// Shards of MDS on the way from a cache to their readers. Internal to the loader.

#include <memory>
#include <utility>

#include "loader/cache/unit_store.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

/// A unit is a shard of the store.
class ShardUnitStore final : public UnitStore {
public:
    explicit ShardUnitStore(std::shared_ptr<ShardStore> store) : store_(std::move(store)) {}

    [[nodiscard]] Result<Put> open_file(std::size_t unit,
                                        const std::filesystem::path& path) const override {
        TUNE_TRY(shard, store_->map_file(unit, path));
        return putting(unit, std::move(shard));
    }
    [[nodiscard]] Result<Put> open_bytes(std::size_t unit, OwnedBytes raw) const override {
        TUNE_TRY(shard, store_->view(unit, std::move(raw)));
        return putting(unit, std::move(shard));
    }
    [[nodiscard]] Result<OwnedBytes> unpack(std::size_t unit, OwnedBytes fetched) const override {
        return store_->unpack(unit, std::move(fetched));
    }
    void fail(std::size_t unit, Error error) override { store_->fail(unit, std::move(error)); }
    void drop(std::size_t unit) override { store_->drop(unit); }

private:
    [[nodiscard]] Put putting(std::size_t unit, std::shared_ptr<const Shard> shard) const {
        return [store = store_, unit, shard = std::move(shard)](bool stays) {
            store->put(unit, shard, stays);
        };
    }

    const std::shared_ptr<ShardStore> store_;
};

}  // namespace tune::loader
