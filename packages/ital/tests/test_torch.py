"""PyTorch networks in the loop: same numbers as a JAX network, and the weights return to the
network.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import errors, losses, models, tasks

torch = pytest.importorskip("torch")

ROWS, WIDTH, CLASSES = 5, 4, 3
rng = np.random.default_rng(0)
X = rng.standard_normal((60, ROWS))
Y = np.argmax(X @ rng.standard_normal((ROWS, CLASSES)), axis=1)


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(ROWS, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, CLASSES)
    )


def answer(params, x):
    """The same network in JAX, from one vector of parameters in PyTorch's order."""
    weights, params = params[: ROWS * WIDTH].reshape(WIDTH, ROWS), params[ROWS * WIDTH :]
    bias, params = params[:WIDTH], params[WIDTH:]
    last, last_bias = params[: WIDTH * CLASSES].reshape(CLASSES, WIDTH), params[WIDTH * CLASSES :]
    return last @ jnp.tanh(weights @ x + bias) + last_bias


def task_of(make, **options):
    return tasks.from_arrays(X, y=Y, name="rows", model=make, beta=5.0, quiet=True, **options)


@pytest.fixture(scope="module")
def taught():
    """Both networks taught from the same start."""
    torch_network = network()
    vector = np.concatenate([each.detach().numpy().ravel() for each in torch_network.parameters()])
    makers = {
        "torch": lambda loss: ital.torch.model(torch_network, loss, fresh=False),
        "jax": lambda loss: models.differentiable(
            "mlp", lambda key: jnp.asarray(vector), answer, loss
        ),
    }
    options = {
        "learner": ["imt", "ital", "ital-2"],
        "steps": 20,
        "seeds": 2,
        "lr": 0.1,
        "batch_size": 6,
    }
    return {
        name: ital.teach(task_of(make), **options) for name, make in makers.items()
    }, torch_network


def test_teaching_is_that_of_the_same_network_in_jax(taught):
    results, _ = taught
    for method in ("imt", "ital", "ital-2"):
        here, there = (results[name].parameters[method] for name in ("torch", "jax"))
        np.testing.assert_allclose(here, there, atol=2e-5)
    np.testing.assert_allclose(
        results["torch"].curves["loss"], results["jax"].curves["loss"], atol=2e-5
    )
    assert not np.allclose(
        *(results["torch"].parameters[method] for method in ("imt", "ital")), atol=1e-3
    )


def test_what_was_learned_goes_back_into_the_network(taught):
    results, start = taught
    other = network(seed=1)
    ital.torch.load(other, results["torch"].parameters["ital"][0])
    rows = torch.randn(4, ROWS)
    expected = jax.vmap(answer, in_axes=(None, 0))(
        results["jax"].parameters["ital"][0], rows.numpy()
    )
    np.testing.assert_allclose(other(rows).detach().numpy(), expected, atol=1e-4)
    # The original stays.
    np.testing.assert_array_equal(start(rows).detach().numpy(), network()(rows).detach().numpy())


@pytest.mark.usefixtures("x64")
def test_gradients_are_those_of_autodiff():
    made = ital.torch.model(network().double(), losses.cross_entropy, fresh=False)
    params = made.start(jax.random.key(0), models.OWN, X, CLASSES)
    expected = models.differentiable(
        "mlp", lambda key: params, answer, losses.cross_entropy
    ).gradients(params, X, Y)
    found = made.gradients(params, jnp.asarray(X), jnp.asarray(Y))
    weights, direction = rng.standard_normal(len(X)), rng.standard_normal(len(params))
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-12)
    np.testing.assert_allclose(found.squared_norms, expected.squared_norms, rtol=1e-10)
    np.testing.assert_allclose(found.inner(direction), expected.inner(direction), rtol=1e-9)
    np.testing.assert_allclose(
        found.weighted_sum(weights), expected.weighted_sum(weights), rtol=1e-9, atol=1e-12
    )


def test_every_seed_has_a_start_of_its_own_and_always_the_same():
    made = ital.torch.model(network(), losses.cross_entropy)
    before = torch.random.get_rng_state()
    keys = jax.random.split(jax.random.key(0), 3)
    first, again = (
        jax.vmap(lambda key: made.start(key, models.OWN, X, CLASSES))(keys) for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first[:, 0])) == 3
    # As PyTorch draws a linear layer.
    assert np.abs(first[:, : ROWS * WIDTH]).max() <= 1 / np.sqrt(ROWS)
    assert torch.equal(before, torch.random.get_rng_state())


def test_fixed_parameters_stay_fixed():
    frozen = network()
    frozen[0].requires_grad_(False)
    result = ital.teach(
        task_of(lambda loss: ital.torch.model(frozen, loss)), learner="imt", steps=5, seeds=1
    )
    assert result.parameters["imt"].shape == (1, WIDTH * CLASSES + CLASSES)


class Counting(torch.nn.Module):
    """Branches on values, which per-example gradients cannot follow."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return self.inner(x) if x.sum().item() > 0 else self.inner(-x)


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: torch.nn.Sequential(torch.nn.Linear(9, CLASSES)), {}, r"rows of shape \(5,\)"),
        (
            lambda: torch.nn.Sequential(torch.nn.Linear(ROWS, 7)),
            {},
            r"outputs of shape \(7,\).*expected \(3,\)",
        ),
        (lambda: torch.nn.Sequential(torch.nn.Flatten()), {}, "nothing to teach"),
        (Counting, {}, "cannot be taught"),
        (network, {"init": "normal:0.1"}, "draws its own start"),
    ],
)
def test_networks_that_do_not_fit_are_refused_in_one_line(make, options, words):
    with pytest.raises(errors.InputError, match=words) as refused:
        ital.teach(
            task_of(lambda loss: ital.torch.model(make(), loss), **options),
            learner="imt",
            steps=2,
            seeds=1,
        )
    assert "\n" not in str(refused.value)


def test_parameters_of_several_seeds_are_not_loaded():
    with pytest.raises(errors.InputError, match="one learner and one seed"):
        ital.torch.load(network(), np.zeros((2, 39)))
