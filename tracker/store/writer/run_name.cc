#include "tracker/store/writer/run_name.h"

#include <array>
#include <string_view>

namespace tune::tracker {
namespace {

// The words of mlflow/utils/name_utils.py (3.17.2), so that generated names look alike.
constexpr std::array<std::string_view, 159> kAdjectives = {
    "abundant",    "able",         "abrasive",   "adorable",    "adaptable",   "adventurous",
    "aged",        "agreeable",    "ambitious",  "amazing",     "amusing",     "angry",
    "auspicious",  "awesome",      "bald",       "beautiful",   "bemused",     "bedecked",
    "big",         "bittersweet",  "blushing",   "bold",        "bouncy",      "brawny",
    "bright",      "burly",        "bustling",   "calm",        "capable",     "carefree",
    "capricious",  "caring",       "casual",     "charming",    "chill",       "classy",
    "clean",       "clumsy",       "colorful",   "crawling",    "dapper",      "debonair",
    "dashing",     "defiant",      "delicate",   "delightful",  "dazzling",    "efficient",
    "enchanting",  "entertaining", "enthused",   "exultant",    "fearless",    "flawless",
    "fortunate",   "fun",          "funny",      "gaudy",       "gentle",      "gifted",
    "glamorous",   "grandiose",    "gregarious", "handsome",    "hilarious",   "honorable",
    "illustrious", "incongruous",  "indecisive", "industrious", "intelligent", "inquisitive",
    "intrigued",   "invincible",   "judicious",  "kindly",      "languid",     "learned",
    "legendary",   "likeable",     "loud",       "luminous",    "luxuriant",   "lyrical",
    "magnificent", "marvelous",    "masked",     "melodic",     "merciful",    "mercurial",
    "monumental",  "mysterious",   "nebulous",   "nervous",     "nimble",      "nosy",
    "omniscient",  "orderly",      "overjoyed",  "peaceful",    "painted",     "persistent",
    "placid",      "polite",       "popular",    "powerful",    "puzzled",     "rambunctious",
    "rare",        "rebellious",   "respected",  "resilient",   "righteous",   "receptive",
    "redolent",    "resilient",    "rogue",      "rumbling",    "salty",       "sassy",
    "secretive",   "selective",    "sedate",     "serious",     "shivering",   "skillful",
    "sincere",     "skittish",     "silent",     "smiling",     "sneaky",      "sophisticated",
    "spiffy",      "stately",      "suave",      "stylish",     "tasteful",    "thoughtful",
    "thundering",  "traveling",    "treasured",  "trusting",    "unequaled",   "upset",
    "unique",      "unleashed",    "useful",     "upbeat",      "unruly",      "valuable",
    "vaunted",     "victorious",   "welcoming",  "whimsical",   "wistful",     "wise",
    "worried",     "youthful",     "zealous"};

constexpr std::array<std::string_view, 123> kNouns = {
    "ant",     "ape",    "asp",    "auk",     "bass",   "bat",   "bear",     "bee",   "bird",
    "boar",    "bug",    "calf",   "carp",    "cat",    "chimp", "cod",      "colt",  "conch",
    "cow",     "crab",   "crane",  "croc",    "crow",   "cub",   "deer",     "doe",   "dog",
    "dolphin", "donkey", "dove",   "duck",    "eel",    "elk",   "fawn",     "finch", "fish",
    "flea",    "fly",    "foal",   "fowl",    "fox",    "frog",  "gnat",     "gnu",   "goat",
    "goose",   "grouse", "grub",   "gull",    "hare",   "hawk",  "hen",      "hog",   "horse",
    "hound",   "jay",    "kit",    "kite",    "koi",    "lamb",  "lark",     "loon",  "lynx",
    "mare",    "midge",  "mink",   "mole",    "moose",  "moth",  "mouse",    "mule",  "newt",
    "owl",     "ox",     "panda",  "penguin", "perch",  "pig",   "pug",      "quail", "ram",
    "rat",     "ray",    "robin",  "roo",     "rook",   "seal",  "shad",     "shark", "sheep",
    "shoat",   "shrew",  "shrike", "shrimp",  "skink",  "skunk", "sloth",    "slug",  "smelt",
    "snail",   "snake",  "snipe",  "sow",     "sponge", "squid", "squirrel", "stag",  "steed",
    "stoat",   "stork",  "swan",   "tern",    "toad",   "trout", "turtle",   "vole",  "wasp",
    "whale",   "wolf",   "worm",   "wren",    "yak",    "zebra"};

constexpr std::size_t kNameCharsMax = 20;
constexpr int kTries = 10;
constexpr std::uint64_t kNumberMax = 1000;

/// splitmix64: names must differ, not be unpredictable.
std::uint64_t next(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

}  // namespace

std::string generate_name(std::uint64_t& state) {
    std::string name;
    for (int i = 0; i < kTries; ++i) {
        name = kAdjectives[next(state) % kAdjectives.size()];
        name += '-';
        name += kNouns[next(state) % kNouns.size()];
        name += '-';
        name += std::to_string(next(state) % (kNumberMax + 1));
        if (name.size() <= kNameCharsMax) return name;
    }
    return name.substr(0, kNameCharsMax);
}

}  // namespace tune::tracker
