"""Two circles told apart: annotated step functions, an accuracy in percent, a dict of results."""
import torch
from torch import nn
from timeit import default_timer as timer
from typing import Dict, List, Tuple

device = "cuda" if torch.cuda.is_available() else "cpu"
RANDOM_SEED = 42
torch.manual_seed(RANDOM_SEED)

n_samples = 80
angle = torch.rand(n_samples) * 6.2831
radius = torch.where(torch.arange(n_samples) % 2 == 0, 1.0, 0.6)
X = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1) + 0.03 * torch.randn(n_samples, 2)
y = (torch.arange(n_samples) % 2).type(torch.float)
train_split = int(0.8 * len(X))
X_train, y_train = X[:train_split], y[:train_split]
X_test, y_test = X[train_split:], y[train_split:]


class CircleModelV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(in_features=2, out_features=10)
        self.layer_2 = nn.Linear(in_features=10, out_features=10)
        self.layer_3 = nn.Linear(in_features=10, out_features=1)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.layer_3(self.relu(self.layer_2(self.relu(self.layer_1(x)))))


def accuracy_fn(y_true, y_pred):
    correct = torch.eq(y_true, y_pred).sum().item()
    acc = (correct / len(y_pred)) * 100
    return acc


def print_train_time(start: float, end: float, device: torch.device = None):
    total_time = end - start
    print(f"Train time on {device}: {total_time:.3f} seconds")
    return total_time


def train_step(model: torch.nn.Module, X, y, loss_fn: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Tuple[float, float]:
    model.train()
    y_logits = model(X).squeeze()
    y_pred = torch.round(torch.sigmoid(y_logits))
    loss = loss_fn(y_logits, y)
    acc = accuracy_fn(y_true=y, y_pred=y_pred)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), acc


def test_step(model: torch.nn.Module, X, y, loss_fn) -> Tuple[float, float]:
    model.eval()
    with torch.inference_mode():
        test_logits = model(X).squeeze()
        test_pred = torch.round(torch.sigmoid(test_logits))
        test_loss = loss_fn(test_logits, y)
        test_acc = accuracy_fn(y_true=y, y_pred=test_pred)
    return test_loss.item(), test_acc


def train(model, epochs: int) -> Dict[str, List]:
    results = {"train_loss": [], "train_acc": [], "test_loss": [], "test_acc": []}
    loss_fn = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        train_loss, train_acc = train_step(model, X_train, y_train, loss_fn, optimizer)
        test_loss, test_acc = test_step(model, X_test, y_test, loss_fn)
        if epoch % 10 == 0:
            print(f"Epoch: {epoch} | Loss: {train_loss:.5f}, Accuracy: {train_acc:.2f}% | Test Loss: {test_loss:.5f}, Test Accuracy: {test_acc:.2f}%")
        results["train_loss"].append(train_loss)
        results["train_acc"].append(train_acc)
        results["test_loss"].append(test_loss)
        results["test_acc"].append(test_acc)
    return results


if __name__ == "__main__":
    X_train, y_train = X_train.to(device), y_train.to(device)
    X_test, y_test = X_test.to(device), y_test.to(device)
    model_3 = CircleModelV2().to(device)
    start_time = timer()
    model_3_results = train(model=model_3, epochs=40)
    end_time = timer()
    model_3.eval()
    with torch.inference_mode():
        y_preds = torch.round(torch.sigmoid(model_3(X_test))).squeeze()
    print(y_preds[:10], y_test[:10])
    print(model_3.state_dict()["layer_3.bias"])
    print(max(model_3_results["test_acc"]))
