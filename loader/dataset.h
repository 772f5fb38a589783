#pragma once
// The public face of the loader: batches of a data set in a fixed, resumable order.
//
//     TUNE_TRY(dataset, Dataset::open({.directory = "digits/train", .batch_size = 32,
//                                      .shuffle = true}));
//     Batch batch;
//     for (int epoch = 0; epoch < 10; ++epoch)
//         while (true) {
//             TUNE_TRY(more, dataset->next(batch));
//             if (!more) break;                       // the epoch is over
//             const Column* image = batch.column("image");
//             // image->data: [batch.count, image->shape...], C order
//         }

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loader/decode/column_transforms.h"
#include "loader/format/dtype.h"
#include "loader/order/epoch.h"
#include "loader/order/shuffle.h"
#include "loader/rows/filter.h"
#include "loader/stage_stats.h"

namespace tune::loader {

/// Which part of each global batch this process reads. A global batch is batch_size * size samples.
struct World {
    std::int64_t rank = 0;
    std::int64_t size = 1;
    /// Ranks on one machine; 0 means all of them.
    std::int64_t ranks_per_node = 0;
    /// Neighbouring ranks that are given the same samples, for tensor or sequence parallelism.
    std::int64_t replication = 1;
    /// Of `workers` processes that share this rank's batches: every `workers`th batch is read here.
    std::int64_t worker = 0;
    std::int64_t workers = 1;
};

/// One of several data sets that are read as one. Their columns must be the same.
struct StreamOptions {
    /// As in DatasetOptions. Either all streams of a data set are read through a cache or none is.
    std::filesystem::path directory = {};
    std::string split = {};
    std::string remote = {};
    std::filesystem::path local = {};
    StreamWeight weight = {};
};

/// mosaic: an order of mosaicml-streaming, held in memory. lazy: our own (order/lazy_order.h), in
/// O(1) memory, for sets of any size; it reads each sample once an epoch.
enum class OrderKind { kMosaic, kLazy };

/// relaxed: a run may go on with any number of machines that keeps the global batch; orig: only
/// with one that divides the canonical nodes, or is divided by them.
enum class PartitionAlgo { kRelaxed, kOrig };

/// What is checked when a shard is opened for the first time (sizes and structure always are).
enum class Verify {
    kStructure,  ///< sizes, offsets
    kHashes,     ///< also every hash that the index holds (xxh3_64: about 10 GB/s, sha1: 1.3 GB/s)
};

/// What a missing value (null) of a table becomes. MDS has none.
enum class Nulls {
    kRefuse,  ///< an error that names file and row
    kMask,    ///< zeros or an empty payload, and a 0 in Column::valid
    kFill,    ///< ColumnOptions::fill
};

/// How one column is given out, where that differs from how it is stored.
struct ColumnOptions {
    std::string name = {};
    /// Element type of the batches; nothing: the stored one. A type that cannot hold every stored
    /// value (int64 as float32, float64 as int32) is refused unless `allows_narrowing`; integers
    /// out of range are then clamped, fractions cut off, and NaN becomes 0.
    std::optional<Dtype> dtype = {};
    bool allows_narrowing = false;
    /// For lists and Petastorm's arrays that all have this shape though the file does not say so:
    /// the column is then fixed, and a row of another size is an error. Every number >= 1.
    std::vector<std::int64_t> shape = {};
    Nulls nulls = Nulls::kRefuse;
    /// For kFill: a number, or the text or bytes themselves.
    std::string fill = {};
    /// Stored images as pixels of one size, or values of varying length as rows of one.
    std::optional<ImageOptions> image = {};
    std::optional<PadOptions> pad = {};
};

/// Memory of batches that the consumer supplies, e.g. pinned for copies to a GPU. Thread-safe;
/// lives as long as the last batch.
class BatchMemory {
public:
    static constexpr std::size_t kAlignment = 64;

