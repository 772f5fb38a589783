#pragma once
// What observers get about the model registry.

#include <cstdint>
#include <string>
#include <vector>

#include "tracker/store/types.h"

namespace tune::tracker {

enum class RegistryEntity { kModel, kModelTag, kVersion, kVersionTag, kAlias };

/// Set: a tag was given a value, also the one it had. Created, of an alias: it points to `version`
/// now. Updated: description, stage or name.
enum class RegistryAction { kCreated, kUpdated, kSet, kDeleted };

/// One change. Fields that say nothing about it are empty. Tags that were deleted without being
/// there make no event; neither do versions that go with their model.
struct RegistryChanged {
    RegistryEntity entity = RegistryEntity::kModel;
    RegistryAction action = RegistryAction::kCreated;
    /// The registered model is a prompt; of a created model or version: its own tags say so.
    bool is_prompt = false;
    std::string name = {};
    std::string old_name = {};     // a renamed model's
    std::int64_t version = 0;      // versions, their tags, and a created alias
    std::string alias = {};        // aliases
    std::string key = {};          // tags
    std::string value = {};        // tags that were set
    std::string description = {};  // of a created or updated model or version
    std::string source = {};       // of a created version, as stored
    std::string run_id = {};       // of a created version; empty: none
    std::string stage = {};        // of an updated version
    std::vector<Tag> tags = {};    // of a created model or version; each key once, last value
};

}  // namespace tune::tracker
