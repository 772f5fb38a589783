"""make_reader and make_batch_reader, with the arguments and results of Petastorm 0.13.

    from tuneloader import make_batch_reader

    with make_batch_reader("file:///data/table", cur_shard=0, shard_count=4, num_epochs=1) as reader:
        for batch in reader:              # a named tuple of arrays for each row group
            batch.features

Row groups are read on threads of this process; they come in the order that seed and arguments give, however many threads
there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ._parquet.cache import cached_files, check_cache
from ._parquet.files import DataFiles, find_data_files
from ._parquet.metadata import (
    UNISCHEMA_KEY,
    common_metadata,
    row_groups_per_file,
    stored_row_group_indexes,
    stored_unischema,
)
from ._parquet.pipeline import Pipeline
from ._parquet.row_groups import RowGroups, shard_of
from ._parquet.work import BatchWork, RowWork, Work, WorkItem
from .errors import PetastormMetadataError
from .ngram import NGram
from .predicates import PredicateBase
from .selectors import RowGroupSelectorBase
from .transform import TransformSpec, transform_schema
from .unischema import Unischema

__all__ = ["Reader", "make_batch_reader", "make_reader"]

_POOLS = ("thread", "process", "dummy")


class Reader:
    """An iterator over rows (of make_reader) or batches (of make_batch_reader). Use it with `with`, or call stop() and join().

    Attributes:
        schema: The Unischema of what it gives out.
        ngram: The NGram that it was made with, or None.
        batched_output: Whether it gives batches.
        last_row_consumed: Whether all epochs are read; reset() then starts anew.
        num_epochs: As given.
    """

    def __init__(self, work: Work, numbers: list[int], options: dict[str, Any], batched_output: bool) -> None:
        self.schema = work.out_schema
        self.ngram = work.ngram
        self.batched_output = batched_output
        self.num_epochs: int | None = options["num_epochs"]
        self.last_row_consumed = False
        self.stopped = False
        self._work = work
        self._options = options
        parts = options["shuffle_row_drop_partitions"]
        self._items = [(number, part, parts) for number in numbers for part in range(parts)]
        seed = options["seed"]
        self._permutation = np.random.permutation if seed is None else np.random.default_rng(seed).permutation
        self._results: Iterator[Any] = iter(())
        threads = 0 if options["reader_pool_type"] == "dummy" else options["workers_count"]
        ahead = max(1, min(threads + 2, options["results_queue_size"]))
        self._pipeline: Pipeline[WorkItem, list[Any]] = Pipeline(work, threads, ahead)
        self._pass = 0
        self._begin()

    def _begin(self) -> None:
        if self._options["shuffle_row_groups"]:
            self._items = [self._items[i] for i in self._permutation(len(self._items))]
        self._pipeline.start(self._work_items())

    def _work_items(self) -> Iterator[WorkItem]:
        epoch = 0
        while self._items and (self.num_epochs is None or epoch < self.num_epochs):
            for group, part, parts in self._items:
                yield WorkItem(group, part, parts, self._row_seed(epoch, group))
            epoch += 1

    def _row_seed(self, epoch: int, group: int) -> tuple[int, ...] | None:
        """All parts of a row group have the same order of rows, so that they make up the whole."""
        if not self._options["shuffle_rows"]:
            return None
        seed = self._options["seed"]
        base = self._unseeded if seed is None else seed
        return (base, self._pass, epoch, group)

    @property
    def _unseeded(self) -> int:
        if not hasattr(self, "_drawn_seed"):
            self._drawn_seed = int(np.random.randint(0, 2**31 - 1))
        return self._drawn_seed

    def __iter__(self) -> Reader:
        return self

    def __next__(self) -> Any:
        if self.stopped:
            raise RuntimeError(
                "this reader was stopped, e.g. by the end of its `with` block; make another one to read again"
            )
        while True:
            for result in self._results:
                if self.batched_output:
                    return result
                if self.ngram is not None:
                    return self.ngram.make_namedtuple(self.schema, result)
                return self.schema.make_namedtuple(**result)
            try:
                self._results = iter(self._pipeline.next_result())
            except StopIteration:
                self.last_row_consumed = True
                raise
            except BaseException:
                self.stop()
                raise

    def next(self) -> Any:
        """The next row or batch."""
        return self.__next__()

    def reset(self) -> None:
        """Starts anew, with another order of row groups, after all epochs were read; NotImplementedError before."""
        if not self.last_row_consumed:
            raise NotImplementedError("a reader can be reset only when all its rows were read; make another one instead")
        self.last_row_consumed = False
        self._pass += 1
        self._begin()

    def stop(self) -> None:
        """Begins no further work; nothing can be read any more."""
        self.stopped = True
        self._pipeline.stop()

    def join(self) -> None:
        """Waits until the threads have ended; after stop()."""
        self._pipeline.join()

    def cleanup_cache(self) -> None:
        """For programs of Petastorm; what cache_location holds stays for other readers."""

    @property
    def diagnostics(self) -> dict[str, Any]:
        """How many row groups are read ahead now."""
        return {"output_queue_size": self._pipeline.waiting}

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self.join()


def make_reader(
    dataset_url: str | Sequence[str],
    schema_fields: Any = None,
    reader_pool_type: str = "thread",
    workers_count: int = 10,
    pyarrow_serialize: bool = False,
    results_queue_size: int = 50,
    seed: int | None = None,
    shuffle_rows: bool = False,
    shuffle_row_groups: bool = True,
    shuffle_row_drop_partitions: int = 1,
    predicate: PredicateBase | None = None,
    rowgroup_selector: RowGroupSelectorBase | None = None,
    num_epochs: int | None = 1,
    cur_shard: int | None = None,
    shard_count: int | None = None,
    shard_seed: int | None = None,
    cache_type: str | None = "null",
    cache_location: str | None = None,
    cache_size_limit: int | None = None,
    cache_row_size_estimate: int | None = None,
    cache_extra_settings: dict[str, Any] | None = None,
    hdfs_driver: str = "libhdfs3",
    transform_spec: TransformSpec | None = None,
    filters: Any = None,
    storage_options: dict[str, Any] | None = None,
    zmq_copy_buffers: bool = True,
    filesystem: Any = None,
    convert_early_to_numpy: bool = False,
) -> Reader:
    """Reads a data set that was written by Petastorm's (or this package's) materialize_dataset, decoded row by row.

    Args:
        dataset_url: A folder or a list of files: file://, s3://, gs://, abfs://, hdfs://, dbfs:/, or a path.
        schema_fields: Fields (UnischemaField) and regular expressions of whole names; an NGram; None: all.
        reader_pool_type: "thread"; "process" means the same here; "dummy": rows are read when they are asked for.
        workers_count: Threads.
        results_queue_size: Row groups read ahead, at most (and at most workers_count + 2).
        seed: Of all random choices; None: other ones each time.
        shuffle_rows: Whether rows are shuffled in their row group, anew in each epoch.
        shuffle_row_groups: Whether row groups are shuffled, once; epochs repeat the order.
        shuffle_row_drop_partitions: Each row group is read so many times, a different part of its rows each time.
        predicate: Chooses rows.
        rowgroup_selector: Chooses row groups by an index that is stored with the data set.
        num_epochs: None: for ever.
        cur_shard, shard_count: Reads the row groups whose number modulo shard_count is cur_shard.
        shard_seed: Another name for seed, of shards only.
        cache_type, cache_location, cache_size_limit: "local-disk": files that are not on this machine are kept in the
            folder cache_location, up to so many bytes.
        transform_spec: What is done to each row.
        filters: As pyarrow's; only rows that match are read.
        storage_options: Arguments of fsspec's file system.
        filesystem: Of pyarrow or fsspec, instead of what the URL says.
        pyarrow_serialize, cache_row_size_estimate, cache_extra_settings, hdfs_driver, zmq_copy_buffers,
            convert_early_to_numpy: Taken, without effect.

    Returns:
        An iterator over named tuples, or with an NGram over dicts by time step of them.
    """
    options = dict(locals())
    files = _files(options)
    metadata = _metadata(files)
    if UNISCHEMA_KEY not in metadata:
        raise RuntimeError(
            f"'{files.roots[0]}' has no Unischema in _common_metadata, so it was not written by materialize_dataset(); "
            "read plain Parquet with make_batch_reader"
        )
    try:
        stored = stored_unischema(metadata, files.roots[0])
    except PetastormMetadataError as error:
        raise RuntimeError(f"make_reader cannot read the data set: {error}") from error
    ngram = schema_fields if isinstance(schema_fields, NGram) else None
    if ngram is not None:
        ngram.resolve_regex_field_names(stored)
        if not ngram.timestamp_overlap and shuffle_row_drop_partitions > 1:
            raise NotImplementedError("timestamp_overlap=False does not go with shuffle_row_drop_partitions > 1")
        options["schema_fields"] = ngram.all_fields()

    def rows(groups: RowGroups, schema: Unischema, out: Unischema) -> Work:
        return RowWork(groups, schema, out, options["predicate"], transform_spec, ngram)

    return _open(files, metadata, stored, options, rows, False)


def make_batch_reader(
    dataset_url_or_urls: str | Sequence[str],
    schema_fields: Any = None,
    reader_pool_type: str = "thread",
    workers_count: int = 10,
    results_queue_size: int = 50,
    seed: int | None = None,
    shuffle_rows: bool = False,
    shuffle_row_groups: bool = True,
    shuffle_row_drop_partitions: int = 1,
    predicate: PredicateBase | None = None,
    rowgroup_selector: RowGroupSelectorBase | None = None,
    num_epochs: int | None = 1,
    cur_shard: int | None = None,
    shard_count: int | None = None,
    shard_seed: int | None = None,
    cache_type: str | None = "null",
    cache_location: str | None = None,
    cache_size_limit: int | None = None,
    cache_row_size_estimate: int | None = None,
    cache_extra_settings: dict[str, Any] | None = None,
    hdfs_driver: str = "libhdfs3",
    transform_spec: TransformSpec | None = None,
    filters: Any = None,
    storage_options: dict[str, Any] | None = None,
    zmq_copy_buffers: bool = True,
    filesystem: Any = None,
    convert_early_to_numpy: bool = False,
) -> Reader:
    """Reads plain Parquet, one batch for each row group.

    The arguments are those of make_reader; schema_fields are names or regular expressions, a predicate of the kind
    `in_lambda` and the TransformSpec's function are given a pandas DataFrame of the row group.

    Returns:
        An iterator over named tuples of arrays [rows] or, of lists that all have the same length, [rows, length]. Numbers
        with nulls are float64 with NaN, other columns with nulls arrays of objects with None.
    """
    options = dict(locals())
    options["dataset_url"] = options.pop("dataset_url_or_urls")
    if isinstance(schema_fields, NGram):
        raise NotImplementedError("make_batch_reader has no NGrams; make_reader has")
    files = _files(options)
    metadata = _metadata(files)
    groups_schema: Unischema | None = None
    if UNISCHEMA_KEY in metadata:
        warnings.warn("the data set was written by Petastorm: make_reader decodes its fields", stacklevel=2)

    def batches(groups: RowGroups, schema: Unischema, out: Unischema) -> Work:
        return BatchWork(groups, schema, out, options["predicate"], transform_spec)

    return _open(files, metadata, groups_schema, options, batches, True)


def _files(options: dict[str, Any]) -> DataFiles:
    _check(options)
    files = find_data_files(options["dataset_url"], options["storage_options"], options["filesystem"])
    if options["cache_type"] == "local-disk":
        return cached_files(files, options["cache_location"], options["cache_size_limit"])
    return files


def _check(options: dict[str, Any]) -> None:
    fields = options["schema_fields"]
    if fields is not None and (isinstance(fields, str) or not isinstance(fields, (Iterable, NGram))):
        raise ValueError("schema_fields must be None, a list of fields and regular expressions, or an NGram")
    if options["reader_pool_type"] not in _POOLS:
        raise ValueError(f"reader_pool_type must be one of {', '.join(_POOLS)}, not {options['reader_pool_type']!r}")
    num_epochs = options["num_epochs"]
    if num_epochs is not None and (not isinstance(num_epochs, int) or num_epochs < 1):
        raise ValueError(f"num_epochs must be a positive number or None, not {num_epochs!r}")
    for name in ("workers_count", "results_queue_size", "shuffle_row_drop_partitions"):
        if not isinstance(options[name], int) or options[name] < 1:
            raise ValueError(f"{name} must be a positive number, not {options[name]!r}")
    for name, kind in (("predicate", PredicateBase), ("rowgroup_selector", RowGroupSelectorBase), ("transform_spec", TransformSpec)):
        if options[name] is not None and not isinstance(options[name], kind):
            raise ValueError(f"{name} must be derived from tuneloader's {kind.__name__}, not {type(options[name]).__name__}")
    check_cache(options["cache_type"], options["cache_location"])
    if options["cache_type"] == "local-disk" and options["predicate"] is not None:
        raise RuntimeError("cache_type='local-disk' does not go with a predicate")


def _metadata(files: DataFiles) -> dict[bytes, bytes]:
    return common_metadata(files.filesystem, files.roots[0]) if files.is_folder else {}


def _open(
    files: DataFiles,
    metadata: dict[bytes, bytes],
    stored: Unischema | None,
    options: dict[str, Any],
    make_work: Callable[[RowGroups, Unischema, Unischema], Work],
    batched_output: bool,
) -> Reader:
    groups = RowGroups(files, row_groups_per_file(metadata), options["filters"])
    whole = stored or Unischema.from_arrow_schema(groups.schema(), files.partition_types)
    fields = None if options["schema_fields"] is None else list(options["schema_fields"])
    schema = whole.create_schema_view(fields) if fields else whole
    if not schema.fields:
        raise RuntimeError(f"no field of '{files.roots[0]}' matches {fields}; it has {', '.join(whole.fields)}")
    spec = options["transform_spec"]
    out_schema = transform_schema(schema, spec) if spec is not None else schema
    numbers = _chosen(groups, schema, metadata, options)
    seed = options["shard_seed"] if options["shard_seed"] is not None else options["seed"]
    numbers = shard_of(numbers, len(groups.groups), options["cur_shard"], options["shard_count"], seed)
    if not numbers:
        warnings.warn("no row group is left to read after predicate, selector, filters and sharding", stacklevel=3)
    return Reader(make_work(groups, schema, out_schema), numbers, options, batched_output)


def _chosen(groups: RowGroups, schema: Unischema, metadata: dict[bytes, bytes], options: dict[str, Any]) -> list[int]:
    """The row groups that predicate and selector leave. A predicate that looks at nothing but folders' names is done then."""
    numbers = list(range(len(groups.groups)))
    predicate = options["predicate"]
    partitions = set(groups.files.partition_types)
    if predicate is not None and predicate.get_fields() and predicate.get_fields() <= partitions:
        names = predicate.get_fields()

        def values(number: int) -> dict[str, Any]:
            file = groups.groups[number].file
            made = {name: groups.partition_value(file, name) for name in names}
            cast = {name: schema.fields[name].numpy_dtype for name in names if name in schema.fields}
            return {name: cast[name](value) if name in cast and value is not None else value for name, value in made.items()}

        numbers = [number for number in numbers if predicate.do_include(values(number))]
        options["predicate"] = None
    selector = options["rowgroup_selector"]
    if selector is not None:
        indexes = stored_row_group_indexes(metadata, groups.files.roots[0])
        missing = sorted(set(selector.get_index_names()) - set(indexes))
        if missing:
            raise ValueError(f"the data set has no index {', '.join(missing)}; it has {', '.join(indexes)}")
        selected = selector.select_row_groups(indexes)
        numbers = [number for number in numbers if number in selected]
    return numbers
