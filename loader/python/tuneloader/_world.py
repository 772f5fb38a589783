"""Which rank of which machine this process is, from the environment that torchrun and its like set."""

from __future__ import annotations

import os
from typing import NamedTuple


class World(NamedTuple):
    """The ranks of the run and this one among them."""

    rank: int
    num_ranks: int
    ranks_per_node: int

    @classmethod
    def detect(cls) -> World:
        """From RANK, WORLD_SIZE and LOCAL_WORLD_SIZE; alone where they are not set."""
        num_ranks = int(os.environ.get("WORLD_SIZE", 1))
        return cls(int(os.environ.get("RANK", 0)), num_ranks, int(os.environ.get("LOCAL_WORLD_SIZE", 1)))

    def replicate(self, replication: int) -> tuple[int, int]:
        """(ranks, machines) when `replication` neighbouring ranks count as one."""
        if replication <= 0:
            raise ValueError("replication must be positive")
        if self.num_ranks % replication:
            raise ValueError(f"{self.num_ranks} ranks do not divide into groups of {replication}")
        ranks = self.num_ranks // replication
        return ranks, ranks // self.ranks_per_node if ranks % self.ranks_per_node == 0 else 1
