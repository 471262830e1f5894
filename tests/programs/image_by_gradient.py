# Optimise the pixels of an image so that its features match those of a target.
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target,):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        return F.mse_loss(input, self.target)


cnn = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU()).eval()
cnn.requires_grad_(False)
content_img = torch.rand(1, 3, 12, 12)
style_img = torch.rand(1, 3, 12, 12)
content_loss = ContentLoss(cnn(content_img))
style_target = gram_matrix(cnn[:2](style_img)).detach()
input_img = content_img.clone()
input_img.requires_grad_(True)
optimizer = optim.Adam([input_img], lr=0.05)
for run in range(8):
    optimizer.zero_grad()
    style_score = F.mse_loss(gram_matrix(cnn[:2](input_img)), style_target)
    content_score = content_loss(cnn(input_img))
    loss = 1e4 * style_score + content_score
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        input_img.clamp_(0, 1)
    if run % 2 == 0:
        print('run {}: Style Loss : {:4f} Content Loss: {:4f}'.format(run, style_score.item(), content_score.item()))
print(input_img.mean().item())
