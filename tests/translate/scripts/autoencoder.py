import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    """Convolutional autoencoder."""

    def __init__(self, latent: int = 3) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * 16, latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 4 * 16),
            nn.Unflatten(1, (4, 4, 4)),
            nn.ReLU(),
            nn.ConvTranspose2d(4, 1, 3, stride=2, padding=1, output_padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = self.encoder(x)
        return self.decoder(z), z


images = (torch.linspace(-4, 4, 10 * 64).sin().reshape(10, 1, 8, 8) + 1) / 2
train_loader = DataLoader(TensorDataset(images[:6]), batch_size=3)
val_loader = DataLoader(TensorDataset(images[6:]), batch_size=2)
history, rates = [], []
model = Autoencoder()
# train
optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0, threshold=0.1)
best = float("inf")

for epoch in range(4):
    model.train()
    running_loss = 0.0
    for (batch,) in train_loader:
        reconstruction, z = model(batch)
        reconstruction_loss = nn.functional.mse_loss(reconstruction, batch)
        sparsity = 1e-3 * z.abs().mean()
        loss = reconstruction_loss + sparsity
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
        running_loss += loss.item() * batch.size(0)
    running_loss /= len(train_loader.dataset)

    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for (batch,) in val_loader:
            reconstruction, _ = model(batch)
            val_loss += nn.functional.mse_loss(reconstruction, batch, reduction="sum").item()
    val_loss /= len(val_loader.dataset)
    scheduler.step(val_loss)
    best = min(best, val_loss)
    history += [running_loss, val_loss, best]
    rates.append(optimizer.param_groups[0]["lr"])
    print(f"epoch {epoch}: train {running_loss:.4f}, val {val_loss:.4f}")
