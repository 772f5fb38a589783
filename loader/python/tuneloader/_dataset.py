"""Dataset: batches of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from ._core import Reader
from ._stream import _is_local, _path

if TYPE_CHECKING:
    from ._memory.held_set import HeldSet
    from ._stream import Stream
    from .transforms import Image, Pad

Batch = dict[str, Any]
_Opened = TypeVar("_Opened")


class Column(NamedTuple):
    """What a column holds."""

    name: str
    """Its key in every batch."""
    encoding: str
    """As in the data set's index, e.g. "ndarray:uint8:28,28", "int", "str"; of a table also "list:float32"."""
    dtype: str | None
    """Of the array, e.g. "uint8"; None for columns whose samples differ in size (str, bytes, json, jpeg, free arrays)."""
    shape: tuple[int, ...] | None
    """Of one sample; () for numbers, None as for `dtype`."""
    stored: str = ""
    """The type in the file, e.g. "timestamp[us]", "decimal128(10, 2)", "bool"; of MDS the encoding."""


def _only_given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


class Dataset:
    """Reads a data set in batches, shuffled or not, from any place on, on native threads.

    Iterating gives the batches that are left of the current epoch; iterating again gives the next epoch. A batch is a dict:

    - a column of fixed size is an array of dtype `Column.dtype` and shape [samples, *Column.shape], C order, 64-byte aligned,
      writable. It lies in the memory it was decoded to; that memory is used again once nothing refers to the batch's arrays.
    - a column of varying size is a list of str (str, json, str_decimal), int, float, numpy arrays or bytes (everything else);
      with `ragged="offsets"` a pair (data, offsets): uint8 [bytes] and int64 [samples + 1], sample i being
      data[offsets[i]:offsets[i + 1]].
    - of a table, a column of lists of numbers is a list of arrays, which lie in the batch's memory; with offsets the data has
      the lists' dtype, and offsets count its elements. Booleans are uint8; dates are days since 1970 and times integers of
      their unit, both int64; decimals are text, structs, maps and lists of lists JSON text.
    - with `nulls="mask"`, a null is None in a list. Arrays and offsets hold zeros or nothing in its place, and the batch has
      a bool array [samples] under "NAME__valid" that is false there.

    The order is a function of data, options, seed and epoch, never of threads or timing. One thread may use a Dataset at a
    time. After `os.fork()` the child goes on from where the parent stood, with threads of its own. There is no need for the
    worker processes of a torch DataLoader.

    Args:
        directory: Folder or URL that holds the data, or one file. Also the data itself: a dict of arrays, a pandas DataFrame,
            a Hugging Face data set; see from_numpy, from_pandas and from_hf.
        format: "mds" (also index.json of json, csv and tsv shards), "parquet", "delta", "jsonl", "csv", "tsv", "webdataset"
            or "images"; None: what is found there.
        split: Subfolder of it, e.g. "train".
        remote: Instead of a directory: a URL (s3://, gs://, az://, hdfs://, https://, hf://, dbfs:/, ...). What is fetched is
            kept in the folder `local` (None: one in the user's cache) for all processes, epochs and trials, whatever the
            format; of tables, the columns that are read.
        cache_limit: Bytes that it may hold; None: no limit. What is needed last goes first.
        keep_zip: Keep compressed files beside the decompressed ones.
        download_retry, download_timeout: Attempts after the first one, seconds without a byte that end an attempt.
        streams: Instead of a directory: several data sets with the same columns, mixed by their weights.
        batch_size: Samples of a batch of this rank.
        columns: Names of the columns to read; None: all.
        filters: Of Parquet and Delta, the rows to read, as pyarrow's: [("age", ">=", 18), ("split", "in", ["a", "b"])], or
            alternatives as a list of such lists. Row groups that cannot match are not read. A null matches "not in" only.
        nulls: What missing values of a table become: "refuse" (an error that names file and row), "mask" (see above) or
            "fill"; a dict by column where they differ ("refuse" for the others).
        fill: For "fill": a number, text or bytes; a dict by column where they differ.
        dtypes: Element types by column that are not the stored ones, e.g. {"x": "float32"}.
        allow_narrowing: Whether such a type may round or clamp values that it does not hold.
        shapes: By column, of lists that all have one shape though the file does not say so: they become one array.
        transforms: By column, an Image (decode, crop, resize, normalise: on the loader's threads) or a Pad.
        decoded_cache, decoded_cache_limit: A folder, best "/dev/shm", and bytes: images that one process has decoded are there
            for all others that read the same data.
        version, timestamp: Of a Delta table: that version, or its state at a time ("2026-01-31T12:00:00Z"); None: the newest.
        shuffle: Whether the order is shuffled, anew in each epoch.
        order: "mosaic": an order of mosaicml-streaming, sample for sample; takes 8 to 32 bytes a sample.
            "lazy": an order of our own in constant memory, for sets of any size.
        shuffle_algo: "py1e", "py1br", "py1s", "py2s" or "naive"; for order "mosaic".
        shuffle_block_size: Samples that are mixed with one another.
        seed: Of all random choices.
        num_canonical_nodes: Independent parts of the order; the number of machines of the first run when None.
        epoch_size: Samples of an epoch; None: every one once.
        sampling_method: Which samples an epoch takes when it does not take all: "balanced" (others each time) or "fixed".
        sampling_granularity: Samples taken from a shard at a time then.
        batching_method: How streams make a batch: "random", "stratified", "per_stream" or "device_per_stream".
        partition_algo: "relaxed" or "orig".
        drop_last: Leave out a last batch that is not full.
        rank, world_size: Which part of each global batch is read here; `cur_shard` and `shard_count` are other names for them.
        ranks_per_node: Ranks on one machine; None: all of them.
        replication: Neighbouring ranks that read the same samples.
        threads: That decode ahead; 0: batches are decoded when asked for.
        predownload: Samples decoded ahead, at most; None: 8 batches.
        arrays: "numpy", "torch", "jax", or "dlpack" (objects with __dlpack__ and the buffer protocol, for any library).
        ragged: "list" or "offsets", see above.
        ids: Key under which each batch holds the ids of its samples (int64 [samples]); None: it does not.
        verify_hashes: Check the hashes in the index when a shard is opened; sizes and structure always are.
        decompressed_limit: Bytes of decompressed shards kept in memory.

    Raises:
        ValueError, FileNotFoundError, DataLossError, NotImplementedError: with a sentence that says what is wrong and where.
    """

    def __init__(
        self,
        directory: Any = None,
        *,
        format: str | None = None,
        split: str | None = None,
        remote: str | None = None,
        local: str | os.PathLike[str] | None = None,
        cache_limit: int | None = None,
        keep_zip: bool = False,
        download_retry: int | None = None,
        download_timeout: float | None = None,
        streams: Sequence[Stream] | None = None,
        batch_size: int = 1,
        columns: Sequence[str] | None = None,
        filters: Sequence[Any] | None = None,
        nulls: Literal["refuse", "mask", "fill"] | Mapping[str, str] = "refuse",
        fill: Any = None,
        dtypes: Mapping[str, str] | None = None,
        allow_narrowing: bool = False,
        shapes: Mapping[str, Sequence[int]] | None = None,
        transforms: Mapping[str, Image | Pad] | None = None,
        decoded_cache: str | os.PathLike[str] | None = None,
        decoded_cache_limit: int | None = None,
        version: int | None = None,
        timestamp: str | None = None,
        shuffle: bool = False,
        order: Literal["mosaic", "lazy"] = "mosaic",
        shuffle_algo: str = "py1e",
        shuffle_block_size: int | None = None,
        seed: int = 9176,
        num_canonical_nodes: int | None = None,
        epoch_size: int | None = None,
        sampling_method: Literal["balanced", "fixed"] = "balanced",
        sampling_granularity: int = 1,
        batching_method: Literal["random", "stratified", "per_stream", "device_per_stream"] = "random",
        partition_algo: Literal["relaxed", "orig"] = "relaxed",
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        cur_shard: int | None = None,
        shard_count: int | None = None,
        ranks_per_node: int | None = None,
        replication: int = 1,
        threads: int = 2,
        predownload: int | None = None,
        arrays: Literal["numpy", "torch", "jax", "dlpack"] = "numpy",
        ragged: Literal["list", "offsets"] = "list",
        ids: str | None = None,
        verify_hashes: bool = True,
        decompressed_limit: int | None = None,
    ) -> None:
        if sum(place is not None for place in (directory, remote, streams)) != 1:
            raise ValueError("a Dataset is read from a directory, a remote or streams: give one of the three")
        if ragged not in ("list", "offsets"):
            raise ValueError(f"ragged must be 'list' or 'offsets', not {ragged!r}")
        rank, world_size = _place(rank, world_size, cur_shard, shard_count)
        self._held: HeldSet | None = None
        if directory is not None and not isinstance(directory, (str, os.PathLike)):
            from ._memory.held_set import HeldSet

            self._held = HeldSet.of(directory)
            directory, format = self._held.folder, self._held.format
            nulls = "mask" if self._held.has_nulls and nulls == "refuse" else nulls
        elif directory is not None and not _is_local(os.fspath(directory)):
            directory, remote = None, os.fspath(directory)
        options = _only_given(
            directory=None if directory is None else _path(os.fspath(directory)),
            format=format,
            split=split if streams is None else None,
            remote=remote,
            local=None if local is None else os.fspath(local),
            cache_limit=cache_limit,
            keep_zip=keep_zip,
            download_retry=download_retry,
            download_timeout=download_timeout,
            streams=None if streams is None else [stream.options(split) for stream in streams],
            batch_size=batch_size,
            columns=None if columns is None else list(columns),
            filters=_alternatives(filters) if filters else None,
            version=version,
            timestamp=timestamp,
            **_column_options(nulls, fill, dtypes or {}, allow_narrowing, shapes or {}, transforms or {}),
            decoded_cache=None if decoded_cache is None else os.fspath(decoded_cache),
            decoded_cache_limit=decoded_cache_limit,
            shuffle=shuffle,
            order=order,
            shuffle_algo=shuffle_algo,
            shuffle_block_size=shuffle_block_size,
            seed=seed,
            num_canonical_nodes=num_canonical_nodes,
            epoch_size=epoch_size,
            sampling_method=sampling_method,
            sampling_granularity=sampling_granularity,
            batching_method=batching_method,
            partition_algo=partition_algo,
            drop_last=drop_last,
            rank=rank,
            world_size=world_size,
            ranks_per_node=ranks_per_node,
            replication=replication,
            threads=threads,
            predownload=predownload,
            arrays=arrays,
            has_offsets=ragged == "offsets",
            ids_key=ids,
            verify_hashes=verify_hashes,
            decompressed_bytes_max=decompressed_limit,
        )
        self._reader = self._open(options)

    def _open(self, options: dict[str, Any]) -> Reader:
        return _opened(lambda: Reader(options))

    @classmethod
    def from_numpy(cls, arrays: Mapping[str, Any], **options: Any) -> Dataset:
        """A data set of arrays (or lists) of equal length by column; `options` as of Dataset.

        Like from_pandas and from_hf it copies the data once, into a folder beneath $TUNE_CACHE_DIR (else ~/.cache/tune/data)
        that is deleted when the Dataset is closed or let go, or after the process was killed by the next one that makes
        such a folder."""
        return cls(dict(arrays), **options)

    @classmethod
    def from_pandas(cls, frame: Any, **options: Any) -> Dataset:
        """A data set of a DataFrame's columns, without its index. With missing values `nulls` is "mask" unless it is given."""
        return cls(frame, **options)

    @classmethod
    def from_hf(cls, dataset: Any, **options: Any) -> Dataset:
        """A data set of a Hugging Face `datasets.Dataset`, e.g. of load_dataset(..., split="train"); images and sound are the
        bytes of their files. With missing values `nulls` is "mask" unless it is given."""
        return cls(dataset, **options)

    def __iter__(self) -> Iterator[Batch]:
        """The batches that are left of this epoch."""
        following = self._reader.next
        while (batch := following()) is not None:
            yield batch

    def __len__(self) -> int:
        """Batches of a whole epoch of this rank."""
        return self._reader.batches_per_epoch

    @property
    def sample_count(self) -> int:
        """Samples stored, each counted once."""
        return self._reader.sample_count

    @property
    def columns(self) -> list[Column]:
        """What each batch holds, in its order."""
        return [Column(*column) for column in self._reader.columns()]

    @property
    def epoch(self) -> int:
        """The epoch, from 0, that the next batch is of."""
        return self._reader.epoch

    def start_epoch(self, epoch: int) -> None:
        """Goes to the beginning of `epoch`, e.g. to leave the rest of one out."""
        self._reader.start_epoch(epoch)

    def read(self, sample_ids: Sequence[int]) -> Batch:
        """The samples with these ids as one batch, whatever the position of the iteration."""
        return self._reader.batch([int(sample_id) for sample_id in sample_ids])

    def stage_stats(self) -> dict[str, Any]:
        """Where the time went so far: `samples`, `elapsed_s`, `fetch_wait_s` and `decode_wait_s` (the consumer waited),
        `read_s`, `decompress_s` and `transform_s` (summed over threads), `fetched_bytes`, and `bottleneck`, one sentence."""
        return self._reader.stage_stats()

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was given out, to be stored as JSON or with a checkpoint. All ranks' states
        are the same after the same number of batches."""
        return self._reader.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on after the position in `state`, also one of mosaicml-streaming, also with another number of ranks or another
        batch size, as long as whole global batches were read. ValueError when it is of other data or another order."""
        self._reader.load_state(dict(state))

    def close(self) -> None:
        """Ends the threads. Batches that were given out stay valid."""
        self._reader.close()
        if self._held is not None:
            self._held.delete()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _place(
    rank: int | None, world_size: int | None, cur_shard: int | None, shard_count: int | None
) -> tuple[int, int]:
    """(rank, ranks) by either pair of names."""
    if (cur_shard is None) != (shard_count is None):
        raise ValueError("cur_shard and shard_count are given together or not at all")
    if cur_shard is None or shard_count is None:
        return rank or 0, world_size or 1
    if rank is not None or world_size is not None:
        raise ValueError("rank and world_size mean the same as cur_shard and shard_count: give one pair")
    return cur_shard, shard_count


