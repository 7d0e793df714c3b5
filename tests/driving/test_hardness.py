"""A little training already drives better than none, and is far from enough for the narrow track.

How little tells from much, up to what the serial learner sees, is measured in
`benchmarks/driving.py`.
"""

import pytest
import torch

import dynavg
from dynavg.driving import drive_starts, driver_steers, record, scores, starts
from dynavg.models import driving_net

STARTS = starts(("training", "narrow"), ("noon",), places=2)


@pytest.mark.slow
def test_little_training_drives_better_than_none_and_never_finishes_the_narrow_track() -> None:
    pictures = record(1500, days=1).dataset()
    result = dynavg.simulate(
        model=driving_net,
        loss=torch.nn.functional.mse_loss,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        streams=dynavg.data.split(pictures, learners=1, batch_size=10),
        operator=dynavg.NoSync(),
        rounds=400,  # 1.6 % of what the paper's serial learner sees
        progress=False,
    )
    torch.manual_seed(0)
    rides = {
        "expert": drive_starts(driver_steers("expert"), STARTS),
        "little": drive_starts(result.model(), STARTS),
        "untrained": drive_starts(driving_net(), STARTS),
    }
    score = scores(rides)
    assert score["expert"].loss < score["little"].loss - 0.1
    assert score["little"].loss < score["untrained"].loss - 0.1
    on_narrow = [ride for ride in rides["little"] if ride.start.track == "narrow"]
    assert not any(ride.finished for ride in on_narrow)
