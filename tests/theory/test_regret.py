"""T5, the regret theorem, on L2-regularised logistic regression.

With ‖x‖ ≤ 1 the logistic loss is 1-Lipschitz in the model (L = 1) and 1/4-smooth, and a step of SGD
with weight decay λ contracts by c = 1 − ηλ while η(1/4 + λ) ≤ 1. With b ≥ 1/log2(1/c) a check finds
the mean squared distance D between dynamic and periodic shrunk to a quarter and adds at most Δ
(the sync lemma): D ≤ 4Δ/3 always. So the mean over learners of the loss difference is at most
L√(4Δ/3): less than ε where Δ = ε²/(2L²). The paper's Δ = ε/(2L) gives no more than √(4εL/6).
"""

import math
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynavg
from tests.theory.learning import Batches, linear, losses_by_round, sgd

LAMBDA, ETA = 0.5, 0.1
EVERY = math.ceil(1 / math.log2(1 / (1 - ETA * LAMBDA)))
M, P, ROUNDS = 5, 5, 168


def proven(epsilon: float) -> float:
    return epsilon**2 / 2


def printed(epsilon: float) -> float:
    return epsilon / 2


def streams(seed: int, heterogeneity: float) -> Batches:
    """Unit inputs; labels by a common direction that flips every 56 rounds, and one's own."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = F.normalize(normal(ROUNDS, M, 5, P), dim=-1)
    direction = normal(P) + heterogeneity * normal(M, P)
    score = (x * direction[None, :, None]).sum(-1) + 0.3 * normal(ROUNDS, M, 5)
    flipped = (-1.0) ** torch.div(torch.arange(ROUNDS), 56, rounding_mode="floor")
    y = (score * flipped[:, None, None] > 0).double()
    return [[(x[t, i], y[t, i, :, None]) for t in range(ROUNDS)] for i in range(M)]


class Pair:
    """The same streams under dynamic and periodic averaging."""

    def __init__(self, batches: Batches, delta: float) -> None:
        models: dict[str, list[Tensor]] = {"dynamic": [], "periodic": []}
        results = {}
        operators = {"dynamic": dynavg.Dynamic(delta, EVERY), "periodic": dynavg.Periodic(EVERY)}
        rounds = len(batches[0])
        for name, operator in operators.items():
            results[name] = dynavg.simulate(
                model=linear(batches[0][0][0].shape[1]),
                loss=F.binary_cross_entropy_with_logits,
                optimizer=sgd(ETA, weight_decay=LAMBDA),
                streams=batches,
                operator=operator,
                rounds=rounds,
                workers=1,
                callbacks=[lambda check, kept=models[name]: kept.append(check.models.clone())],
            )
        losses = [losses_by_round(result, len(batches), rounds) for result in results.values()]
        self.dynamic, self.periodic = results["dynamic"], results["periodic"]
        pairs = zip(models["dynamic"], models["periodic"], strict=True)
        self.apart = max(float(((d - s) ** 2).sum(1).mean()) for d, s in pairs)
        self.loss_difference = float((losses[0] - losses[1]).abs().mean(1).max())
        self.regret = float((losses[0] - losses[1]).sum())


def pairs(delta: float) -> Iterator[Pair]:
    for seed, heterogeneity in ((0, 0.0), (1, 0.3)):
        yield Pair(streams(seed, heterogeneity), delta)


@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_t5_the_loss_stays_within_epsilon_of_periodic_averaging(epsilon):
    """Measured: at most 0.49 Δ apart (proven: 1.33), loss difference at most 0.08 ε."""
    delta = proven(epsilon)
    for pair in pairs(delta):
        assert pair.apart <= delta * 4 / 3
        assert pair.loss_difference <= epsilon * math.sqrt(2 / 3)
        assert pair.regret <= epsilon * M * ROUNDS
        assert pair.apart > delta / 20  # they did part, else this would say nothing


@pytest.mark.parametrize("epsilon", [0.02, 0.05])
def test_t5_with_the_printed_delta_the_loss_stays_within_its_own_bound(epsilon):
    """Measured on these streams: 0.44 ε and 0.18 ε, so ε holds here; see the worst case below."""
    for pair in pairs(printed(epsilon)):
        assert pair.apart <= printed(epsilon) * 4 / 3
        assert pair.loss_difference <= math.sqrt(printed(epsilon) * 4 / 3)
        assert pair.apart > printed(epsilon) / 20


def adversary(delta: float, learners: int = 6, rounds: int = 112) -> Batches:
    """Weak samples pull learner i along axis i, to 97 % of √Δ and no further, so that nobody ever
    violates; then a strong one with the opposite label shows where each model stands.
    """
    axes = torch.eye(learners, dtype=torch.float64)
    reach = 0.97 * math.sqrt(delta)
    # The pull a/(1 + e^{a·reach}) and the decay λ·reach balance: a ≈ 2λ·reach, to be exact:
    pull = 2 * LAMBDA * reach
    for _ in range(50):
        pull = LAMBDA * reach * (1 + math.exp(pull * reach))
    yes, no = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    return [[(pull * axis[None], yes)] * rounds + [(axis[None], no)] for axis in axes]


@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_t5_with_the_printed_delta_epsilon_is_exceeded_in_the_worst_case(epsilon):
    """A counterexample to Δ = ε/(2L): √Δ, not Δ, is how far a model may stand. Measured: the loss
    of a round differs by 2.90 ε where ε = 0.01, and by 1.33 ε where ε = 0.05 (with the proven Δ by
    0.29 ε).
    """
    pair = Pair(adversary(printed(epsilon)), printed(epsilon))
    assert pair.dynamic.bytes() == 0
    assert epsilon < pair.loss_difference <= math.sqrt(printed(epsilon) * 4 / 3)
    safe = Pair(adversary(proven(epsilon)), proven(epsilon))
    assert safe.dynamic.bytes() == 0
    assert 0 < safe.loss_difference <= epsilon * math.sqrt(2 / 3)
