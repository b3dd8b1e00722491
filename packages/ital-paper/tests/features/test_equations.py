import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital.errors import InputError
from ital_paper import equation as eq
from ital_paper import features
from ital_paper.equation.network import Network, features_of
from ital_paper.features import _equations
from ital_paper.features._equations import EncodedPairs, EquationRecipe

SMALL = EquationRecipe(
    trajectories=5, held_out=20, rows=30, test_rows=10, fresh=1, epochs=2, batch=64
)
loss_of = eqx.filter_jit(_equations.loss_of)


@pytest.fixture(scope="module")
def pairs():
    return _equations.encoded_pairs(5, 0, count=20)


def test_pairs_are_those_of_the_trajectories(pairs):
    made = eq.some_pairs(5, 0, 20)
    texts = eq.encode(made.texts)
    for places, kind in (
        (pairs.consecutive, "next"),
        (pairs.later, "later"),
        (pairs.negatives, "other"),
    ):
        np.testing.assert_array_equal(
            pairs.codes[places[:, 0]], texts[made.high[made.kinds == kind]]
        )
        np.testing.assert_array_equal(
            pairs.codes[places[:, 1]], texts[made.low[made.kinds == kind]]
        )
    assert pairs.positives("consecutive") is pairs.consecutive
    assert pairs.positives("any") is pairs.later
    both = _equations.joined_pairs([pairs, pairs])
    np.testing.assert_array_equal(
        both.codes[both.negatives], np.concatenate([pairs.codes[pairs.negatives]] * 2)
    )


def test_more_negatives_where_asked_for():
    once, thrice = (_equations.encoded_pairs(5, 0, count=20, negatives=times) for times in (1, 3))
    assert 2.5 * len(once.negatives) < len(thrice.negatives) < 3.5 * len(once.negatives)


def test_loss_is_the_sum_of_two_mean_hinges(pairs):
    network = Network(6, jax.random.key(0))
    values = np.asarray(features_of(network)(pairs.codes) @ network.value, np.float64)
    up, down = pairs.later[:7], pairs.negatives[:11]
    hinge = lambda p: np.maximum(0, 1 - (values[p[:, 0]] - values[p[:, 1]])).mean()  # noqa: E731
    expected = hinge(up) + hinge(down) + 0.25 * np.sum(np.asarray(network.value, np.float64) ** 2)
    loss = loss_of(network, jnp.asarray(pairs.codes), jnp.asarray(up), jnp.asarray(down), 0.5)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_accuracy_counts_pairs_by_operation(pairs):
    network = Network(6, jax.random.key(0))
    report = _equations.pair_accuracy(network, pairs)
    values = features_of(network)(pairs.codes) @ np.asarray(network.value)
    is_move = pairs.negative_operations == "move"
    of_moves = values[pairs.negatives[is_move, 0]] > values[pairs.negatives[is_move, 1]]
    assert report["negatives by operation"]["move"] == {
        "accuracy": of_moves.mean(),
        "pairs": is_move.sum(),
    }
    swapped = EncodedPairs(pairs.codes, *(places[:, ::-1] for places in pairs[1:4]), *pairs[4:])
    other_way = _equations.pair_accuracy(network, swapped)
    for kind in ("all", "any later"):
        assert other_way[kind] == pytest.approx(1 - report[kind], abs=0.02)


class Stop(Exception):
    """An interruption."""


def test_build_resumes_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(_equations, "NETWORKS", ("5", "4"))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    whole = features.load(_equations.build_equations(tmp_path / "whole.npz", recipe=SMALL))
    assert not (tmp_path / "whole.npz.building").exists()
    told = []

    def interrupt(done, text):
        told.append(text)
        if text.startswith("equation 4: step"):
            raise Stop

    with pytest.raises(Stop):
        _equations.build_equations(tmp_path / "half.npz", recipe=SMALL, show=interrupt)
    before = len(told)
    half = features.load(
        _equations.build_equations(
            tmp_path / "half.npz", recipe=SMALL, show=lambda done, text: told.append(text)
        )
    )
    assert not any(text.startswith("equation 5: step") for text in told[before:])
    assert half.version == whole.version

    assert {name: view.shape for name, view in whole.views.items()} == {"5": (30, 5), "4": (30, 4)}
    np.testing.assert_allclose(
        whole.labels,
        whole.views["5"].astype(np.float32) @ whole.last_layers["5"][0, :-1],
        rtol=1e-6,
    )
    assert whole.test_views["5"].shape == (10, 5)
    lines = _equations.check_equations(tmp_path / "whole.npz")
    assert any("learner 5" in line for line in lines)

    other = whole._replace(weights={**whole.weights, "4/00": 2 * whole.weights["4/00"]})
    with pytest.raises(InputError, match="rows of 4 are not"):
        _equations.check_equations(features.save(other, tmp_path / "other.npz"))


def test_training_lowers_the_loss(pairs, tmp_path):
    def loss(network):
        return float(
            loss_of(network, *map(jnp.asarray, (pairs.codes, pairs.later, pairs.negatives)), 0.0)
        )

    recipe = SMALL._replace(epochs=3, batch=128, rate=3e-3, positives="any")
    trained = _equations.train_on_pairs(
        5, pairs, recipe, seed=0, checkpoint=tmp_path / "5.eqx", show=lambda done, text: None
    )
    assert loss(trained) < 0.9 * loss(Network(5, jax.random.key(0)))


def test_data_is_refused(tmp_path):
    with pytest.raises(InputError, match="need no data"):
        features.build("equation", tmp_path, tmp_path / "e.npz")


def test_positives_are_those_of_equations(tmp_path):
    with pytest.raises(InputError, match="consecutive or any, not 'some'"):
        features.build("equation", out=tmp_path / "e.npz", positives="some")
    with pytest.raises(InputError, match="mnist has none"):
        features.build("mnist", out=tmp_path / "m.npz", positives="any")
    assert not list(tmp_path.iterdir())


def test_the_shipped_networks_simplify_and_the_card_says_how_well():
    loaded = features.load(features.find("equation"))
    for name in ("45", "40", "50"):
        reached = loaded.card["reached"][name]
        assert reached["pairs"]["all"] > 0.9
        assert set(reached["pairs"]["positives by operation"]) >= {
            "move",
            "merge",
            "scale",
            "cancel denominators",
        }
        assert reached["simplification"]["w*"] > 0.9
        assert reached["simplification"]["random w"] < 0.05
    assert len(loaded.labels) == 20_000
    assert len(loaded.test_labels) == 5_000
    network = _equations.from_weights(45, loaded.weights, "45/")
    found = _equations.search_accuracy(network, seed=77, fresh=25, random=1)
    assert found["w*"] >= 0.8
    assert found["random w"] < 0.2
