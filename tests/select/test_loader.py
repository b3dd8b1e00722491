"""The loader of PyTorch: chooses as the core does, resumes, and leaves the model as it was."""

import json

import numpy as np
import pytest

from ital import errors, select

torch = pytest.importorskip("torch")
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from ital.select.torch import Indexed, TeachingLoader, precompute_reference  # noqa: E402

rng = np.random.default_rng(0)
X = torch.tensor(rng.normal(size=(60, 4)), dtype=torch.float32)
Y = torch.tensor(rng.integers(3, size=60))
DATA = TensorDataset(X, Y)


def network(seed, *, norm=False):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)] if norm else [torch.nn.Linear(4, 8)]
    return torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(8, 3))


def large(**options):
    return DataLoader(Indexed(DATA), 20, shuffle=True, generator=torch.Generator().manual_seed(3), **options)


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
    loader = TeachingLoader(large(), model, reference, 5, squared_norms=select.squared_norms_of, lr=3.0)
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
    assert any(not torch.equal(one, two) for one, two in zip(first, (c.indices for c in loader), strict=True))


def test_any_loss_and_labels():
    data = TensorDataset(X, X[:, :1] * 2)
    squared = lambda outputs, y: ((outputs - y) ** 2).mean(dim=1)  # noqa: E731
    torch.manual_seed(0)
    model, reference = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
    chosen = next(iter(TeachingLoader(DataLoader(data, 30), model, reference, 7, loss=squared)))
    with torch.no_grad():
        scores = squared(model(X[:30]), data[:30][1]) - squared(reference(X[:30]), data[:30][1])
    assert torch.equal(chosen.indices, select.choose(scores, 7))  # places, since the loader gives no rows


def test_a_compiled_model_and_mixed_precision():
    model, reference = network(1), network(2)
    plain = next(iter(TeachingLoader(large(), model, reference, 5)))
    compiled = torch.compile(model, backend="eager")
    assert torch.equal(next(iter(TeachingLoader(large(), compiled, reference, 5))).indices, plain.indices)
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
    assert torch.equal(chosen.indices, next(iter(TeachingLoader(large(), network(1), model, 5))).indices)
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
