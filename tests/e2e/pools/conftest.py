"""What the tests of pools have in common."""

import pytest

from agent_support import PYTHON, Farm, lives
from pools.pool_scripts import POOL


class PoolFarm(Farm):
    """A farm whose studies run in pools."""

    def create_pool(self, name, trials, size=4, **more):
        program = self.folder / "pool.py"
        program.write_text(POOL)
        return self.create(name, [PYTHON, str(program)], trials=trials, resources={"pool": size},
                           env={"FOLDER": str(self.folder)}, **more)

    def put(self, name, number):
        """`gate`, `deaf`, `killer`, `exits`: which trials that holds for; see pool_scripts."""
        (self.folder / name).write_text(str(number))

    def pools(self):
        """Processes of pools that live."""
        return [pid for path in self.folder.glob("pool-*") if lives(pid := int(path.name.removeprefix("pool-")))]

    def attempts(self, number):
        path = self.folder / f"starts-{number}"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.fixture
def farm(tmp_path):
    with PoolFarm(tmp_path) as made:
        yield made
