from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dynavg import data
from dynavg.data import Pictures
from dynavg.experiments import assembly


def small_pictures(folder: Path | None = None) -> Pictures:
    """Six hundred noisy pictures of ten blank shapes: the real ones are not to be fetched here."""
    random = torch.Generator().manual_seed(0)
    y = torch.randint(0, 10, (600,), generator=random)
    shapes = torch.randint(0, 200, (10, 1, 28, 28), generator=random)
    noise = torch.randint(0, 56, (600, 1, 28, 28), generator=random)
    return Pictures((shapes[y] + noise).to(torch.uint8), y, train=500)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What comes in place of MNIST."""
    assembly._pictures.cache_clear()
    monkeypatch.setattr(data, "mnist", small_pictures)
    yield
    assembly._pictures.cache_clear()
