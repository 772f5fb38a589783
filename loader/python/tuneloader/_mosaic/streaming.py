"""StreamingDataset with the arguments, the sample order and the state of mosaicml-streaming 0.13.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._numbers import bytes_of, count_of
from .progress import Progress, Resume
from .samples import Array, SampleReader
from .._stream import Stream, weights_are_relative
from .._torch import IterableDataset, worker_of_rank
from .._world import World

_IDS_AT_ONCE = 4096


class StreamingDataset(Array, IterableDataset):  # type: ignore[type-arg, misc, unused-ignore]
    """Samples in the order of mosaicml-streaming, one dict each, for a torch DataLoader or a loop of one's own.

    Iterating gives this rank's samples of the next epoch, or of the rest of the epoch that a loaded state stands in; inside a
    DataLoader worker those of the worker. `dataset[i]` is sample i. Subclasses transform samples in `__getitem__` or
    `get_item`; iteration goes through both.

    Ranks are taken from RANK, WORLD_SIZE and LOCAL_WORLD_SIZE. No process group is made, no rank waits for another, and
    nothing is left in /dev/shm.

    Args:
        streams: Several data sets to be mixed, instead of `remote` and `local`.
        remote, local: Where the data set lies, and the folder for what is fetched, as of a Stream.
        split: Subfolder.
        epoch_size: Samples of an epoch, e.g. 100_000 or "100k"; None: every one once.
        batch_size: Of each rank; the DataLoader's. Needed to iterate.
        shuffle, shuffle_algo, shuffle_seed, shuffle_block_size: Of the order.
        num_canonical_nodes: Independent parts of the order.
        sampling_method, sampling_granularity: Which samples an epoch takes when it does not take all.
        partition_algo: "relaxed" or "orig".
        batching_method: "random", "stratified", "per_stream" or "device_per_stream".
        replication: Neighbouring ranks that read the same samples.
        allow_unsafe_types: Whether columns of pickles are opened.
        validate_hash: A name of a hash: shards are checked against all hashes that the index holds.
        predownload, cache_limit, download_retry, download_timeout, keep_zip: As in mosaicml-streaming; without effect on
            local data, which is read in place. The cache's limit is shared evenly among streams.
    """

    def __init__(
        self,
        *,
        streams: Sequence[Stream] | None = None,
        remote: str | None = None,
        local: str | None = None,
        split: str | None = None,
        download_retry: int = 2,
        download_timeout: float = 60,
        validate_hash: str | None = None,
        keep_zip: bool = False,
        epoch_size: int | str | None = None,
        predownload: int | None = None,
        cache_limit: int | str | None = None,
        sampling_method: str = "balanced",
        sampling_granularity: int = 1,
        partition_algo: str = "relaxed",
        num_canonical_nodes: int | None = None,
        batch_size: int | None = None,
        shuffle: bool = False,
        shuffle_algo: str = "py1e",
        shuffle_seed: int = 9176,
        shuffle_block_size: int | None = None,
        batching_method: str = "random",
        allow_unsafe_types: bool = False,
        replication: int | None = None,
        stream_name: str = "stream",
        stream_config: dict[str, Any] | None = None,
    ) -> None:
        if bool(streams) == (bool(remote) or bool(local)):
            raise ValueError("You must provide either `streams` or `remote`/`local`, but not both.")
        if stream_name != "stream" or stream_config:
            raise NotImplementedError(
                "stream_name and stream_config name a class in mosaicml-streaming's registry, which is not there; "
                "make the streams yourself and pass them as streams=[...]"
            )
        self.predownload = predownload if predownload is not None else 8 * batch_size if batch_size else 64
        self.cache_limit = None if cache_limit is None else bytes_of(cache_limit)
        self.sampling_method = sampling_method
        self.sampling_granularity = sampling_granularity
        self.partition_algo = partition_algo
        self.num_canonical_nodes = num_canonical_nodes
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.shuffle_algo = shuffle_algo
        self.shuffle_seed = shuffle_seed
        self.shuffle_block_size = shuffle_block_size
        self.batching_method = batching_method
        self.allow_unsafe_types = allow_unsafe_types
        self.replication = replication
        self.initial_physical_nodes: int | None = None
        self.streams = list(streams) if streams else [Stream(remote=remote, local=local, split=split)]
        self._split = split
        self._download = {"download_retry": download_retry, "download_timeout": download_timeout, "keep_zip": keep_zip}
        self._validates = validate_hash is not None or any(stream.validate_hash for stream in self.streams)
        self._wanted_epoch_size = count_of(epoch_size) if epoch_size else None
        if self._wanted_epoch_size and any(stream._weight for stream in self.streams):
            if not weights_are_relative(self.streams):
                raise ValueError("epoch_size goes with streams that have proportions, or no weights at all")
        self._world = World.detect()
        self._ranks, self._nodes = self._world.replicate(replication or 1)
        self._progress = Progress()
        self._open()

    def _open(self) -> None:
        # The number of canonical nodes is given with each epoch's state: one that this world cannot begin with may be right
        # for a run that began in another.
        options = {
            "streams": [stream.options(self._split) for stream in self.streams],
            "batch_size": self.batch_size or 1,
            "shuffle": self.shuffle,
            "shuffle_algo": self.shuffle_algo,
            "seed": self.shuffle_seed,
            "shuffle_block_size": self.shuffle_block_size,
            "epoch_size": self._wanted_epoch_size,
            "sampling_method": self.sampling_method,
            "sampling_granularity": self.sampling_granularity,
            "batching_method": self.batching_method,
            "partition_algo": self.partition_algo,
            "rank": self._world.rank,
            "world_size": self._world.num_ranks,
            "ranks_per_node": self._world.ranks_per_node,
            "replication": self.replication or 1,
            "verify_hashes": self._validates,
            "cache_limit": self.cache_limit,
            "predownload": self.predownload,
            "download_retry": self._of_streams("download_retry"),
            "download_timeout": self._of_streams("download_timeout"),
            "keep_zip": self._of_streams("keep_zip"),
        }
        self._samples = SampleReader(
            {name: value for name, value in options.items() if value is not None}, self.allow_unsafe_types
        )

    def _of_streams(self, name: str) -> Any:
        """The setting of the first stream that has it, else of the data set."""
        given = [getattr(stream, name) for stream in self.streams if getattr(stream, name) is not None]
        return given[0] if given else self._download[name]

    def _canonical_nodes(self) -> int:
        if self.num_canonical_nodes:
            return self.num_canonical_nodes
        return 64 * self._nodes if self.shuffle_algo in ("py1s", "py2s") else self._nodes

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_samples": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    @property
    def num_samples(self) -> int:
        """Samples stored in all streams."""
        return self._samples.count

    @property
    def size(self) -> int:
        """Samples stored in all streams."""
        return self._samples.count

    @property
    def epoch_size(self) -> int:
        """Samples that all ranks together read in an epoch."""
        return self._samples.reader.epoch_size

    @property
    def next_epoch(self) -> int:
        """The epoch that the next iteration reads, if no state is loaded."""
        return self._progress.next_epoch

    def __len__(self) -> int:
        """Samples of an epoch of this rank."""
        return -(-self.epoch_size // self._ranks)

    def get_item(self, sample_id: int, retry: int = 7) -> Any:
        """The sample with this number: a dict by column. `retry` has no effect on local data."""
        return self._samples.sample(sample_id)

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self.batch_size, int):
            raise ValueError(
                "Please pass `batch_size` to StreamingDataset: the same as to the DataLoader. The order depends on it."
            )
        worker, workers = worker_of_rank()
        epoch, sample_in_epoch = self._resume(self._progress.presumed_epoch(worker, workers))
        self._progress.begin(worker, workers, epoch)
        self._samples.reader.load_state(self._state(epoch, sample_in_epoch, self.initial_physical_nodes))
        ids = self._samples.reader.remaining_ids(worker, max(workers, 1))
        for begin in range(0, len(ids), _IDS_AT_ONCE):
            for sample_id in ids[begin : begin + _IDS_AT_ONCE].tolist():
                yield self[sample_id]

    def _resume(self, presumed_epoch: int) -> tuple[int, int]:
        """(epoch, sample in it) to begin with: the loaded state's, unless it is of an epoch that has passed."""
        resume = self._progress.resume
        if resume is None or resume.epoch < presumed_epoch:
            self.num_canonical_nodes = self._canonical_nodes()
            return presumed_epoch, 0
        self.num_canonical_nodes = resume.num_canonical_nodes
        self.shuffle_seed = resume.shuffle_seed
        self.initial_physical_nodes = resume.initial_physical_nodes
        return resume.epoch, resume.sample_in_epoch

    def _state(self, epoch: int, sample_in_epoch: int, initial_physical_nodes: int | None) -> dict[str, Any]:
        return {
            "epoch": epoch,
            "sample_in_epoch": sample_in_epoch,
            "num_canonical_nodes": self.num_canonical_nodes,
            "shuffle_seed": self.shuffle_seed,
            "initial_physical_nodes": initial_physical_nodes,
        }

    def state_dict(self, num_samples: int, from_beginning: bool) -> dict[str, Any]:
        """The position after `num_samples` samples of all ranks, counted from the beginning of the epoch or from where this
        run resumed."""
        epoch, offset = self._resume(self.next_epoch - 1)
        sample_in_epoch = num_samples if from_beginning else offset + num_samples
        initial = self._nodes if self.initial_physical_nodes is None else self.initial_physical_nodes
        return self._state(epoch, sample_in_epoch, initial)

    def load_state_dict(self, obj: dict[str, Any]) -> None:
        """The next iteration resumes from `obj`, in this process and in DataLoader workers, also ones that run already."""
        self._progress.resume = Resume(
            obj["epoch"],
            obj["sample_in_epoch"],
            obj["num_canonical_nodes"],
            obj["shuffle_seed"],
            obj.get("initial_physical_nodes"),
        )
