import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvLSTM3DCell(nn.Module):
    def __init__(self, input_dim, hidden_dim, kernel_size=3):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.conv = nn.Conv3d(input_dim + hidden_dim, 4 * hidden_dim, kernel_size, padding=kernel_size // 2)

    def forward(self, x, state):
        h, c = state
        gates = self.conv(torch.cat([x, h], dim=1))
        i, f, o, g = torch.split(gates, self.hidden_dim, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class ConvLSTM3D(nn.Module):
    """A recurrent network over a sequence of volumes."""

    def __init__(self, input_dim=2, hidden_dim=6):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.cell = ConvLSTM3DCell(input_dim, hidden_dim)

    # t2j: sequence=f32[3, 5, 2, 4, 6, 7]
    def forward(self, sequence):
        n, steps, _, d, h, w = sequence.size()
        state = (sequence.new_zeros(n, self.hidden_dim, d, h, w), sequence.new_zeros(n, self.hidden_dim, d, h, w))
        outputs = []
        for t in range(steps):
            state = self.cell(sequence[:, t], state)
            outputs.append(state[0])
        return torch.stack(outputs, dim=1), state


class TubeletEmbedding(nn.Module):
    def __init__(self, channels, dim, tubelet):
        super().__init__()
        self.proj = nn.Conv3d(channels, dim, kernel_size=tubelet, stride=tubelet)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class VideoViT(nn.Module):
    """ViViT in small: tubelets, a class token, two encoder layers."""

    def __init__(self, frames=8, size=24, tubelet=(2, 8, 8), dim=24, depth=2, heads=3, num_classes=5):
        super().__init__()
        patches = (frames // tubelet[0]) * (size // tubelet[1]) * (size // tubelet[2])
        self.embed = TubeletEmbedding(3, dim, tubelet)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.zeros(1, patches + 1, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    # t2j: x=f32[3, 3, 8, 24, 24]
    def forward(self, x):
        x = self.embed(x)
        cls = self.cls.expand(x.shape[0], -1, -1)
        x = torch.cat([cls, x], dim=1) + self.pos
        x = self.norm(self.encoder(x))
        return self.head(x[:, 0])


class NonLocal3D(nn.Module):
    """Wang et al. 2018: every position attends to every other."""

    def __init__(self, in_channels=12, inter_channels=None):
        super().__init__()
        self.inter = inter_channels or in_channels // 2
        self.g = nn.Conv3d(in_channels, self.inter, 1)
        self.theta = nn.Conv3d(in_channels, self.inter, 1)
        self.phi = nn.Conv3d(in_channels, self.inter, 1)
        self.w = nn.Sequential(nn.Conv3d(self.inter, in_channels, 1), nn.BatchNorm3d(in_channels))
        nn.init.constant_(self.w[1].weight, 0)
        nn.init.constant_(self.w[1].bias, 0)

    def forward(self, x):
        b = x.size(0)
        g = self.g(x).view(b, self.inter, -1).permute(0, 2, 1)
        theta = self.theta(x).view(b, self.inter, -1).permute(0, 2, 1)
        phi = self.phi(x).view(b, self.inter, -1)
        attention = F.softmax(torch.matmul(theta, phi), dim=-1)
        y = torch.matmul(attention, g).permute(0, 2, 1).contiguous()
        y = y.view(b, self.inter, *x.size()[2:])
        return self.w(y) + x


class TemporalShift3D(nn.Module):
    """A shift of some channels along time, then a convolution of frames."""

    def __init__(self, channels=16, fold_div=8):
        super().__init__()
        self.fold = channels // fold_div
        self.conv = nn.Conv3d(channels, channels, (1, 3, 3), padding=(0, 1, 1))

    def forward(self, x):
        out = torch.zeros_like(x)
        out[:, : self.fold, :-1] = x[:, : self.fold, 1:]
        out[:, self.fold : 2 * self.fold, 1:] = x[:, self.fold : 2 * self.fold, :-1]
        out[:, 2 * self.fold :] = x[:, 2 * self.fold :]
        return F.relu(self.conv(out))


class MultiViewFusion(nn.Module):
    """Two volumes of different resolution."""

    def __init__(self):
        super().__init__()
        self.coarse = nn.Conv3d(1, 8, 3, padding=1)
        self.fine = nn.Conv3d(1, 8, 5, stride=2, padding=2)
        self.fuse = nn.Conv3d(16, 6, 1)

    # t2j: coarse=f32[3, 1, 5, 6, 7], fine=f32[3, 1, 10, 12, 14]
    def forward(self, coarse, fine):
        return self.fuse(torch.cat([F.relu(self.coarse(coarse)), F.relu(self.fine(fine))], dim=1))


class OpticalFlow3D(nn.Module):
    """A cost volume of two feature maps, filtered in three dimensions (PSMNet, GC-Net)."""

    def __init__(self, channels=4, max_disparity=6):
        super().__init__()
        self.max_disparity = max_disparity
        self.feature = nn.Conv2d(3, channels, 3, padding=1)
        self.filter1 = nn.Sequential(nn.Conv3d(2 * channels, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.ReLU())
        self.filter2 = nn.Sequential(nn.Conv3d(8, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.ReLU())
        self.classify = nn.Conv3d(8, 1, 3, padding=1, bias=False)

    # t2j: left=f32[3, 3, 9, 14], right=f32[3, 3, 9, 14]
    def forward(self, left, right):
        a, b = self.feature(left), self.feature(right)
        n, c, h, w = a.shape
        cost = a.new_zeros(n, 2 * c, self.max_disparity, h, w)
        for i in range(self.max_disparity):
            if i > 0:
                cost[:, :c, i, :, i:] = a[:, :, :, i:]
                cost[:, c:, i, :, i:] = b[:, :, :, :-i]
            else:
                cost[:, :c, i] = a
                cost[:, c:, i] = b
        cost = self.filter1(cost)
        cost = self.filter2(cost) + cost
        cost = self.classify(cost).squeeze(1)
        probability = F.softmax(cost, dim=1)
        disparity = torch.arange(self.max_disparity, dtype=probability.dtype, device=probability.device)
        return torch.sum(probability * disparity.view(1, -1, 1, 1), dim=1)
