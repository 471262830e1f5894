"""A line fitted to features of a sine, without classes or loaders."""

import math

import torch

# Create Tensors to hold input and outputs.
x = torch.linspace(-math.pi, math.pi, 50)
y = torch.sin(x)

# Prepare the input tensor (x, x^2, x^3).
p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)

model = torch.nn.Sequential(
    torch.nn.Linear(3, 1),
    torch.nn.Flatten(0, 1)
)
losses, values = [], []
# train
loss_fn = torch.nn.MSELoss(reduction='sum')

learning_rate = 1e-3
optimizer = torch.optim.RMSprop(model.parameters(), lr=learning_rate)
for t in range(10):
    # Forward pass: compute predicted y by passing x to the model.
    y_pred = model(xx)

    # Compute and print loss.
    loss = loss_fn(y_pred, y)
    if t % 2 == 1:
        print(t, loss.item())
        losses.append(loss.item())

    # Before the backward pass, use the optimizer object to zero all of the
    # gradients for the variables it will update (which are the learnable
    # weights of the model).
    optimizer.zero_grad()

    # Backward pass: compute gradient of the loss with respect to model
    # parameters
    loss.backward()

    # Calling the step function on an Optimizer makes an update to its
    # parameters
    optimizer.step()


linear_layer = model[0]
values += [linear_layer.bias.item(), linear_layer.weight[:, 0].item(), linear_layer.weight[:, 2].item()]
print(f'Result: y = {linear_layer.bias.item()} + {linear_layer.weight[:, 0].item()} x')
