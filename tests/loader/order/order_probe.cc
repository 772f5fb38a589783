// Prints the ids of whole epochs, one line each: what the contract test compares with the live
// mosaicml-streaming. Arguments: directory, algorithm, seed, block size, canonical nodes, epoch
// size (0: each sample once), epochs.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "loader/dataset.h"

int main(int argc, char** argv) {
    using namespace tune::loader;
    if (argc != 8) return 2;
    DatasetOptions options;
    options.directory = argv[1];
    options.batch_size = 4;
    options.shuffle = true;
    options.shuffle_algo = shuffle_algo_from_name(argv[2]).value();
    options.seed = std::stoull(argv[3]);
    options.shuffle_block_size = std::stoll(argv[4]);
    options.num_canonical_nodes = std::stoll(argv[5]);
    options.epoch_size = std::stoll(argv[6]);
    const auto dataset = Dataset::open(options);
    if (!dataset) {
        std::fprintf(stderr, "%s\n", dataset.error().text().c_str());
        return 1;
    }
    for (int epoch = 0; epoch < std::stoi(argv[7]); ++epoch) {
        Batch batch;
        while (true) {
            const auto more = (*dataset)->next(batch);
            if (!more) return 1;
            if (!*more) break;
            for (const std::int64_t id : batch.sample_ids)
                std::printf("%lld ", static_cast<long long>(id));
        }
        std::printf("\n");
    }
    return 0;
}