def _opened(make: Callable[[], _Opened]) -> _Opened:
    """The reader. Where Arrow was not found beside this module, that of the pyarrow which Python finds is loaded."""
    try:
        return make()
    except NotImplementedError as error:
        from ._arrow_libraries import load_arrow

        if not load_arrow(str(error)):
            raise
    return make()


def _alternatives(filters: Sequence[Any]) -> list[list[tuple[str, str, list[Any]]]]:
    """Alternatives of (column, operator, [values])."""
    given = [filters] if isinstance(filters[0], tuple) else filters
    made = []
    for alternative in given:
        comparisons = []
        for comparison in alternative:
            if len(comparison) != 3:
                raise ValueError(f"a filter is (column, operator, value), not {comparison!r}")
            column, operator, value = comparison
            is_many = operator in ("in", "not in")
            comparisons.append((column, operator, [_plain(v) for v in value] if is_many else [_plain(value)]))
        made.append(comparisons)
    return made


def _plain(value: Any) -> Any:
    """A value of a filter as bool, int, float, str or bytes."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else value


def _column_options(
    nulls: str | Mapping[str, str],
    fill: Any,
    dtypes: Mapping[str, str],
    allow_narrowing: bool,
    shapes: Mapping[str, Sequence[int]],
    transforms: Mapping[str, Image | Pad],
) -> dict[str, Any]:
    by_name = nulls if isinstance(nulls, Mapping) else {}
    fills = fill if isinstance(fill, Mapping) else {}
    usual_nulls = "refuse" if isinstance(nulls, Mapping) else nulls
    usual_fill = "" if fill is None or isinstance(fill, Mapping) else _fill_text(fill)
    names = dict.fromkeys([*by_name, *fills, *dtypes, *shapes, *transforms])
    columns = [
        {
            "name": name,
            "dtype": _dtype_name(dtypes[name]) if name in dtypes else "",
            "allows_narrowing": allow_narrowing,
            "shape": [int(size) for size in shapes.get(name, ())],
            "nulls": by_name.get(name, "fill" if name in fills else usual_nulls),
            "fill": _fill_text(fills[name]) if name in fills else usual_fill,
            **_transform(transforms.get(name)),
        }
        for name in names
    ]
    return {"column_options": columns, "nulls": usual_nulls, "fill": usual_fill} if columns else {
        "nulls": usual_nulls, "fill": usual_fill
    }  # fmt: skip


def _transform(transform: Image | Pad | None) -> dict[str, Any]:
    if transform is None:
        return {}
    kind = type(transform).__name__.lower()
    if kind not in ("image", "pad"):
        raise ValueError(f"a transform is an Image or a Pad, not {transform!r}")
    return {kind: transform.options()}


def _dtype_name(dtype: Any) -> str:
    """"float32" of "float32", numpy.float32, numpy.dtype("float32") or torch.float32."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).rsplit(".", 1)[-1]


def _fill_text(fill: Any) -> str:
    return fill if isinstance(fill, str) else fill.decode("latin1") if isinstance(fill, bytes) else str(int(fill) if fill is True or fill is False else fill)
