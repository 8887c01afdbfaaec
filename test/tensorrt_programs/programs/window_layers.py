"""Programs with convolutions, deconvolutions, poolings, paddings, resizes and local response normalisation."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import itertools
import warnings

import numpy as np
import tensorrt as trt
from engine_runs import Build, main, numbers, same

P = trt.PaddingMode


def _convolve(x, w, stride, pre, post, dilation=None, groups=1, bias=None):
    """Cross-correlation in any number of axes."""
    n = x.ndim - 2
    dilation = dilation or (1,) * n
    x = np.pad(x, [(0, 0), (0, 0), *zip(pre, post)])
    extent = [1 + d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
    out = [(a - t) // s + 1 for a, t, s in zip(x.shape[2:], extent, stride)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per, made = w.shape[1], w.shape[0] // groups
    for g in range(groups):
        part, kernel = x[:, g * per : (g + 1) * per], w[g * made : (g + 1) * made]
        for offset in itertools.product(*map(range, w.shape[2:])):
            window = tuple(
                slice(o * d, o * d + s * (e - 1) + 1, s) for o, d, s, e in zip(offset, dilation, stride, out)
            )
            y[:, g * made : (g + 1) * made] += np.einsum(
                "nc...,kc->nk...",
                part[(slice(None), slice(None), *window)],
                kernel[(slice(None), slice(None), *offset)],
            )
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def _deconvolve(x, w, stride, padding, groups=1):
    """w is [c, m / g, ..]."""
    n = x.ndim - 2
    full = [(a - 1) * s + t for a, s, t in zip(x.shape[2:], stride, w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    per, made = x.shape[1] // groups, w.shape[1]
    for g in range(groups):
        for offset in itertools.product(*map(range, w.shape[2:])):
            window = tuple(slice(o, o + s * (a - 1) + 1, s) for o, s, a in zip(offset, stride, x.shape[2:]))
            y[(slice(None), slice(g * made, (g + 1) * made), *window)] += np.einsum(
                "nc...,cm->nm...",
                x[:, g * per : (g + 1) * per],
                w[(slice(g * per, (g + 1) * per), slice(None), *offset)],
            )
    return y[(slice(None), slice(None), *[slice(p, f - p) for p, f in zip(padding, full)])] if n else y


def _same(a, k, s, upper):
    total = max((-(-a // s) - 1) * s + k - a, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if upper else (large, small)


def convolution_defaults():
    x, w, bias = numbers(1, 3, 6, 9), numbers(4, 3, 3, 3, seed=1), numbers(4, seed=2)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_convolution_nd(t, 4, (3, 3), w, bias)
    assert layer.num_output_maps == 4 and tuple(layer.kernel_size_nd) == (3, 3)
    assert tuple(layer.stride_nd) == (1, 1) and tuple(layer.padding_nd) == (0, 0) and tuple(layer.dilation_nd) == (1, 1)
    assert layer.num_groups == 1 and layer.padding_mode == P.EXPLICIT_ROUND_DOWN
    assert tuple(layer.pre_padding) == (0, 0) and tuple(layer.post_padding) == (0, 0)
    np.testing.assert_array_equal(np.asarray(layer.bias), bias)
    assert np.asarray(layer.kernel).size == w.size
    assert layer.name == "(Unnamed Layer* 0) [Convolution]"
    same(b.run(layer.get_output(0), x=x), _convolve(x, w, (1, 1), (0, 0), (0, 0), bias=bias), 1e-4, 1e-5)


def convolution_setters():
    x, w = numbers(2, 4, 9, 8), numbers(6, 2, 3, 2, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_convolution_nd(t, 5, (1, 1), np.ones(1, np.float32))
    layer.num_output_maps, layer.kernel_size_nd, layer.num_groups = 6, (3, 2), 2
    layer.kernel, layer.bias = w, trt.Weights()
    layer.stride_nd, layer.dilation_nd = (2, 1), (2, 3)
    layer.pre_padding, layer.post_padding = (1, 2), (0, 3)
    assert tuple(layer.pre_padding) == (1, 2) and tuple(layer.post_padding) == (0, 3)
    wanted = _convolve(x, w, (2, 1), (1, 2), (0, 3), (2, 3), 2)
    assert tuple(layer.get_output(0).shape) == wanted.shape
    same(b.run(layer.get_output(0), x=x), wanted, 1e-4, 1e-5)


def convolution_padding_modes():
    x, w = numbers(1, 2, 7, 8), numbers(3, 2, 3, 4, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    outputs, wanted = [], []
    for mode in (P.EXPLICIT_ROUND_DOWN, P.EXPLICIT_ROUND_UP, P.SAME_UPPER, P.SAME_LOWER):
        layer = b.network.add_convolution_nd(t, 3, (3, 4), w)
        layer.stride_nd, layer.padding_nd, layer.padding_mode = (3, 3), (1, 1), mode
        outputs.append(layer.get_output(0))
        if mode in (P.SAME_UPPER, P.SAME_LOWER):
            pads = [_same(a, k, 3, mode == P.SAME_UPPER) for a, k in ((7, 3), (8, 4))]
            pre, post = zip(*pads)
        else:
            pre = post = (1, 1)
            if mode == P.EXPLICIT_ROUND_UP:
                post = tuple(1 + (-(a + 2 - k)) % 3 for a, k in ((7, 3), (8, 4)))
        wanted.append(_convolve(x, w, (3, 3), pre, post))
    for found, good in zip(b.run(*outputs, x=x), wanted):
        same(found, good, 1e-4, 1e-5)


def convolution_3d():
    x, w = numbers(1, 2, 4, 5, 6), numbers(3, 2, 2, 3, 3, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_convolution_nd(t, 3, (2, 3, 3), w)
    layer.stride_nd, layer.padding_nd = (1, 2, 1), (1, 0, 1)
    same(b.run(layer.get_output(0), x=x), _convolve(x, w, (1, 2, 1), (1, 0, 1), (1, 0, 1)), 1e-4, 1e-5)


def convolution_of_five_dimensions_by_two():
    x, w = numbers(2, 3, 2, 5, 6), numbers(4, 2, 3, 3, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_convolution_nd(t, 4, (3, 3), w)
    wanted = _convolve(x.reshape(6, 2, 5, 6), w, (1, 1), (0, 0), (0, 0)).reshape(2, 3, 4, 3, 4)
    same(b.run(layer.get_output(0), x=x), wanted, 1e-4, 1e-5)


def convolution_of_no_channels():
    b = Build()
    t = b.network.add_input("x", trt.float32, (2, 0, 5, 5))
    layer = b.network.add_convolution_nd(t, 3, (3, 3), trt.Weights(), np.array([1, 2, 3], np.float32))
    wanted = np.broadcast_to(np.array([1, 2, 3])[:, None, None], (2, 3, 3, 3))
    same(b.run(layer.get_output(0), x=np.zeros((2, 0, 5, 5), np.float32)), wanted)


def convolution_with_weights_as_tensors():
    x, w = numbers(1, 2, 5, 5), numbers(3, 2, 3, 3, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    kernel = b.network.add_constant(w.shape, w)
    layer = b.network.add_convolution_nd(t, 3, (3, 3), trt.Weights())
    layer.set_input(1, kernel.get_output(0))
    assert layer.num_inputs == 2
    same(b.run(layer.get_output(0), x=x), _convolve(x, w, (1, 1), (0, 0), (0, 0)), 1e-4, 1e-5)


def convolution_old_names():
    x, w = numbers(1, 2, 6, 6), numbers(3, 2, 3, 3, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        layer = b.network.add_convolution(input=t, num_output_maps=3, kernel_shape=(3, 3), kernel=w)
        layer.stride, layer.padding, layer.dilation = (2, 2), (1, 1), (1, 1)
        assert tuple(layer.stride) == (2, 2) and tuple(layer.kernel_size) == (3, 3)
    assert any(issubclass(one.category, DeprecationWarning) for one in seen)
    assert tuple(layer.stride_nd) == (2, 2) and tuple(layer.padding_nd) == (1, 1)
    same(b.run(layer.get_output(0), x=x), _convolve(x, w, (2, 2), (1, 1), (1, 1)), 1e-4, 1e-5)


def convolution_with_too_few_weights():
    b = Build()
    t = b.network.add_input("x", trt.float32, (1, 2, 6, 6))
    layer = b.network.add_convolution_nd(t, 3, (3, 3), np.ones(53, np.float32))
    if layer is not None:
        b.refused(layer.get_output(0))
    text = b.log.errors()
    assert "53" in text and "54" in text, text


def deconvolution_defaults_and_setters():
    x, w = numbers(1, 4, 4, 5), numbers(4, 3, 3, 2, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    plain = b.network.add_deconvolution_nd(t, 3, (3, 2), w)
    assert plain.name == "(Unnamed Layer* 0) [Deconvolution]" and tuple(plain.stride_nd) == (1, 1)
    assert plain.num_groups == 1 and plain.padding_mode == P.EXPLICIT_ROUND_DOWN and tuple(plain.dilation_nd) == (1, 1)
    strided = b.network.add_deconvolution_nd(t, 3, (3, 2), w, np.array([1, 2, 3], np.float32))
    strided.stride_nd, strided.padding_nd = (2, 3), (1, 0)
    grouped = b.network.add_deconvolution_nd(t, 6, (3, 2), w)
    grouped.num_groups = 2
    found = b.run(*[layer.get_output(0) for layer in (plain, strided, grouped)], x=x)
    same(found[0], _deconvolve(x, w, (1, 1), (0, 0)), 1e-4, 1e-5)
    bias = np.array([1, 2, 3])[:, None, None]
    same(found[1], _deconvolve(x, w, (2, 3), (1, 0)) + bias, 1e-4, 1e-5)
    same(found[2], _deconvolve(x, w, (1, 1), (0, 0), 2), 1e-4, 1e-5)


def deconvolution_3d():
    x, w = numbers(1, 2, 3, 3, 2), numbers(2, 3, 2, 2, 3, seed=1)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_deconvolution_nd(t, 3, (2, 2, 3), w)
    layer.stride_nd, layer.padding_nd = (2, 1, 2), (0, 1, 1)
    same(b.run(layer.get_output(0), x=x), _deconvolve(x, w, (2, 1, 2), (0, 1, 1)), 1e-4, 1e-5)


def _pool(x, k, s, pre, post, kind, exclusive=True):
    fill = -np.inf if kind == "max" else 0
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pre, post)], constant_values=fill)
    ones = np.pad(np.ones_like(x), [(0, 0), (0, 0), *zip(pre, post)], constant_values=0 if exclusive else 1)
    out = [(a - t) // d + 1 for a, t, d in zip(padded.shape[2:], k, s)]
    y = np.zeros((*x.shape[:2], *out))
    for at in itertools.product(*map(range, out)):
        window = (slice(None), slice(None), *[slice(i * d, i * d + t) for i, d, t in zip(at, s, k)])
        axes = tuple(range(2, x.ndim))
        if kind == "max":
            y[(slice(None), slice(None), *at)] = padded[window].max(axes)
        else:
            y[(slice(None), slice(None), *at)] = padded[window].sum(axes) / ones[window].sum(axes)
    return y


def pooling_defaults():
    x = numbers(1, 2, 6, 6)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_pooling_nd(t, trt.PoolingType.MAX, (2, 2))
    assert tuple(layer.stride_nd) == (1, 1) and tuple(layer.padding_nd) == (0, 0)
    assert layer.average_count_excludes_padding is True and layer.blend_factor == 0
    assert tuple(layer.window_size_nd) == (2, 2) and layer.padding_mode == P.EXPLICIT_ROUND_DOWN
    assert layer.type == trt.PoolingType.MAX and layer.name == "(Unnamed Layer* 0) [Pooling]", layer.name
    same(b.run(layer.get_output(0), x=x), _pool(x, (2, 2), (1, 1), (0, 0), (0, 0), "max"))


def pooling_kinds():
    x = numbers(1, 2, 7, 6)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layers = []
    for kind in (trt.PoolingType.MAX, trt.PoolingType.AVERAGE, trt.PoolingType.MAX_AVERAGE_BLEND):
        layer = b.network.add_pooling_nd(t, kind, (3, 2))
        layer.stride_nd, layer.padding_nd = (2, 2), (1, 0)
        layers.append(layer)
    layers[2].blend_factor = 0.25
    inclusive = b.network.add_pooling_nd(t, trt.PoolingType.AVERAGE, (3, 2))
    inclusive.stride_nd, inclusive.padding_nd, inclusive.average_count_excludes_padding = (2, 2), (1, 0), False
    found = b.run(*[layer.get_output(0) for layer in (*layers, inclusive)], x=x)
    args = (x, (3, 2), (2, 2), (1, 0), (1, 0))
    maximum, average = _pool(*args, "max"), _pool(*args, "average")
    same(found[0], maximum)
    same(found[1], average)
    same(found[2], 0.75 * maximum + 0.25 * average)
    same(found[3], _pool(*args, "average", exclusive=False))


def pooling_rounds_up():
    x = numbers(1, 1, 6, 7)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    outputs = []
    for mode in (P.EXPLICIT_ROUND_UP, P.CAFFE_ROUND_UP, P.SAME_UPPER, P.SAME_LOWER):
        layer = b.network.add_pooling_nd(t, trt.PoolingType.MAX, (3, 3))
        layer.stride_nd, layer.padding_mode = (2, 2), mode
        outputs.append(layer.get_output(0))
    found = b.run(*outputs, x=x)
    up = _pool(x, (3, 3), (2, 2), (0, 0), (1, 0), "max")
    same(found[0], up)
    same(found[1], up)
    for one, upper in zip(found[2:], (True, False)):
        pre, post = zip(_same(6, 3, 2, upper), _same(7, 3, 2, upper))
        same(one, _pool(x, (3, 3), (2, 2), pre, post, "max"))


def pooling_3d_and_extra_dimensions():
    x = numbers(1, 2, 4, 4, 4)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    volume = b.network.add_pooling_nd(t, trt.PoolingType.AVERAGE, (2, 2, 2))
    volume.stride_nd = (2, 2, 2)
    flat = b.network.add_pooling_nd(t, trt.PoolingType.MAX, (2, 2))
    found = b.run(volume.get_output(0), flat.get_output(0), x=x)
    same(found[0], _pool(x, (2, 2, 2), (2, 2, 2), (0, 0, 0), (0, 0, 0), "average"))
    same(found[1], _pool(x.reshape(2, 4, 4, 4), (2, 2), (1, 1), (0, 0), (0, 0), "max").reshape(1, 2, 4, 3, 3))


def pooling_old_names():
    x = numbers(1, 1, 4, 4)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = b.network.add_pooling(t, trt.PoolingType.MAX, (2, 2))
        layer.stride = (2, 2)
        assert tuple(layer.window_size) == (2, 2) and tuple(layer.stride) == (2, 2)
    same(b.run(layer.get_output(0), x=x), _pool(x, (2, 2), (2, 2), (0, 0), (0, 0), "max"))


def padding_grows_and_crops():
    x = numbers(1, 2, 4, 5)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    grown = b.network.add_padding_nd(t, (1, 2), (0, 3))
    mixed = b.network.add_padding_nd(t, (-1, 0), (2, -2))
    assert tuple(grown.pre_padding_nd) == (1, 2) and tuple(grown.post_padding_nd) == (0, 3)
    found = b.run(grown.get_output(0), mixed.get_output(0), x=x)
    same(found[0], np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 3)]))
    same(found[1], np.pad(x[:, :, 1:, :3], [(0, 0), (0, 0), (0, 2), (0, 0)]))


def lrn_divides_alpha_by_the_window():
    x = np.abs(numbers(1, 5, 2, 3))
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_lrn(t, 3, 1.0, 1.0, 1e-4)
    assert (layer.window_size, layer.alpha, layer.beta) == (3, 1.0, 1.0) and abs(layer.k - 1e-4) < 1e-9
    layer.alpha, layer.beta, layer.k = 0.5, 0.75, 2.0
    squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    same(b.run(layer.get_output(0), x=x), x / (2 + 0.5 / 3 * total) ** 0.75, 1e-5)


def lrn_of_an_even_window():
    b = Build()
    layer = b.network.add_lrn(b.network.add_input("x", trt.float32, (1, 4, 2, 2)), 4, 1.0, 1.0, 1.0)
    if layer is not None:
        b.refused(layer.get_output(0))
    assert b.log.errors()


def resize_nearest_by_default():
    x = numbers(1, 1, 3, 4)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_resize(t)
    layer.shape = (1, 1, 6, 8)
    assert layer.resize_mode == trt.ResizeMode.NEAREST
    assert layer.coordinate_transformation == trt.ResizeCoordinateTransformation.ASYMMETRIC
    assert layer.nearest_rounding == trt.ResizeRoundMode.FLOOR
    assert layer.selector_for_single_pixel == trt.ResizeSelector.FORMULA
    assert tuple(layer.shape) == (1, 1, 6, 8)
    same(b.run(layer.get_output(0), x=x), x.repeat(2, 2).repeat(2, 3))


def resize_linear_coordinates():
    x = numbers(1, 1, 4, 5)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    kinds = trt.ResizeCoordinateTransformation
    outputs = []
    for kind in (kinds.ALIGN_CORNERS, kinds.ASYMMETRIC, kinds.HALF_PIXEL):
        layer = b.network.add_resize(t)
        layer.shape, layer.resize_mode, layer.coordinate_transformation = (1, 1, 7, 9), trt.ResizeMode.LINEAR, kind
        outputs.append(layer.get_output(0))

    def axis(n, m, kind):
        i = np.arange(m)
        at = {kinds.ALIGN_CORNERS: i * (n - 1) / (m - 1), kinds.ASYMMETRIC: i * n / m}.get(
            kind, (i + 0.5) * n / m - 0.5
        )
        low = np.floor(at)
        w = np.zeros((m, n))
        np.add.at(w, (i, np.clip(low, 0, n - 1).astype(int)), 1 - (at - low))
        np.add.at(w, (i, np.clip(low + 1, 0, n - 1).astype(int)), at - low)
        return w

    for found, kind in zip(b.run(*outputs, x=x), (kinds.ALIGN_CORNERS, kinds.ASYMMETRIC, kinds.HALF_PIXEL)):
        same(found, axis(4, 7, kind) @ x.astype(np.float64) @ axis(5, 9, kind).T, 1e-4, 1e-5)


def resize_by_scales_floors():
    x = numbers(1, 1, 3, 5)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_resize(t)
    layer.scales = [1, 1, 2.5, 0.7]
    assert tuple(layer.get_output(0).shape) == (1, 1, 7, 3)
    assert [round(float(s), 3) for s in layer.scales] == [1, 1, 2.5, 0.7]
    rows, columns = (np.arange(7) / 2.5).astype(int), (np.arange(3) / 0.7).astype(int)
    same(b.run(layer.get_output(0), x=x), x[:, :, rows][..., columns])


def resize_rounding_modes():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    modes = trt.ResizeRoundMode
    rounds = {
        modes.FLOOR: np.floor, modes.CEIL: np.ceil, modes.HALF_UP: lambda v: np.floor(v + 0.5),
        modes.HALF_DOWN: lambda v: np.ceil(v - 0.5),
    }  # fmt: skip
    outputs = []
    for mode in rounds:
        layer = b.network.add_resize(t)
        layer.shape, layer.nearest_rounding = (1, 1, 8), mode
        outputs.append(layer.get_output(0))
    for found, function in zip(b.run(*outputs, x=x), rounds.values()):
        same(found, x[..., np.clip(function(np.arange(8) / 2), 0, 3).astype(int)])


def grid_sample_bilinear():
    x, grid = numbers(1, 2, 4, 5), np.random.default_rng(1).uniform(-1.3, 1.3, (1, 3, 3, 2)).astype(np.float32)
    b = Build()
    t, g = b.network.add_input("x", trt.float32, x.shape), b.network.add_input("g", trt.float32, grid.shape)
    layer = b.network.add_grid_sample(t, g)
    assert layer.interpolation_mode == trt.InterpolationMode.LINEAR and layer.align_corners is False
    assert layer.sample_mode == trt.SampleMode.FILL
    wanted = np.zeros((1, 2, 3, 3))
    for i, j in itertools.product(range(3), range(3)):
        u, v = ((grid[0, i, j].astype(np.float64) + 1) * (5, 4) - 1) / 2
        for dy, dx in itertools.product((0, 1), (0, 1)):
            r, c = int(np.floor(v)) + dy, int(np.floor(u)) + dx
            if 0 <= r < 4 and 0 <= c < 5:
                wanted[0, :, i, j] += x[0, :, r, c] * (1 - abs(v - r)) * (1 - abs(u - c))
    same(b.run(layer.get_output(0), x=x, g=grid), wanted, 1e-4, 1e-5)


if __name__ == "__main__":
    main(globals())
