"""The tutorial's `initialize_model`: which model it is, a name says."""

import torch
import torch.nn as nn
import torch.optim as optim
from torchvision import datasets, models, transforms


def set_parameter_requires_grad(model, feature_extracting):
    if feature_extracting:
        for param in model.parameters():
            param.requires_grad = False


def initialize_model(model_name, num_classes, feature_extract):
    model_ft = None
    input_size = 0
    if model_name == "resnet":
        model_ft = models.resnet18(weights=None)
        set_parameter_requires_grad(model_ft, feature_extract)
        model_ft.fc = nn.Linear(model_ft.fc.in_features, num_classes)
        input_size = 224
    elif model_name == "alexnet":
        model_ft = models.alexnet(weights=None)
        set_parameter_requires_grad(model_ft, feature_extract)
        model_ft.classifier[6] = nn.Linear(model_ft.classifier[6].in_features, num_classes)
        input_size = 224
    else:
        print("Invalid model name, exiting...")
        exit()
    return model_ft, input_size


torch.manual_seed(0)
model, size = initialize_model("resnet", 2, True)
params_to_update = [p for p in model.parameters() if p.requires_grad]
optimizer = optim.SGD(params_to_update, lr=0.001, momentum=0.9)
criterion = nn.CrossEntropyLoss()
x, y = torch.randn(2, 3, 64, 64), torch.tensor([0, 1])
for step in range(2):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
