"""The environment tells little training from much: measured by training the paper's network."""

import pytest
import torch
from torch import nn

from dynavg.driving import drive_starts, record, scores, starts
from dynavg.driving.judging import Driven
from dynavg.models import driving_net

SERIAL = 250_000  # samples, as the paper's serial learner sees
LITTLE = SERIAL // 20
MORE = 4 * LITTLE  # a fifth of the serial learner's, so that the test ends within minutes

STARTS = starts(("training", "narrow", "heldout"), ("noon", "evening"), places=2)


def judged(model: nn.Module) -> list[Driven]:
    return drive_starts(model, STARTS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_percent_of_the_data_drives_worse_and_never_finishes_the_narrow_track() -> None:
    x, y = record(16_000, seed=0).dataset().tensors
    torch.manual_seed(0)
    layout = torch.channels_last  # halves the time of a step
    model = driving_net().to(memory_format=layout)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.cat([torch.randperm(len(x)) for _ in range(-(-MORE // len(x)))])
    rides = {"untrained": judged(model)}
    for seen in range(0, MORE, 10):
        if seen == LITTLE:
            rides["little"] = judged(model)
        batch = order[seen : seen + 10]
        pictures = (x[batch].float() / 255).contiguous(memory_format=layout)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(pictures), y[batch]).backward()
        optimizer.step()
    rides["more"] = judged(model)
    score = scores(rides)
    print(score)
    on_narrow = [ride for ride in rides["little"] if ride.start.track == "narrow"]
    assert not any(ride.finished for ride in on_narrow)
    assert score["more"].loss < score["little"].loss - 0.1
    assert score["little"].loss < score["untrained"].loss - 0.1
    assert score["more"].finished > score["little"].finished