    virtual ~BatchMemory() = default;
    /// At least `bytes` bytes at a multiple of kAlignment, or nullptr.
    [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
    /// What allocate() gave; on any thread.
    virtual void release(void* memory) = 0;
};

struct DatasetOptions {
    /// Holds the data set, or is its one file; `split`, when given, is a subdirectory of it.
    std::filesystem::path directory = {};
    std::string split = {};
    /// "mds" (also index.json of json, csv and tsv shards), "parquet", "delta", "jsonl", "csv",
    /// "tsv", "webdataset" or "images"; empty: what the directory holds.
    std::string format = {};
    /// Instead of a directory: several data sets, mixed by their weights.
    std::vector<StreamOptions> streams = {};

    /// Instead of a directory, as in StreamingDataset: where the data set lies, of any format (see
    /// loader/source/open_source.h for the kinds of URLs), and the folder in which what was fetched
    /// is kept for later epochs, other trials and other processes: MDS shards, columns of row
    /// groups, blocks of text files and archives, images. A `remote` on this machine is read where
    /// it is, unless there is a `local`.
    std::string remote = {};
    std::filesystem::path local = {};
    /// Bytes that `local` may hold, shared evenly among streams; what is needed last goes first. 0:
    /// no limit.
    std::uint64_t cache_limit = 0;
    /// Keeps compressed files beside the decompressed ones.
    bool keep_zip = false;
    /// Of data that is read once, nothing is kept: every read goes to `remote`, and waits for it.
    /// MDS keeps its shards all the same.
    bool reads_once = false;
    /// Attempts after the first one, and seconds without a byte that end an attempt.
    int download_retry = 5;
    double download_timeout_s = 60;
    /// Requests at once.
    int download_connections = 16;

    /// Samples of a batch of this rank, > 0.
    std::int64_t batch_size = 1;
    /// Leaves out a last batch that is not full.
    bool drop_last = false;
    /// Columns to read, by name; none given: all. Batches hold them in the order of the index
    /// (sorted by name).
    std::vector<std::string> columns = {};
    /// For columns that are not given out as they are stored.
    std::vector<ColumnOptions> column_options = {};
    /// What nulls become in columns that column_options does not name.
    Nulls nulls = Nulls::kRefuse;
    std::string fill = {};
    /// Parquet and Delta only: the rows that are read. See loader/rows/filter.h.
    Filters filters = {};
    /// Delta only: a version of the table, or its state at a time ("2026-01-31T12:00:00Z");
    /// neither: the newest version.
    std::optional<std::int64_t> version = {};
    std::string timestamp = {};

    OrderKind order = OrderKind::kMosaic;
    bool shuffle = false;
    ShuffleAlgo shuffle_algo = ShuffleAlgo::kPy1e;
    std::uint64_t seed = 9176;
    /// 0: the number of machines of the first run, 64 times that for py1s and py2s.
    std::int64_t num_canonical_nodes = 0;
    /// Samples; 0: max(4,000,000 / num_canonical_nodes, 262,144), but for tables no more than half
    /// of decompressed_bytes_max holds, so that a row group is decoded once an epoch.
    std::int64_t shuffle_block_size = 0;
    /// Samples drawn for an epoch; 0: each sample once. With another number the choice is balanced
    /// over the shards and, when shuffling, differs from epoch to epoch.
    std::int64_t epoch_size = 0;
    SamplingMethod sampling = SamplingMethod::kBalanced;
    /// Samples drawn from a shard at a time when an epoch takes only a part of it.
    std::int64_t sampling_granularity = 1;
    BatchingMethod batching = BatchingMethod::kRandom;
    PartitionAlgo partition = PartitionAlgo::kRelaxed;

    World world = {};

    /// Threads that decode ahead of the consumer; 0: next() does the work itself. The order of
    /// samples never depends on this.
    int threads = 2;
    /// Samples decoded ahead, at most; 0: 8 batches, or one for
    /// each thread and one more where that is more. Memory: this many decoded samples, and one
    /// more batch for each Batch the consumer holds. With `remote`, also the samples after those
    /// that are read whose shards are fetched ahead; 0: as many as keep the connections busy.
    std::int64_t predownload = 0;
    /// A consumer that holds every batch there is room for is given another one; otherwise that is
    /// an error. For consumers whose batches live as long as somebody refers to them.
    bool adds_batches = false;

