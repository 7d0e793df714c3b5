"""The learning rates that the paper does not give.

Each is the one of a geometric grid with the least loss of periodic averaging, on a seed that no
experiment uses. `results/rates/` holds the specs, and what each rate came to.
"""

__all__ = ["ADAM", "DRIFT", "MNIST", "RMSPROP"]

MNIST = 0.15
"""SGD on MNIST: E5, E8, E9, E10."""
ADAM = 0.003
RMSPROP = 0.001
"""E8."""
DRIFT = 0.5
"""SGD on the random graphical model: E2, E6."""
