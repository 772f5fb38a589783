"""PackedDataset: documents of tokens as sequences of one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from ._core import PackedReader
from ._dataset import Batch, Dataset, _dtype_name, _opened


class PackedDataset(Dataset):
    """Reads documents of varying length as sequences of `length` tokens, so that training computes on no padding (or little).

    Iterating is that of Dataset. A batch is a dict:

    - `tokens`: int64 [sequences, length].
    - `segment_ids`: int32 [sequences, length]: 1, 2, ... for the documents of a sequence, 0 for padding. Tokens may attend to
      each other where it is the same.
    - `positions`: int32 [sequences, length]: 0, 1, 2, ... within each piece of a document, 0 for padding.
    - `pieces`: int64 [pieces, 5], numpy: sequence, its first token there, number of tokens, id of the sample, and the token of
      the document with which the piece begins.

    Sequences are a function of the order of samples and of these options, never of threads or timing. `state_dict()` is exact
    to a token and after a resume gives the sequence that would have come next; it is of one rank, so each keeps its own, and it
    is refused with other options than those it was made with (batch_size, drop_last and pad_token may change).

    Args:
        directory: As of Dataset.
        column: Of tokens: a list, an array or a fixed column of integers, or bytes.
        length: Tokens of a sequence.
        batch_size: Sequences of a batch.
        packing: "concat": one document after the other, cut where a sequence is full. "best_fit": each document whole (of one
            longer than `length`, whole sequences are cut off), into the sequence with the least room that takes it.
        end_token: Follows each document, also an empty one; None: nothing does.
        pad_token: Where a sequence is not full: at the end of an epoch, and with "best_fit".
        bytes_as: Of a column of bytes: their type, e.g. "uint16".
        window: Documents that are read together and, with "best_fit", packed together: more leave less padding.
        drop_last: Leave out what is left at the end of an epoch: a sequence that is not full ("concat"), a batch that is not.
        options: All others of Dataset, e.g. shuffle, seed, rank, world_size, threads, arrays, remote.
    """

    def __init__(
        self,
        directory: Any = None,
        *,
        column: str,
        length: int,
        batch_size: int = 1,
        packing: Literal["concat", "best_fit"] = "concat",
        end_token: int | None = None,
        pad_token: int = 0,
        bytes_as: Any = None,
        window: int = 1024,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        self._packing = {
            "column": column,
            "length": length,
            "batch_size": batch_size,
            "packing": packing,
            "end_token": end_token,
            "pad_token": pad_token,
            "bytes_as": "" if bytes_as is None else _dtype_name(bytes_as),
            "window": window,
            "drop_last": drop_last,
        }
        super().__init__(directory, batch_size=1, **options)

    def _open(self, options: dict[str, Any]) -> PackedReader:  # type: ignore[override]
        return _opened(lambda: PackedReader(options, self._packing))

    def __len__(self) -> NoReturn:
        raise TypeError("how many sequences an epoch packs to is known when it has been read")

    def read(self, sample_ids: Sequence[int]) -> Batch:
        """Not of packed data: a Dataset of the same directory reads samples by their ids."""
        raise TypeError("sequences have no ids; a Dataset of the same directory reads samples by theirs")
