"""Physics-informed network for a damped oscillator: u'' + mu u' + k u = 0, u(0) = 1, u'(0) = 0."""
import torch
import torch.nn as nn


class FCN(nn.Module):
    "Defines a connected network"

    def __init__(self, N_INPUT, N_OUTPUT, N_HIDDEN, N_LAYERS):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(*[nn.Linear(N_INPUT, N_HIDDEN), activation()])
        self.fch = nn.Sequential(*[
            nn.Sequential(*[nn.Linear(N_HIDDEN, N_HIDDEN), activation()]) for _ in range(N_LAYERS - 1)])
        self.fce = nn.Linear(N_HIDDEN, N_OUTPUT)

    def forward(self, x):
        x = self.fcs(x)
        x = self.fch(x)
        x = self.fce(x)
        return x


torch.manual_seed(123)
pinn = FCN(1, 1, 16, 3)
# boundary and physics points
t_boundary = torch.tensor(0.).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 1, 20).view(-1, 1).requires_grad_(True)
d, w0 = 2, 8
mu, k = 2 * d, w0 ** 2
optimiser = torch.optim.Adam(pinn.parameters(), lr=1e-3)
for i in range(15):
    optimiser.zero_grad()

    # compute each term of the PINN loss function above
    lambda1, lambda2 = 1e-1, 1e-4

    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2

    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + mu * dudt + k * u) ** 2)

    # backpropagate joint loss, take optimiser step
    loss = loss1 + lambda1 * loss2 + lambda2 * loss3
    loss.backward()
    optimiser.step()

    if i % 5 == 0:
        print(i, loss.item(), loss3.item())
u = pinn(t_physics).detach()
print(u[:4, 0])
