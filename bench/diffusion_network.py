"""Stable Diffusion XL as one ONNX graph, from a prompt's tokens to a picture, with the sizes of MLPerf Inference's.

Two text encoders, a Loop of denoising steps by Euler's method with guidance, and the decoder of latents. The layers are
those of the paper (arXiv 2307.01952): three levels of residual blocks, transformers of 2 and 10 blocks on two of them,
gated feed-forward layers. Weights are random and seeded, and keep activations of order one. In half precision they and
all tensors are halves: 6.9 GB, which onnx keeps beside the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from graph_writer import Array, GraphWriter, floats, integers
from onnx import helper

_OPSET = 21
_RANDOM = 1 << 20
"""Larger weights repeat as many numbers: drawing billions takes minutes."""
_TRAINED_STEPS = 1000
_GUIDANCE = 8.0
_LATENT_SCALE = 0.13025


@dataclass(frozen=True)
class TextSizes:
    """A text encoder: its second last layer is what the network of images reads."""

    layers: int
    width: int
    heads: int
    activation: str
    """`quick`: x * sigmoid(1.702 x), or `gelu`."""


@dataclass(frozen=True)
class DiffusionSizes:
    """The sizes of Stable Diffusion XL's base."""

    texts: tuple[TextSizes, TextSizes] = (TextSizes(12, 768, 12, "quick"), TextSizes(32, 1280, 20, "gelu"))
    vocabulary: int = 49408
    tokens: int = 77
    side: int = 128
    """Of a latent: an eighth of the picture's."""
    channels: tuple[int, ...] = (320, 640, 1280)
    """Of the levels of the network that removes noise."""
    blocks: tuple[int, ...] = (0, 2, 10)
    """Transformer blocks of each attention, by level."""
    head: int = 64
    """The width of an attention's head."""
    groups: int = 32
    """Of a group normalization."""
    time: int = 256
    """The width of each of the six numbers about a picture's size."""
    decoder: tuple[int, ...] = (512, 512, 256, 128)
    steps: int = 20

    @property
    def text(self) -> int:
        """The width of what both encoders say about a token."""
        return sum(one.width for one in self.texts)


SMALL_DIFFUSION = DiffusionSizes(
    texts=(TextSizes(2, 16, 2, "quick"), TextSizes(2, 32, 2, "gelu")),
    vocabulary=100,
    tokens=7,
    side=8,
    channels=(16, 32),
    blocks=(0, 1),
    head=8,
    groups=4,
    time=8,
    decoder=(16, 16, 16, 16),
    steps=3,
)


def diffusion(
    batch: int | str = "batch", seed: int = 0, sizes: DiffusionSizes | None = None, *, is_half: bool = False
) -> onnx.ModelProto:
    """Tokens of a prompt and of what is not wanted [batch, 2, tokens], noise [batch, 4, s, s] to pictures.

    The output `picture` is [batch, 3, 8 s, 8 s], from 0 to 1. is_half: all numbers but those of noise and picture are
    halves, else float32.
    """
    sizes = sizes or DiffusionSizes()
    write = DiffusionWriter(seed, sizes, is_half)
    context, pooled = write.texts()
    latent = write.denoised(context, pooled, batch)
    write.picture(latent)
    side = sizes.side
    inputs = [integers("tokens", batch, 2, sizes.tokens), floats("noise", batch, 4, side, side)]
    return write.model("diffusion", inputs, [floats("picture", batch, 3, 8 * side, 8 * side)], _OPSET)


