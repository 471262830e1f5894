# Linear regression, everything at module level
import numpy as np
import torch
import torch.nn as nn

# Hyper-parameters
input_size = 1
output_size = 1
num_epochs = 12
learning_rate = 0.01

# Toy dataset
x_train = np.array([[3.3], [4.4], [5.5], [6.71], [6.93], [4.168]])
y_train = np.array([[1.7], [2.76], [2.09], [3.19], [1.694], [1.573]])

# Linear regression model
model = nn.Linear(input_size, output_size)
losses = []
# train
# Loss and optimizer
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)

# Train the model
for epoch in range(num_epochs):
    # Convert numpy arrays to torch tensors
    inputs = torch.from_numpy(x_train)
    targets = torch.from_numpy(y_train)

    # Forward pass
    outputs = model(inputs)
    loss = criterion(outputs, targets)

    # Backward and optimize
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if (epoch+1) % 5 == 0:
        print ('Epoch [{}/{}], Loss: {:.4f}'.format(epoch+1, num_epochs, loss.item()))
    losses.append(loss.item())

# Plot the graph
predicted = model(torch.from_numpy(x_train)).detach().numpy()
values = list(predicted.ravel())
