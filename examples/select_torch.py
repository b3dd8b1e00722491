"""Choose training batches in PyTorch: the digits of scikit-learn with 40 % wrong labels, three ways
to choose.

Run: python examples/select_torch.py
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from ital.select.torch import TeachingLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300, help="training steps of each learner")
STEPS = parser.parse_args().steps

rng = np.random.default_rng(0)
torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x / 16, dtype=torch.float32)
order = rng.permutation(len(x))
test = order[:400]
trusted = order[400:600]
rest = order[600:]
wrong = rng.random(len(x)) < 0.4
noisy = torch.tensor(np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y))
y = torch.tensor(y)


def network():
    """A small network."""
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def train(model, batches, steps=STEPS):
    """Train on batches (x, y); return the model."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    done = 0
    while done < steps:
        for batch in batches:
            loss = cross_entropy(model(batch[0]), batch[1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
    return model


def accuracy(model):
    """The share of test digits that the model knows."""
    return (model(x[test]).argmax(1) == y[test]).float().mean().item()


reference = train(
    network(), DataLoader(TensorDataset(x[trusted], y[trusted]), 32, shuffle=True), 200
)
data = TensorDataset(x[rest], noisy[rest])
print(f"reference, trained on {len(trusted)} trusted rows: {accuracy(reference):.3f}")
print(
    f"uniform batches of 32: {accuracy(train(network(), DataLoader(data, 32, shuffle=True))):.3f}"
)
model = network()
loader = TeachingLoader(DataLoader(data, 320, shuffle=True), model, reference, k=32)
print(f"32 of 320 by teaching volume: {accuracy(train(model, loader)):.3f}")
