import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    torch.manual_seed(5)
    encoder = nn.Linear(6, 3)
    decoder = nn.Linear(3, 6)
    params = list(encoder.parameters()) + list(decoder.parameters())
    opt = torch.optim.Adam(params, lr=1e-2)
    data = torch.rand(40, 6)

    def reconstruct(x):
        return torch.sigmoid(decoder(F.relu(encoder(x))))

    def loss_fn(x):
        return F.binary_cross_entropy(reconstruct(x), x)

    for epoch in range(5):
        for batch in data.split(10):
            opt.zero_grad()
            loss = loss_fn(batch)
            loss.backward()
            opt.step()
        with torch.no_grad():
            print(f'{epoch} {loss_fn(data).item():.5f}')


main()