    /// Images that are decoded whole are shared with all processes of this machine that read the
    /// same data, in a file of this folder (/dev/shm: memory), of at most so many bytes; what finds
    /// no room is decoded by each. Pixels are those of ImageOptions::decodes_scaled = false.
    std::filesystem::path decoded_cache = {};
    std::uint64_t decoded_cache_limit = 0;

    /// Where batches lie; nullptr: the process's own memory.
    std::shared_ptr<BatchMemory> memory = {};

    Verify verify = Verify::kHashes;
    /// Compressed shards, and those of tables (row groups, text files), are held decompressed in
    /// memory; least recently used ones are dropped beyond this.
    std::size_t decompressed_bytes_max = std::size_t{2} << 30;
};

/// What a column of a data set holds.
struct ColumnInfo {
    std::string name;
    /// As in the index of MDS, e.g. "ndarray:uint8:8,8", "int", "str"; or, of a table,
    /// "list:float32".
    std::string encoding;
    /// True: every sample is `dtype` elements of `shape` (a scalar has an empty shape). False: the
    /// payload is a run of bytes, a different number for each sample (str, bytes, json, jpeg, ...);
    /// dtype is then kUint8 and shape empty. loader/format/mds/encoding.h decodes such payloads.
    /// A "list:" is a run of elements of `dtype` (each of `shape`, when that is not empty).
    bool fixed = true;
    Dtype dtype = Dtype::kUint8;
    std::vector<std::int64_t> shape = {};
    /// Bytes of one sample when fixed, else 0.
    std::size_t sample_bytes = 0;
    /// The stored type where it is another: "int8", "timestamp[us]", "decimal128(10, 2)".
    std::string stored = {};
    /// Batches have Column::valid.
    bool has_mask = false;
};

/// One column of one batch. Pointers are valid while the Batch holds its slot.
struct Column {
    const ColumnInfo* info = nullptr;
    /// Fixed: [count, shape...] in C order, 64-byte aligned. Variable: the payloads one after the
    /// other.
    const std::byte* data = nullptr;
    /// Variable only: count + 1 positions in `data`; payload i is data[offsets[i] .. offsets[i+1]).
    const std::uint64_t* offsets = nullptr;
    /// With ColumnInfo::has_mask: count bytes, 1 for a value and 0 for a null.
    const std::uint8_t* valid = nullptr;

    /// The bytes of sample `i` of the batch.
    [[nodiscard]] std::span<const std::byte> sample(std::size_t i) const;
    [[nodiscard]] std::string_view text(std::size_t i) const;
};

/// What was moved over the network.
struct FetchStats {
    std::uint64_t bytes = 0;
    std::uint64_t shards = 0;          ///< whole ones; of other formats, what is kept as one
    std::uint64_t ranged_batches = 0;  ///< read sample by sample, before their shards came
    std::uint64_t waited_shards = 0;   ///< fetched by another process meanwhile
};

class BatchSlot;

/// A batch in a slot that the data set reuses. Move-only. The slot goes back when the Batch is
/// given to next() again, reset or destroyed; a Batch may outlive its Dataset.
class Batch {
public:
    Batch() = default;
    /// What is moved from is empty.
    Batch(Batch&& other) noexcept;
    Batch& operator=(Batch&& other) noexcept;

    /// Samples; 0 when empty.
    std::size_t count = 0;
    std::vector<Column> columns = {};
    /// Index of each sample in the data set, in the order of the shards.
    std::span<const std::int64_t> sample_ids = {};
    std::int64_t epoch = 0;
    /// The column with this name, or nullptr.
    [[nodiscard]] const Column* column(std::string_view name) const;
    /// Gives the slot back; pointers into it are invalid from here on.
    void reset();

private:
    friend class Dataset;
    std::shared_ptr<BatchSlot> slot_;
};

/// Where a data set stands, exact to a sample, independent of threads, batch size and the number of
/// ranks (as long as whole global batches were read). The first five fields are those of
/// mosaicml-streaming's state_dict, which from_json accepts.
struct DatasetState {
    std::int64_t epoch = 0;
    /// Samples of the epoch that all ranks together have been given.
    std::int64_t sample_in_epoch = 0;
    std::int64_t num_canonical_nodes = 1;
    std::uint64_t shuffle_seed = 9176;
    std::int64_t initial_physical_nodes = 1;
    /// Everything else that decides the order, e.g. "mosaic-v1 shuffle=py1e block=262144 ...";
    /// empty in a state of mosaicml-streaming.
    std::string order = {};
    /// Of the shards' names, sizes, sample counts and columns; empty in a state of
    /// mosaicml-streaming.
    std::string index_digest = {};

