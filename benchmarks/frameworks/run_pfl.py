"""pfl-research's side: `FederatedAveraging` on its simulated backend.

python run_pfl.py WORK.npz
torchrun --standalone --nproc-per-node 2 run_pfl.py WORK.npz
"""

import sys

import torch
import work
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops.pytorch_ops import distributed
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional as F


class Net(work.Net):
    """With the two methods that pfl wants of a model."""

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.train()(x), y)

    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, Weighted]:
        return {"loss": Weighted(F.cross_entropy(self.eval()(x), y).item() * len(y), len(y))}


class Clock(TrainingProcessCallback):
    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self.ends.append(work.now())
        return False, Metrics()


def main(path: str) -> None:
    todo, clock, net = work.Work.load(path), Clock(), Net()
    net.load_state_dict(todo.net().state_dict())
    seen = work.count_samples(net)
    model = PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0))
    users = [PyTorchTensorDataset(pair, user_id=str(id)) for id, pair in enumerate(todo.clients)]
    cohort = FederatedDataset(users.__getitem__, MinimizeReuseUserSampler(range(len(users))))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=todo.rounds,
            evaluation_frequency=todo.rounds + 1,
            train_cohort_size=len(users),
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=cohort, val_data=cohort),
        model,
        NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=work.RATE, local_batch_size=work.BATCH
        ),
        NNEvalHyperParams(local_batch_size=None),
        [clock],
        send_metrics_to_platform=False,
    )
    processes, samples = distributed.world_size, torch.tensor(seen[0])
    if processes > 1:
        torch.distributed.all_reduce(samples)
    if distributed.global_rank == 0:
        threads = f"{processes} × {torch.get_num_threads()}"
        work.tell("pfl", todo, net, int(samples), clock.ends, threads=threads)
    if processes > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