def noise_levels(steps: int) -> tuple[Array, Array]:
    """Times, and deviations of the noise at each of them and behind the last, of a scaled linear schedule."""
    betas = np.linspace(math.sqrt(0.00085), math.sqrt(0.012), _TRAINED_STEPS) ** 2
    kept = np.cumprod(1.0 - betas)
    levels = np.sqrt((1.0 - kept) / kept)
    times = (np.arange(steps) * (_TRAINED_STEPS // steps))[::-1] + 1
    return times.astype(np.float32), np.append(levels[times], 0.0).astype(np.float32)


def waves(numbers: Array, width: int) -> Array:
    """Cosines and sines of numbers at frequencies from 1 down to 1/10,000: [count, width]."""
    frequencies = np.exp(-math.log(10000.0) * np.arange(width // 2) / (width // 2))
    angles = np.asarray(numbers, np.float64)[:, None] * frequencies
    return np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


class DiffusionWriter(GraphWriter):
    """Adds the parts of Stable Diffusion XL."""

    def __init__(self, seed: int, sizes: DiffusionSizes, is_half: bool) -> None:
        super().__init__(seed)
        self._sizes = sizes
        self._type = onnx.TensorProto.FLOAT16 if is_half else onnx.TensorProto.FLOAT
        self._dtype = np.float16 if is_half else np.float32

    # Weights and layers

    def state(self, name: str, *shape: int | str) -> onnx.ValueInfoProto:
        """A tensor of the graph's numbers that a body takes or gives."""
        return helper.make_tensor_value_info(name, self._type, shape)

    def constant(self, name: str, array: Array) -> str:
        """A weight; floating point numbers get the graph's type."""
        return super().constant(name, array.astype(self._dtype) if array.dtype.kind == "f" else array)

    def normal(self, name: str, shape: Sequence[int], deviation: float, mean: float = 0.0) -> str:
        """A weight with a normal distribution; that of a large one repeats."""
        count = math.prod(shape)
        numbers = self._random.standard_normal(min(count, _RANDOM), np.float32)
        numbers = (numbers * np.float32(deviation) + np.float32(mean)).astype(self._dtype)
        return self.constant(name, np.resize(numbers, shape))

    def indices(self, *numbers: int) -> str:
        """A vector of integers."""
        return self.constant("_".join(["indices", *map(str, numbers)]).replace("-", "m"), np.array(numbers, np.int64))

    def reshaped(self, x: str, *shape: int) -> str:
        """The same elements, with -1 for the dimension that follows and 0 for those that stay."""
        return self.node("Reshape", [x, self.indices(*shape)])

    def sum(self, x: str, y: str) -> str:
        """Element by element."""
        return self.node("Add", [x, y])

    def linear(self, x: str, sizes: tuple[int, int], name: str, *, has_bias: bool = True) -> str:
        """A matrix product, and a bias; the weight is stored [inputs, outputs]."""
        product = self.node("MatMul", [x, self.normal(f"{name}.weight", sizes, sizes[0] ** -0.5)])
        return self.sum(product, self.normal(f"{name}.bias", (sizes[1],), 0.02)) if has_bias else product

    def convolution(self, x: str, channels: tuple[int, int], name: str, size: int = 3, stride: int = 1) -> str:
        """A square window, padded so that it is around each pixel."""
        inputs, outputs = channels
        deviation = (size * size * inputs) ** -0.5
        weight = self.normal(f"{name}.weight", (outputs, inputs, size, size), deviation)
        bias = self.normal(f"{name}.bias", (outputs,), 0.02)
        pads, strides = [size // 2] * 4, [stride] * 2
        return self.node("Conv", [x, weight, bias], kernel_shape=[size] * 2, pads=pads, strides=strides)

    def normalized(self, x: str, width: int, name: str) -> str:
        """Layer normalization over the last axis."""
        return self.node("LayerNormalization", [x, *self._scale_and_shift(width, name)], axis=-1, epsilon=1e-5)

    def normalized_groups(self, x: str, channels: int, name: str) -> str:
        """Group normalization of an image."""
        parameters = self._scale_and_shift(channels, name)
        return self.node("GroupNormalization", [x, *parameters], num_groups=self._sizes.groups, epsilon=1e-5)

    def _scale_and_shift(self, width: int, name: str) -> tuple[str, str]:
        return self.normal(f"{name}.weight", (width,), 0.05, 1.0), self.normal(f"{name}.bias", (width,), 0.05)

    def silu(self, x: str) -> str:
        """x * sigmoid(x)."""
        return self.node("Mul", [x, self.node("Sigmoid", [x])])

    def quick_gelu(self, x: str) -> str:
        """x * sigmoid(1.702 x)."""
        return self.node("Mul", [x, self.node("Sigmoid", [self.node("Mul", [x, self.scalar("quick", 1.702)])])])

    def doubled(self, x: str, channels: int, name: str) -> str:
        """Twice the height and width by repeated pixels, then a convolution."""
        scales = self.node("Constant", [], value_floats=[1.0, 1.0, 2.0, 2.0])
        x = self.node(
            "Resize", [x, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
        )
        return self.convolution(x, (channels, channels), name)

    def attention(
        self, x: str, context: str, widths: tuple[int, int], head: int, name: str, mask: str = "", *, has_bias: bool
    ) -> str:
        """Attention of x [n, rows, width] to a context [n, tokens, width of the context], with an additive mask."""
        width, others = widths
        query = self.linear(x, (width, width), f"{name}.query", has_bias=has_bias)
        key = self.linear(context, (others, width), f"{name}.key", has_bias=has_bias)
        value = self.linear(context, (others, width), f"{name}.value", has_bias=has_bias)

        def heads(y: str, order: Sequence[int]) -> str:
            return self.node("Transpose", [self.reshaped(y, 0, 0, width // head, head)], perm=list(order))

        query = self.node("Mul", [heads(query, (0, 2, 1, 3)), self.scalar(f"scale_{head}", head**-0.5)])
        scores = self.node("MatMul", [query, heads(key, (0, 2, 3, 1))])
        scores = self.sum(scores, mask) if mask else scores
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), heads(value, (0, 2, 1, 3))])
        mixed = self.reshaped(self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), 0, 0, width)
        return self.linear(mixed, (width, width), f"{name}.out")

    # Text

    def texts(self) -> tuple[str, str]:
        """What both encoders say, for two texts of each picture.

        Of each token [2 batch, tokens, width], and of the whole text by the second encoder [2 batch, width].
        """
        sizes = self._sizes
        text = self.reshaped("tokens", -1, sizes.tokens)
        found = [self._text(text, one, f"text{k}") for k, one in enumerate(sizes.texts)]
        context = self.node("Concat", [one[0] for one in found], axis=-1)
        width = sizes.texts[1].width
        pooled = self.node("Gather", [found[1][1], self.constant("last", np.array(sizes.tokens - 1, np.int64))], axis=1)
        return context, self.linear(pooled, (width, width), "text1.projection", has_bias=False)

    def _text(self, text: str, sizes: TextSizes, name: str) -> tuple[str, str]:
        """What enters the last layer, and what leaves it, normalized."""
        width, tokens = sizes.width, self._sizes.tokens
        x = self.node("Gather", [self.normal(f"{name}.words", (self._sizes.vocabulary, width), 0.7), text])
        x = self.sum(x, self.normal(f"{name}.places", (tokens, width), 0.7))
        mask = self.constant("later", np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1))
        before_last = x
        for layer in range(sizes.layers):
            before_last, part = x, f"{name}.{layer}"
            y = self.normalized(x, width, f"{part}.norm1")
            y = self.attention(y, y, (width, width), width // sizes.heads, f"{part}.self", mask, has_bias=True)
            x = self.sum(x, y)
            y = self.linear(self.normalized(x, width, f"{part}.norm2"), (width, 4 * width), f"{part}.up")
            y = self.quick_gelu(y) if sizes.activation == "quick" else self.node("Gelu", [y])
            x = self.sum(x, self.linear(y, (4 * width, width), f"{part}.down"))
        return before_last, self.normalized(x, width, f"{name}.norm")

    # The loop

    def denoised(self, context: str, pooled: str, batch: int | str) -> str:
        """The latent behind all steps: a Loop whose body is the network of images and a step of Euler's method."""
        sizes = self._sizes
        side = sizes.side
        times, levels = noise_levels(sizes.steps)
        condition = self._condition(pooled)
        first = self.node(
            "Mul",
            [
                self.node("Cast", ["noise"], to=self._type),
                self.scalar("first_level", math.sqrt(float(levels[0]) ** 2 + 1.0)),
            ],
        )
        with self.body() as nodes:
            scale = self._at("scales", 1.0 / np.sqrt(levels[:-1] ** 2 + 1.0))
            scaled = self.reshaped(self.node("Mul", ["latent", scale]), -1, 1, 4, side, side)
            pairs = self.reshaped(self.node("Concat", [scaled, scaled], axis=1), -1, 4, side, side)
            waves_of_time = self.reshaped(self._at("time_waves", waves(times, sizes.channels[0])), 1, sizes.channels[0])
            time = self._perceptron(waves_of_time, sizes.channels[0], "time")
            noise = self.reshaped(self._noise(pairs, self.sum(time, condition), context), -1, 2, 4, side, side)
            self.append("Split", [noise], ["wanted", "not_wanted"], axis=1, num_outputs=2)
            gap = self.node("Sub", ["wanted", "not_wanted"])
            gap = self.node("Mul", [gap, self.scalar("guidance", _GUIDANCE)])
            noise = self.reshaped(self.sum("not_wanted", gap), -1, 4, side, side)
            self.node("Add", ["latent", self.node("Mul", [noise, self._at("steps", np.diff(levels))])], "next_latent")
            self.node("Identity", ["goes_on"], "still_goes_on")
        shape = (batch, 4, side, side)
        flags = [
            helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, ()) for name in ("goes_on", "still_goes_on")
        ]
        inputs = [integers("step"), flags[0], self.state("latent", *shape)]
        body = helper.make_graph(nodes, "denoising", inputs, [flags[1], self.state("next_latent", *shape)])
        count = self.constant("iterations", np.array(sizes.steps, np.int64))
        return self.node("Loop", [count, self.constant("true", np.array(True)), first], "denoised", body=body)

    def _at(self, name: str, table: Array) -> str:
        """The row of a table that is the step's."""
        return self.node("Gather", [self.constant(name, table), "step"], axis=0)

    def _condition(self, pooled: str) -> str:
        """What is known of the text as a whole and of the picture's size: [2 batch, 4 channels]."""
        sizes = self._sizes
        side = 8 * sizes.side
        numbers = waves(np.array([side, side, 0, 0, side, side]), sizes.time).reshape(1, -1)
        rows = self.node("Shape", [pooled], start=0, end=1)
        shape = self.node("Concat", [rows, self.indices(numbers.shape[1])], axis=0)
        known = self.node("Expand", [self.constant("size_waves", numbers), shape])
        x = self.node("Concat", [pooled, known], axis=-1)
        return self._perceptron(x, sizes.texts[1].width + numbers.shape[1], "condition")

    def _perceptron(self, x: str, inputs: int, name: str) -> str:
        width = 4 * self._sizes.channels[0]
        x = self.silu(self.linear(x, (inputs, width), f"{name}.0"))
        return self.linear(x, (width, width), f"{name}.1")

    # The network of images

    def _noise(self, x: str, time: str, context: str) -> str:
        """What of x is noise: [n, 4, side, side]."""
        sizes, silent = self._sizes, self.silu(time)
        levels = list(enumerate(zip(sizes.channels, sizes.blocks, strict=True)))
        channels, side = sizes.channels[0], sizes.side
        x = self.convolution(x, (4, channels), "enter")
        kept = [(x, channels)]
        for level, (width, blocks) in levels:
            for k in range(2):
                x = self._residual(x, (channels, width), f"down{level}.{k}", silent)
                x = self._transformer(x, width, side, blocks, f"down{level}.{k}", context)
                channels = width
                kept.append((x, channels))
            if level < len(levels) - 1:
                x, side = self.convolution(x, (width, width), f"down{level}.half", stride=2), side // 2
                kept.append((x, channels))
        x = self._residual(x, (channels, channels), "middle.0", silent)
        x = self._transformer(x, channels, side, sizes.blocks[-1], "middle", context)
        x = self._residual(x, (channels, channels), "middle.1", silent)
        for level, (width, blocks) in reversed(levels):
            for k in range(3):
                other, more = kept.pop()
                x = self.node("Concat", [x, other], axis=1)
                x = self._residual(x, (channels + more, width), f"up{level}.{k}", silent)
                x = self._transformer(x, width, side, blocks, f"up{level}.{k}", context)
                channels = width
            if level:
                x, side = self.doubled(x, channels, f"up{level}.double"), side * 2
        x = self.silu(self.normalized_groups(x, channels, "leave.norm"))
        return self.convolution(x, (channels, 4), "leave")

    def _residual(self, x: str, channels: tuple[int, int], name: str, time: str = "") -> str:
        """Two convolutions beside the input; what follows from the time is added between them."""
        inputs, outputs = channels
        y = self.silu(self.normalized_groups(x, inputs, f"{name}.norm1"))
        y = self.convolution(y, channels, f"{name}.conv1")
        if time:
            shift = self.linear(time, (4 * self._sizes.channels[0], outputs), f"{name}.time")
            y = self.sum(y, self.reshaped(shift, 0, outputs, 1, 1))
        y = self.silu(self.normalized_groups(y, outputs, f"{name}.norm2"))
        y = self.convolution(y, (outputs, outputs), f"{name}.conv2")
        return self.sum(x if inputs == outputs else self.convolution(x, channels, f"{name}.skip", 1), y)

    def _transformer(self, x: str, width: int, side: int, blocks: int, name: str, context: str) -> str:
        """Blocks of attention of pixels to each other, to the text, and a gated layer; nothing where there are none."""
        if not blocks:
            return x
        sizes, before = self._sizes, x
        x = self._pixels(self.normalized_groups(x, width, f"{name}.norm"), width)
        x = self.linear(x, (width, width), f"{name}.enter")
        for block in range(blocks):
            part = f"{name}.block{block}"
            y = self.normalized(x, width, f"{part}.norm1")
            x = self.sum(x, self.attention(y, y, (width, width), sizes.head, f"{part}.self", has_bias=False))
            y = self.normalized(x, width, f"{part}.norm2")
            x = self.sum(
                x, self.attention(y, context, (width, sizes.text), sizes.head, f"{part}.cross", has_bias=False)
            )
            y = self.linear(self.normalized(x, width, f"{part}.norm3"), (width, 8 * width), f"{part}.up")
            halves = [f"{part}.value", f"{part}.gate"]
            self.append("Split", [y], halves, axis=-1, num_outputs=2)
            y = self.node("Mul", [halves[0], self.node("Gelu", [halves[1]])])
            x = self.sum(x, self.linear(y, (4 * width, width), f"{part}.down"))
        x = self.linear(x, (width, width), f"{name}.leave")
        return self.sum(self._image(x, width, side), before)

    def _pixels(self, x: str, channels: int) -> str:
        """An image as [n, pixels, channels]."""
        return self.node("Transpose", [self.reshaped(x, 0, channels, -1)], perm=[0, 2, 1])

    def _image(self, x: str, channels: int, side: int) -> str:
        """The inverse of `_pixels`."""
        return self.reshaped(self.node("Transpose", [x], perm=[0, 2, 1]), 0, channels, side, side)

    # The picture

    def picture(self, latent: str) -> None:
        """The decoder of latents: residual blocks, one attention of pixels, three doublings."""
        sizes = self._sizes
        channels, side = sizes.decoder[0], sizes.side
        x = self.node("Mul", [latent, self.scalar("latent_scale", 1.0 / _LATENT_SCALE)])
        x = self.convolution(self.convolution(x, (4, 4), "decode.first", 1), (4, channels), "decode.enter")
        x = self._residual(x, (channels, channels), "decode.middle0")
        y = self._pixels(self.normalized_groups(x, channels, "decode.norm"), channels)
        y = self.attention(y, y, (channels, channels), channels, "decode.self", has_bias=True)
        x = self.sum(x, self._image(y, channels, side))
        x = self._residual(x, (channels, channels), "decode.middle1")
        for level, width in enumerate(sizes.decoder):
            for k in range(3):
                x = self._residual(x, (channels, width), f"decode{level}.{k}")
                channels = width
            if level < len(sizes.decoder) - 1:
                x = self.doubled(x, channels, f"decode{level}.double")
        x = self.convolution(
            self.silu(self.normalized_groups(x, channels, "decode.last")), (channels, 3), "decode.leave"
        )
        half = self.scalar("half", 0.5)
        x = self.sum(self.node("Mul", [x, half]), half)
        x = self.node("Clip", [x, self.scalar("none", 0.0), self.scalar("all", 1.0)])
        self.node("Cast", [x], "picture", to=onnx.TensorProto.FLOAT)
