import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm1d(4)
        self.fc = nn.Linear(4 * 8, 2)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return self.fc(x.view(x.size(0), -1))


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(80, 1, 8)
y = (x.sum((1, 2)) > 0).long()
train_loader = DataLoader(TensorDataset(x[:60], y[:60]), batch_size=20, shuffle=True)
val_loader = DataLoader(TensorDataset(x[60:], y[60:]), batch_size=20)
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
best_acc = 0.0
PATH = "best_model.pth"
for epoch in range(4):
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            outputs = model(inputs.to(device))
            _, predicted = torch.max(outputs, 1)
            total += labels.size(0)
            correct += (predicted == labels.to(device)).sum().item()
    acc = correct / total
    print(f"Epoch {epoch + 1}: loss {running_loss / len(train_loader):.4f} acc {acc:.3f}")
    if acc > best_acc:
        best_acc = acc
        torch.save(model.state_dict(), PATH)

model = Net().to(device)
model.load_state_dict(torch.load(PATH, map_location=device, weights_only=True))
model.eval()
with torch.no_grad():
    print("best:", criterion(model(x[60:].to(device)), y[60:].to(device)).item())
