from collections.abc import Iterator

import cv2
import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Single pictures gain nothing from threads, and tests run beside each other."""
    before = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    yield
    torch.set_num_threads(before[0])
    cv2.setNumThreads(before[1])
