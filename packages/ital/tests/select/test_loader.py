"""The loader of PyTorch: chooses as the core does, resumes, and leaves the model as it was."""

import json

import numpy as np
import pytest

from ital import errors, select

torch = pytest.importorskip("torch")
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from ital.select.torch import (  # noqa: E402
    Indexed,
    TeachingLoader,
    cross_reference,
    precompute_reference,
)

rng = np.random.default_rng(0)
X = torch.tensor(rng.normal(size=(60, 4)), dtype=torch.float32)
Y = torch.tensor(rng.integers(3, size=60))
DATA = TensorDataset(X, Y)


def network(seed, *, norm=False):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)] if norm else [torch.nn.Linear(4, 8)]
    return torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(8, 3))


def large(**options):
    return DataLoader(
        Indexed(DATA), 20, shuffle=True, generator=torch.Generator().manual_seed(3), **options
    )


def losses_of(model, rows):
    with torch.no_grad():
        return cross_entropy(model(X[rows]), Y[rows], reduction="none")


def test_it_yields_the_examples_of_largest_volume():
    model, reference = network(1), network(2)
    for batch, chosen in zip(large(), TeachingLoader(large(), model, reference, 5), strict=True):
        rows = batch[2]
        best = select.choose(losses_of(model, rows) - losses_of(reference, rows), 5)
        assert torch.equal(chosen.indices, rows[best])
        assert torch.equal(chosen.x, X[chosen.indices])
        assert torch.equal(chosen.y, Y[chosen.indices])
        assert torch.equal(chosen.large[0][chosen.places], chosen.x)
        torch.testing.assert_close(chosen.losses[chosen.places], losses_of(model, chosen.indices))
        assert torch.all(chosen.scores[:-1] >= chosen.scores[1:])


def test_the_norms_count_with_the_step_size():
    model, reference = network(1), network(2)
    loader = TeachingLoader(
        large(), model, reference, 5, squared_norms=select.squared_norms_of, lr=3.0
    )
    chosen = next(iter(loader))
    rows = next(iter(large()))[2]
    with torch.no_grad():
        norms = select.squared_norms_of(model(X[rows]), Y[rows])
    scores = select.volumes(losses_of(model, rows), losses_of(reference, rows), norms, 3.0)
    assert torch.equal(chosen.indices, rows[select.choose(scores, 5)])


def test_it_follows_the_model_and_leaves_it_as_it_was():
    model = network(1, norm=True).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    loader = TeachingLoader(large(), model, network(2), 5)
    first = [chosen.indices for chosen in loader]
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(value.grad is None for value in model.parameters())
    with torch.no_grad():
        model[0].weight.mul_(-3)
    assert any(
        not torch.equal(one, two)
        for one, two in zip(first, (c.indices for c in loader), strict=True)
    )


def test_any_loss_and_labels():
    data = TensorDataset(X, X[:, :1] * 2)
    squared = lambda outputs, y: ((outputs - y) ** 2).mean(dim=1)  # noqa: E731
    torch.manual_seed(0)
    model, reference = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
    chosen = next(iter(TeachingLoader(DataLoader(data, 30), model, reference, 7, loss=squared)))
    with torch.no_grad():
        scores = squared(model(X[:30]), data[:30][1]) - squared(reference(X[:30]), data[:30][1])
    # Places, since the loader gives no rows.
    assert torch.equal(chosen.indices, select.choose(scores, 7))


def test_a_compiled_model_and_mixed_precision():
    model, reference = network(1), network(2)
    plain = next(iter(TeachingLoader(large(), model, reference, 5)))
    compiled = torch.compile(model, backend="eager")
    assert torch.equal(
        next(iter(TeachingLoader(large(), compiled, reference, 5))).indices, plain.indices
    )
    mixed = next(iter(TeachingLoader(large(), model, reference, 5, autocast=torch.bfloat16)))
    assert mixed.losses.dtype == torch.float32
    assert 0 < float((mixed.losses - plain.losses).abs().max()) < 0.1


