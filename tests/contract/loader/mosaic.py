"""mosaicml-streaming 0.13.0, the real one, as the oracle of these tests.

Its package imports torch (whose wheel needs the CUDA libraries even to be imported) and transformers, for the sake of
type names and of distributed start-up. Its writer, reader, shuffle, partition and StreamingDataset use nothing of them,
so modules that hold just those names stand in for the two.
"""

import importlib.machinery
import importlib.util
import sys
import types


_replaced = {}


def _stand_in(name, **members):
    _replaced[name] = sys.modules.get(name)
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__path__ = []
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


class _Generic:
    def __class_getitem__(cls, item):
        return cls


def _install_stand_ins():
    distributed = _stand_in("torch.distributed", is_available=lambda: False, is_initialized=lambda: False)
    data = _stand_in(
        "torch.utils.data",
        IterableDataset=_Generic,
        Dataset=_Generic,
        DataLoader=_Generic,
        get_worker_info=lambda: None,
    )
    cuda = _stand_in("torch.cuda", is_available=lambda: False, device_count=lambda: 0)
    utils = _stand_in("torch.utils", data=data)
    _stand_in("torch", Tensor=_Generic, distributed=distributed, utils=utils, cuda=cuda)
    _stand_in("transformers")
    _stand_in("transformers.feature_extraction_utils", BatchFeature=_Generic)
    _stand_in("transformers.tokenization_utils_base", BatchEncoding=_Generic)
    # The package's own __init__ imports torchvision for its vision datasets.
    found = importlib.util.find_spec("streaming")
    package = types.ModuleType("streaming")
    package.__path__ = list(found.submodule_search_locations)
    package.__spec__ = found
    sys.modules["streaming"] = package


_install_stand_ins()

from streaming.base.batching import generate_work  # noqa: E402
from streaming.base.dataset import StreamingDataset  # noqa: E402
from streaming.base.format.mds.writer import MDSWriter  # noqa: E402
from streaming.base.local import LocalDataset  # noqa: E402
from streaming.base.partition import get_partitions  # noqa: E402
from streaming.base.shuffle import get_shuffle  # noqa: E402
from streaming.base.stream import Stream  # noqa: E402
from streaming.base.util import clean_stale_shared_memory  # noqa: E402
from streaming.base.world import World  # noqa: E402

# The package has what it needs of them; other tests of the same session import the real ones.
for _name, _module in _replaced.items():
    del sys.modules[_name]
    if _module is not None:
        sys.modules[_name] = _module

__all__ = [
    "LocalDataset",
    "MDSWriter",
    "Stream",
    "StreamingDataset",
    "World",
    "clean_stale_shared_memory",
    "generate_work",
    "get_partitions",
    "get_shuffle",
]
