"""Each mistake has one clear message, and no learner has moved before it comes."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg import NoSync, Periodic
from tests.engines.problems import regression, run, sgd

NETWORK = nn.Linear(3, 1)
X, Y = (torch.cat(part) for part in zip(*regression(1)[0], strict=True))

REFUSED = {
    # operator
    "an operator's class": ({"operator": Periodic}, TypeError, "an operator is wanted, such as"),
    "no operator": ({"operator": None}, TypeError, "not None"),
    "an operator's name": ({"operator": "periodic"}, TypeError, "not the str 'periodic'"),
    "an optimiser as operator": (
        {"operator": sgd(NETWORK.parameters())},
        TypeError,
        "dynavg.Periodic(every=10) or dynavg.NoSync(), not an object of type SGD",
    ),
    # rounds
    "no rounds": ({"rounds": 0}, ValueError, "rounds=0): a whole number >= 1"),
    "negative rounds": ({"rounds": -1}, ValueError, "rounds=-1): a whole number >= 1"),
    "a truth as rounds": ({"rounds": True}, TypeError, "rounds=True): a whole number >= 1"),
    "half a round": ({"rounds": 1.5}, TypeError, "rounds=1.5): a whole number >= 1"),
    "a text as rounds": ({"rounds": "6"}, TypeError, "rounds='6'): a whole number >= 1"),
    "more rounds than batches": ({"rounds": 7}, ValueError, "streams have only 6 batches"),
    # streams
    "no streams": ({"streams": None}, TypeError, "streams must be"),
    "no learners": ({"streams": []}, ValueError, "no learners"),
    "a learner without batches": ({"streams": [[(X, Y)], []]}, ValueError, "streams[1] has no"),
    "a dataset as streams": ({"streams": (X, Y)}, TypeError, "use dynavg.data.split"),
    "arrays as streams": ({"streams": np.zeros((2, 3))}, TypeError, "streams must be"),
    "arrays as batches": ({"streams": [[(X.numpy(), Y.numpy())] * 6]}, TypeError, "x must be a"),
    "an iterator that is empty": ({"streams": [iter([])]}, ValueError, "ended after 0 batches"),
    # model
    "a network": ({"model": NETWORK}, TypeError, "lambda: copy.deepcopy(network)"),
    "no model": ({"model": None}, TypeError, "model must be a function without arguments"),
    "a factory that makes nothing": ({"model": lambda: None}, TypeError, "but returned None"),
    "a factory that makes a number": ({"model": lambda: 5}, TypeError, "but returned 5"),
    "no parameters": ({"model": nn.ReLU}, ValueError, "ReLU has no trainable parameters"),
    "frozen parameters": (
        {"model": lambda: copy.deepcopy(NETWORK).requires_grad_(False)},
        ValueError,
        "Linear has no trainable parameters",
    ),
    "lazy weights": ({"model": lambda: nn.LazyLinear(1)}, TypeError, "weight is uninitialised"),
    "lazy buffers": (
        {"model": lambda: nn.Sequential(nn.Linear(3, 1), nn.LazyBatchNorm1d())},
        TypeError,
        "uninitialised (a lazy module): run one batch through the model in its factory",
    ),
    "mixed dtypes": (
        {"model": lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1).double())},
        TypeError,
        "1.weight is torch.float64, the first parameter is torch.float32",
    ),
    "half precision": (
        {"model": lambda: nn.Linear(3, 1).bfloat16()},
        TypeError,
        "models of torch.bfloat16 cannot be sent; allowed are float32 and float64",
    ),
    # loss
    "no loss": ({"loss": None}, TypeError, "loss=…): a function (output, target)"),
    "a loss's name": ({"loss": "mse"}, TypeError, "not the str 'mse'"),
    "a loss's class": ({"loss": nn.MSELoss}, TypeError, "such as an instance, MSELoss()"),
    "a loss per sample": (
        {"loss": lambda output, target: (output - target) ** 2},
        TypeError,
        "the loss must be a scalar tensor (shape ()), but is shape (4, 1)",
    ),
    "a loss that is a number": (
        {"loss": lambda output, target: F.mse_loss(output, target).item()},
        TypeError,
        "the loss must be a scalar tensor (shape ()), but is float",
    ),
    "a loss of shape (1,)": (
        {"loss": lambda output, target: F.mse_loss(output, target)[None]},
        TypeError,
        "but is shape (1,)",
    ),
    "a loss without gradient": (
        {"loss": lambda output, target: F.mse_loss(output.detach(), target)},
        ValueError,
        "the loss does not depend on the model's trainable parameters",
    ),
    # optimizer and what goes with it
    "no optimiser": ({"optimizer": None}, TypeError, "optimizer=…): a function (parameters)"),
    "an optimiser's name": ({"optimizer": "sgd"}, TypeError, "not the str 'sgd'"),
    "an optimiser": (
        {"optimizer": sgd(NETWORK.parameters())},
        TypeError,
        "a function (parameters) -> torch.optim.Optimizer is wanted, not an object of type SGD",
    ),
    "a factory of no optimiser": ({"optimizer": lambda p: 5}, TypeError, "it returned 5"),
    "an optimiser of another network": (
        {"optimizer": lambda parameters: sgd(NETWORK.parameters())},
        ValueError,
        "optimizer must be made from the parameters that it is handed",
    ),
    "an optimiser with a closure": (
        {"optimizer": torch.optim.LBFGS},
        TypeError,
        "LBFGS evaluates the loss several times a step, through a closure: give simulate a step=",
    ),
    "a scheduler's name": ({"scheduler": "cosine"}, TypeError, "scheduler=…): a function"),
    "a factory of no scheduler": ({"scheduler": lambda o: o}, TypeError, "it returned SGD"),
    "a scheduler that looks at the loss": (
        {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau},
        TypeError,
        "depends on the round alone, but it returned ReduceLROnPlateau",
    ),
    "a schedule that ends too early": (
        {"scheduler": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=3)},
        ValueError,
        "Tried to step 4 times",
    ),
    "a step that is none": ({"step": 5}, TypeError, "not the int 5"),
    "a step that returns the loss alone": (
        {"step": lambda module, optimizer, x, y: torch.tensor(1.0)},
        TypeError,
        "step must return (loss, output), but returned tensor(1.)",
    ),
    "a step that returns numbers": (
        {"step": lambda module, optimizer, x, y: (1.0, None)},
        TypeError,
        "the loss must be a scalar tensor (shape ()), but is float",
    ),
    "a clip that would be ignored": (
        {"clip": 1.0, "step": lambda *arguments: (torch.tensor(0.0), None)},
        ValueError,
        "an own step clips for itself",
    ),
    "a metric that is none": ({"metric": "accuracy"}, TypeError, "not the str 'accuracy'"),
    "a metric per sample": (
        {"metric": lambda output, target: output > target},
        TypeError,
        "one number, how many predictions of the batch are correct, but returned shape (4, 1)",
    ),
    "a metric of nothing": ({"metric": lambda o, t: None}, TypeError, "but returned None"),
    # place and type
    "no such device": ({"device": "cud"}, ValueError, "device='cud'): cannot compute there"),
    "no device": ({"device": None}, TypeError, "device=…): a name such as 'cpu' is wanted"),
    "a number as device": ({"device": 0}, TypeError, "not the int 0"),
    "a device without numbers": ({"device": "meta"}, ValueError, "cannot compute there"),
    "a dtype's name": ({"dtype": "float64"}, TypeError, "dtype='float64'): torch.float32, torch."),
    "an integer dtype": ({"dtype": torch.int64}, TypeError, "torch.float64 or None is wanted"),
    "half precision asked for": ({"dtype": torch.float16}, TypeError, "or None is wanted"),
    # callbacks
    "a callback alone": ({"callbacks": print}, TypeError, "callbacks=…): a list of functions"),
    "a callback that is none": ({"callbacks": [None]}, TypeError, "a list of functions"),
    "callbacks as text": ({"callbacks": "log"}, TypeError, "not the str 'log'"),
    # evaluate
    "a dataset to evaluate on": ({"evaluate": (X, Y)}, TypeError, "but is a tensor of shape"),
    "evaluation of nothing": ({"evaluate": (None, 2)}, TypeError, "but is None"),
    "evaluation as a list": ({"evaluate": [(X, Y), 2]}, TypeError, "(dataset, every) is wanted"),
    "evaluation every 0": ({"evaluate": ((X, Y), 0)}, ValueError, "evaluate[1]=0): a whole"),
    "evaluation on no samples": ({"evaluate": ((X[:0], Y[:0]), 1)}, ValueError, "is empty"),
    "held-out data that would broadcast": (
        {"evaluate": ((X, Y[:, 0]), 6)},
        ValueError,
        "a loss would broadcast them",
    ),
}
for name, values in {
    "on_sync": ["forget", None, True],
    "buffers": ["averaged", 5],
    "reduction": ["none", None],
    "shard": ["stacked!", ""],
}.items():
    for value in values:
        REFUSED[f"{name}={value!r}"] = ({name: value}, ValueError, f"({name}={value!r}): allowed")
for name, wanted, values in [
    ("seed", "a whole number is wanted", ["0", None, 1.5, True]),
    ("workers", "a whole number >= 1 is wanted", [0, -1, 1.5, "2", True]),
    ("init_noise", "a finite number >= 0 is wanted", [-1, torch.nan, torch.inf, "a", None, True]),
    ("clip", "a number > 0 is wanted", [0, -1, torch.nan, "1", True]),
    ("progress", "True or False is wanted", ["yes", 1]),
    ("divergence", "True or False is wanted", ["no", None]),
]:
    for value in values:
        mistake = (TypeError, ValueError)
        REFUSED[f"{name}={value!r}"] = ({name: value}, mistake, f"({name}={value!r}): {wanted}")


@pytest.mark.parametrize(("changes", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_is_refused_with_what_came_and_what_is_wanted(changes, error, text):
    checks = []
    arguments = {"streams": regression(rounds=6), "operator": Periodic(1)}
    arguments |= {"callbacks": [checks.append]} | changes
    with pytest.raises(error) as caught:
        run(**arguments)
    assert text in str(caught.value)
    assert not checks


def test_a_mistake_in_an_argument_reads_no_batch_of_an_iterator():
    read = []

    def noting():
        for batch in regression(1)[0]:
            read.append(batch)
            yield batch

    for mistake in ({"rounds": 0}, {"seed": None}, {"clip": -1}, {"on_sync": "x"}):
        stream = noting()
        with pytest.raises((TypeError, ValueError)):
            run(streams=[stream], **mistake)
    assert len(read) <= 1  # rounds are compared with the streams, whose first batch is then read


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_a_scripted_network_is_refused_also_as_a_part():
    with pytest.raises(TypeError, match="returned a scripted network, whose copies cannot learn"):
        run(model=lambda: nn.Sequential(torch.jit.script(nn.Linear(3, 1))))


def test_nothing_is_required_by_position():
    with pytest.raises(TypeError, match="positional"):
        dynavg.simulate(lambda: nn.Linear(3, 1), F.mse_loss)


SERIAL = {
    "batch": ({"batch": "both"}, ValueError, "serial(batch='both'): allowed are 'sequential', 'j"),
    "rounds": ({"rounds": 0}, ValueError, "serial(rounds=0)"),
    "too many rounds": ({"rounds": 9}, ValueError, "serial(rounds=9): the streams have only 6"),
    "evaluation of nothing": ({"evaluate": 5}, TypeError, "serial(evaluate=…): (dataset, every)"),
    "evaluation by a truth": ({"evaluate": ((X, Y), True)}, TypeError, "evaluate[1]=True"),
    "an unknown argument": ({"lerners": 3}, TypeError, "unexpected keyword argument 'lerners'"),
}


@pytest.mark.parametrize(("changes", "error", "text"), SERIAL.values(), ids=SERIAL.keys())
def test_serial_refuses_mistakes_too(changes, error, text):
    arguments = {"model": lambda: nn.Linear(3, 1), "loss": F.mse_loss, "optimizer": sgd}
    arguments |= {"streams": regression(rounds=6), "rounds": 6, "operator": NoSync()}
    with pytest.raises(error) as caught:
        dynavg.serial(**arguments | changes)
    assert text in str(caught.value)