def test_a_checkpoint_resumes_with_the_same_choices(tmp_path):
    def fresh():
        return TeachingLoader(large(), network(1), network(2), 5, temperature=0.5, seed=4)

    loader = fresh()
    whole = [chosen.indices for _ in range(2) for chosen in loader]
    loader, seen = fresh(), []
    for chosen in loader:
        seen.append(chosen.indices)
        if len(seen) == 2:
            break
    torch.save(loader.state_dict(), tmp_path / "checkpoint.pt")
    loader = fresh()
    loader.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=False))
    seen += [chosen.indices for _ in range(2) for chosen in loader]
    assert len(seen) == len(whole)
    assert all(torch.equal(one, two) for one, two in zip(whole, seen, strict=True))


def test_reference_losses_are_computed_once_and_resume(tmp_path):
    model, file = network(2), tmp_path / "losses.npy"
    expected = losses_of(model, torch.arange(60))
    calls = []

    class Broken(torch.utils.data.Dataset):
        def __len__(self):
            return 60

        def __getitem__(self, index):
            if index == 45 and len(calls) < 60:
                raise RuntimeError("power cut")
            calls.append(index)
            return X[index], Y[index]

    with pytest.raises(RuntimeError):
        precompute_reference(model, Broken(), file, batch_size=10)
    assert json.loads(file.with_suffix(".json").read_text())["done"] == 40
    calls.clear()
    calls.extend(range(60))
    torch.testing.assert_close(precompute_reference(model, Broken(), file, batch_size=10), expected)
    assert calls[60:] == list(range(40, 60))
    again = precompute_reference(model, unread(60), file)
    torch.testing.assert_close(again, expected)
    chosen = next(iter(TeachingLoader(large(), network(1), again, 5)))
    assert torch.equal(
        chosen.indices, next(iter(TeachingLoader(large(), network(1), model, 5))).indices
    )
    with pytest.raises(errors.InputError, match="was computed with another model: remove it"):
        precompute_reference(network(3), DATA, file)


def unread(count):
    class Unread(torch.utils.data.Dataset):
        def __len__(self):
            return count

        def __getitem__(self, index):
            raise AssertionError("read again")

    return Unread()


def test_mistakes_are_said_in_a_line(tmp_path):
    for options, said in (
        ({"k": 0}, "k must be at least 1"),
        ({"k": 2, "squared_norms": select.squared_norms_of}, "squared_norms need lr"),
    ):
        with pytest.raises(errors.InputError, match=said):
            TeachingLoader(large(), network(1), network(2), **options)
    with pytest.raises(errors.InputError, match="wrap the dataset in Indexed"):
        next(iter(TeachingLoader(DataLoader(DATA, 20), network(1), torch.zeros(60), 5)))
    broken = network(2)
    with torch.no_grad():
        broken[0].bias[:] = torch.nan
    with pytest.raises(errors.InputError, match="not finite in rows 0 to 59"):
        precompute_reference(broken, DATA, tmp_path / "nan.npy")


def test_a_large_batch_is_scored_once_for_several_small_ones():
    scored = []

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network(1)

        def forward(self, x):
            scored.append(len(x))
            return self.inner(x)

    model, reference = Counting(), network(2)
    loader = TeachingLoader(large(), model, reference, 5, every=3)
    assert len(loader) == 9
    found = [chosen.indices for chosen in loader]
    assert scored == [20, 20, 20]
    for batch, group in zip(large(), (found[:3], found[3:6], found[6:]), strict=True):
        rows = batch[2]
        best = select.choose(losses_of(model.inner, rows) - losses_of(reference, rows), 15)
        assert torch.equal(torch.cat(group), rows[best])


def test_a_small_network_may_score():
    model, reference, scorer = network(1), network(2), network(3)
    chosen = next(iter(TeachingLoader(large(), model, reference, 5, scorer=scorer)))
    rows = next(iter(large()))[2]
    assert torch.equal(
        chosen.indices, rows[select.choose(losses_of(scorer, rows) - losses_of(reference, rows), 5)]
    )


