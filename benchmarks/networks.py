"""Small, well-known networks with random weights, as torch modules: what `python -m benchmarks models` runs.

Written here so that no package of models, and no download, is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """The basic block of ResNet-18: two 3x3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
        )
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        return F.relu(self.second(self.first(x)) + self.shortcut(x))


class ResNet18(nn.Module):
    """Images [n, 3, h, w] to logits [n, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        layers.append(nn.MaxPool2d(3, 2, 1))
        inputs = 64
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
            inputs = outputs
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class InvertedResidual(nn.Module):
    """The block of MobileNetV2: expand, depthwise 3x3, project."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int):
        super().__init__()
        hidden = inputs * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        layers += [nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden)]
        layers += [nn.ReLU6(), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.layers = nn.Sequential(*layers)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNetV2(nn.Module):
    """Images [n, 3, h, w] to logits [n, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        inputs = 32
        # How much wider inside, outputs, blocks, stride of the first one.
        stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)]
        stages += [(6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
        for expand, outputs, count, stride in stages:
            for number in range(count):
                layers.append(InvertedResidual(inputs, outputs, stride if number == 0 else 1, expand))
                inputs = outputs
        layers += [nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class Attention(nn.Module):
    """Self-attention over [n, length, width], written out."""

    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class BertLayer(nn.Module):
    """An encoder layer of BERT-base (normalisation after each half): [n, length, 768] to the same."""

    def __init__(self, width: int = 768, heads: int = 12):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads, causal=False), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class GptBlock(nn.Module):
    """A block of GPT-2 (normalisation before each half, causal): [n, length, 768] to the same."""

    def __init__(self, width: int = 768, heads: int = 12):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, causal=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Recurrent(nn.Module):
    """An LSTM over [n, length, inputs], its last output through a linear layer."""

    def __init__(self, inputs: int = 128, hidden: int = 256, outputs: int = 64):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(inputs, hidden), nn.Linear(hidden, outputs)
        self.hidden = hidden

    def forward(self, x: Any) -> Any:
        h = c = x.new_zeros(x.shape[0], self.hidden)
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
        return self.head(h)


class UNet(nn.Module):
    """A small U-Net with one step down, and up by a transposed convolution: [n, 3, h, w] to [n, 4, h, w]."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.first, self.down = self._block(3, width), nn.Conv2d(width, 2 * width, 2, 2)
        self.inner, self.up = self._block(2 * width, 2 * width), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.last, self.head = self._block(2 * width, width), nn.Conv2d(width, 4, 1)

    def _block(self, inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())

    def forward(self, x: Any) -> Any:
        before = self.first(x)
        y = self.up(self.inner(self.down(before)))
        return self.head(self.last(torch.cat([before, y], 1)))


class Scorer(nn.Module):
    """Attention of one sequence to another, with a mask that is added: [n, 256, 512] to the same."""

    def __init__(self, width: int = 512, heads: int = 8):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm = nn.RMSNorm(width)

    def forward(self, x: Any) -> Any:
        length = x.shape[1]
        mask = torch.triu(torch.full((length, length), -math.inf), 1)
        return self.norm(x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0])


def lenet() -> nn.Module:
    """LeNet-5, for images [n, 1, 28, 28]."""
    layers: list[nn.Module] = [
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
    ]
    layers += [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(84, 10))


def convolution_block() -> nn.Module:
    """A convolution with its normalisation, activation and pooling."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))


def mlp() -> nn.Module:
    """A perceptron with two hidden layers."""
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


#: name -> how to make the module, and the shape of its input.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (64, 784)),
    "lenet5": (lenet, (16, 1, 28, 28)),
    "conv block": (convolution_block, (16, 3, 32, 32)),
    "masked attention": (Scorer, (1, 256, 512)),
    "u-net": (UNet, (1, 3, 64, 64)),
    "lstm": (Recurrent, (8, 16, 128)),
    "bert layer": (BertLayer, (1, 128, 768)),
    "gpt2 block": (GptBlock, (1, 128, 768)),
    "mobilenet v2": (MobileNetV2, (1, 3, 224, 224)),
    "resnet18": (ResNet18, (1, 3, 224, 224)),
}


def network(name: str) -> tuple[nn.Module, Any]:
    """A network with seeded weights, ready for inference, and an input for it."""
    torch.manual_seed(0)
    make, shape = NETWORKS[name]
    module = make().eval()
    for each in module.modules():
        # Statistics as after training: with those of a new module, values shrink from layer to layer.
        if isinstance(each, nn.BatchNorm2d):
            each.running_mean.normal_(0, 0.1)
            each.running_var.uniform_(0.5, 1.5)
    return module, torch.randn(shape)