    [[nodiscard]] Json to_json() const;
    /// Errors: kInvalidParameterValue naming the field.
    [[nodiscard]] static Result<DatasetState> from_json(const Json& json);
};

/// A data set being read by one consumer thread. Owns its background threads; destruction stops
/// them.
class Dataset {
public:
    /// Reads and checks the index (shards are opened when first needed). Errors:
    /// kResourceDoesNotExist when there is no index.json, kDataLoss when the index is damaged,
    /// kInvalidParameterValue for options out of range or a column that does not exist,
    /// kNotImplemented for a format or compression that this build cannot read. Cost: O(shards),
    /// and the order of the first epoch is begun on a background thread.
    [[nodiscard]] static Result<std::unique_ptr<Dataset>> open(DatasetOptions options);
    ~Dataset();

    /// The next batch of the current epoch into `batch` (what it held before is given back first).
    /// False: the epoch is over; the call after that begins the next one. Waits for the decoding
    /// threads when they are behind. Errors: kDataLoss naming the shard (truncated, wrong size or
    /// hash, offsets out of order), kResourceExhausted when the consumer holds every slot in other
    /// Batches; after an error the data set stands where it stood, and next() tries again.
    [[nodiscard]] Result<bool> next(Batch& batch);

    /// Waits until next() would return at once, at most for `time`. False: it would still wait.
    [[nodiscard]] bool wait_next(std::chrono::milliseconds time);

    /// Reads the samples `ids`, in that order, whatever next() stands at. Errors:
    /// kInvalidParameterValue for an id out of range; kInvalidState for data that is fetched, when
    /// threads decode ahead (they have the supply); as next(). Any thread may call it.
    [[nodiscard]] Result<void> read(std::span<const std::int64_t> ids, Batch& batch) const;
    /// read() will be called for each of these samples, one by one, in this order: data that is
    /// fetched is then fetched ahead. Others may be read between.
    void expect_reads(std::vector<std::int64_t> ids);

    /// The samples that next() will give in what is left of this epoch, in order, if it is worker
    /// `worker` of `workers` that asks. Cost: that of an epoch's order.
    [[nodiscard]] Result<std::vector<std::int64_t>> remaining_ids(std::int64_t worker,
                                                                  std::int64_t workers) const;
    /// What a data set with `remote` fetched so far; zeros for another.
    [[nodiscard]] FetchStats fetch_stats() const;
    /// Where the time went so far. Any thread may call it.
    [[nodiscard]] StageStats stage_stats() const;

    /// Columns that batches hold, in their order.
    [[nodiscard]] const std::vector<ColumnInfo>& columns() const;
    /// Samples stored (each counted once).
    [[nodiscard]] std::int64_t sample_count() const;
    /// Samples that all ranks together read in an epoch, without the repeats that even ranks out.
    [[nodiscard]] std::int64_t epoch_size() const;
    /// Batches this rank is given in a whole epoch; 0 when next() would fail. Cost: O(1) for
    /// batching random, else that of an epoch's order.
    [[nodiscard]] std::int64_t batches_per_epoch() const;
    /// The epoch that the next call of next() reads from.
    [[nodiscard]] std::int64_t epoch() const;

    /// The position after the last batch that next() gave out: resuming from it gives the batch
    /// that would have come next.
    [[nodiscard]] DatasetState state() const;
    /// Continues from `state`. The number of canonical nodes and the seed come from the state.
    /// Errors: kInvalidParameterValue, in a sentence that names both sides, when the state was
    /// saved for other data or another order; nothing has changed then.
    [[nodiscard]] Result<void> load_state(const DatasetState& state);
    /// Goes to the beginning of `epoch` (>= 0), e.g. to leave the rest of an epoch out.
    void start_epoch(std::int64_t epoch);

private:
    class Impl;
    explicit Dataset(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tune::loader