class Jittered(torch.utils.data.Dataset):
    """Rows with a random transform, which draws from the global generator."""

    def __len__(self):
        return len(DATA)

    def __getitem__(self, index):
        return X[index] + 0.01 * torch.rand(4), Y[index], index


WORKER = {"num_workers": 1, "multiprocessing_context": "spawn"}


@pytest.mark.parametrize(
    "options", [{}, {"generator": True}, pytest.param(WORKER, marks=pytest.mark.slow)]
)
def test_every_epoch_resumes_identically_and_global_randomness_stays(options):
    def fresh():
        made = dict(options)
        if made.pop("generator", False):
            made["generator"] = torch.Generator().manual_seed(3)
        return TeachingLoader(
            DataLoader(Jittered(), 20, shuffle=True, **made), model, reference, 5, every=2, seed=4
        )

    model, reference = network(1), network(2)
    torch.manual_seed(11)
    before = torch.get_rng_state()
    loader = fresh()
    whole = [chosen.x for _ in range(2) for chosen in loader]
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(whole[0], whole[6])  # another order in the second epoch
    first, seen = fresh(), []
    seen += [chosen.x for chosen in first]
    for chosen in first:  # the second epoch, cut within a large batch
        seen.append(chosen.x)
        if len(seen) == 9:
            break
    torch.manual_seed(12)
    resumed = fresh()
    resumed.load_state_dict(first.state_dict())
    if resumed.loader.generator is not None:
        resumed.loader.generator.manual_seed(5)
    seen += [chosen.x for chosen in resumed]
    assert len(seen) == len(whole)
    assert all(torch.equal(one, two) for one, two in zip(whole, seen, strict=True))


def test_precomputing_leaves_global_randomness_alone(tmp_path):
    model = network(2)
    before = torch.get_rng_state()
    precompute_reference(model, DATA, tmp_path / "losses.npy")
    assert torch.equal(torch.get_rng_state(), before)


def test_an_epoch_of_persistent_workers_does_not_resume():
    loader = TeachingLoader(
        large(num_workers=1, persistent_workers=True), network(1), network(2), 5
    )
    loader.load_state_dict(loader.state_dict() | {"done": 1})
    with pytest.raises(errors.InputError, match="persistent_workers=False"):
        next(iter(loader))


def test_each_half_is_judged_by_a_model_that_learned_the_other():
    learned = []

    def train(half):
        learned.append(sorted(half.indices))
        return network(len(learned))

    before = torch.get_rng_state()
    found = cross_reference(train, DATA, seed=1, batch_size=7)
    first, second = learned
    assert sorted(first + second) == list(range(60))
    assert len(first) == len(second) == 30
    torch.testing.assert_close(found[second], losses_of(network(1), second))
    torch.testing.assert_close(found[first], losses_of(network(2), first))
    torch.set_rng_state(before)
    with pytest.raises(errors.InputError, match="at least two rows"):
        cross_reference(train, TensorDataset(X[:1], Y[:1]))


def test_what_is_no_loader_or_no_reference_is_said_in_a_line():
    model = network(1)
    with pytest.raises(errors.InputError, match="must be a DataLoader of large batches, not list"):
        TeachingLoader([(X, Y)], model, network(2), 5)
    with pytest.raises(
        errors.InputError, match="the reference has 59 losses, but the dataset has 60 rows"
    ):
        TeachingLoader(large(), model, torch.zeros(59), 5)
    with pytest.raises(errors.InputError, match="every must be at least 1"):
        TeachingLoader(large(), model, network(2), 5, every=0)
    with pytest.raises(
        errors.InputError, match="no state of a TeachingLoader: it lacks done, next_own"
    ):
        TeachingLoader(large(), model, network(2), 5).load_state_dict({"a": 1})
    with torch.no_grad():
        model[0].bias[:] = torch.nan
    with pytest.raises(errors.InputError, match="20 of 20 scores are not finite"):
        next(iter(TeachingLoader(large(), model, network(2), 5)))
