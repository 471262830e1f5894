"""A variational autoencoder whose functions read the model, the optimizer and the loader of the module level."""

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()

        self.fc1 = nn.Linear(12, 8)
        self.fc21 = nn.Linear(8, 3)
        self.fc22 = nn.Linear(8, 3)
        self.fc3 = nn.Linear(3, 8)
        self.fc4 = nn.Linear(8, 12)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5*logvar)
        return mu + eps*std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 12))
        z = self.reparameterize(mu, logvar, eps)
        return self.decode(z), mu, logvar


device = torch.device("cpu")
images = (torch.linspace(-4, 4, 10 * 12).sin().reshape(10, 1, 3, 4) + 1) / 2
noise = torch.linspace(-3, 3, 10 * 3).cos().reshape(10, 3)
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images[:6], noise[:6]), batch_size=3, shuffle=False)
test_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images[6:], noise[6:]), batch_size=2, shuffle=False)
losses = []
model = VAE().to(device)
# train
optimizer = optim.Adam(model.parameters(), lr=1e-2)


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 12), reduction='sum')

    # see Appendix B from VAE paper:
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    return BCE + KLD


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data, eps) in enumerate(train_loader):
        data = data.to(device)
        eps = eps.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data, eps)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % 1 == 0:
            print('Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}'.format(
                epoch, batch_idx * len(data), len(train_loader.dataset),
                100. * batch_idx / len(train_loader),
                loss.item() / len(data)))

    losses.append(train_loss / len(train_loader.dataset))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for i, (data, eps) in enumerate(test_loader):
            data, eps = data.to(device), eps.to(device)
            recon_batch, mu, logvar = model(data, eps)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()

    test_loss /= len(test_loader.dataset)
    losses.append(test_loss)
    print('====> Test set loss: {:.4f}'.format(test_loss))


for epoch in range(1, 4):
    train(epoch)
    test(epoch)
