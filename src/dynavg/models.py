"""The networks of the paper's experiments, as factory functions.

Each returns a new network whose weights are Glorot uniform and whose biases are zero, drawn from
torch's own generator: whoever calls decides about the seed. Users' networks need nothing of this.
"""

import math

from torch import Tensor, nn

__all__ = ["drift_mlp", "driving_net", "glorot_", "glorot_limit", "logistic", "mnist_cnn"]


def glorot_limit(weight: Tensor) -> float:
    """The a of Glorot's U(−a, a) for the weight of a linear or convolutional layer.

    a = √(6 / (fan_in + fan_out)); for a convolution, both fans count the kernel's places.

    >>> glorot_limit(nn.Linear(4, 2).weight)
    1.0
    """
    if weight.ndim < 2:
        raise ValueError(f"weight must have two or more dimensions, but has {weight.ndim}")
    places = math.prod(weight.shape[2:])
    return math.sqrt(6 / (places * (weight.shape[0] + weight.shape[1])))


def glorot_(module: nn.Module) -> nn.Module:
    """Draw all linear and convolutional weights in `module` anew, set their biases to zero.

    >>> glorot_(nn.Linear(3, 2)).bias.tolist()
    [0.0, 0.0]
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d):
            limit = glorot_limit(layer.weight)
            nn.init.uniform_(layer.weight, -limit, limit)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


def mnist_cnn() -> nn.Module:
    """The MNIST network of the paper's Table 1: x (B, 1, 28, 28) to logits (B, 10).

    The paper does not give dropout rates; 0.25 and 0.5 are those of the Keras example that this
    network is.

    >>> sum(parameter.numel() for parameter in mnist_cnn().parameters())
    1199882
    """
    return glorot_(
        nn.Sequential(
            nn.Conv2d(1, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            nn.Linear(9216, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, 10),
        )
    )


def drift_mlp(d: int = 50) -> nn.Module:
    """The network of the drift experiments: x (B, d) to one logit (B, 1).

    >>> sum(parameter.numel() for parameter in drift_mlp().parameters())
    29569
    """
    return glorot_(
        nn.Sequential(
            nn.Linear(d, 256),
            nn.ReLU(),
            nn.Linear(256, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )
    )


class _Centred(nn.Module):
    """[0, 1] to [−1, 1], as the first layer of the driving network does with its pictures."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x - 1


def driving_net() -> nn.Module:
    """The deep-driving network: pictures (B, 3, 68, 320) in [0, 1] to one steering angle (B, 1).

    Five convolutions (24, 36, 48 of 5×5 with stride 2; 64, 64 of 3×3), then 100–50–10–1, as in
    Bojarski et al., "End to End Learning for Self-Driving Cars" (2016), with dropout 0.5 as in the
    behavioural-cloning networks for Udacity's simulator. Its number of weights for this size of
    picture is the paper's. ReLU as in the driving networks of the authors' platform: with ELU, SGD
    at the paper's η = 0.1 diverges within ten steps.

    >>> sum(parameter.numel() for parameter in driving_net().parameters())
    348219
    """
    return glorot_(
        nn.Sequential(
            _Centred(),
            nn.Conv2d(3, 24, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(24, 36, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(36, 48, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(48, 64, 3),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(2112, 100),
            nn.ReLU(),
            nn.Linear(100, 50),
            nn.ReLU(),
            nn.Linear(50, 10),
            nn.ReLU(),
            nn.Linear(10, 1),
        )
    )


def logistic(d: int) -> nn.Module:
    """Logistic regression, the convex case of the theory: x (B, d) to one logit (B, 1).

    >>> sum(parameter.numel() for parameter in logistic(7).parameters())
    8
    """
    return glorot_(nn.Linear(d, 1))
