"""The bilateral slice: learn how a photograph was retouched (after Gharbi et al., "HDRnet", 2017).

    python examples/bilateral.py [STEPS [PICTURE]]

A small grid over x, y and brightness holds a linear map of colors in each cell. To slice it is to look up, for each
pixel, the map at its place and brightness, interpolated between eight cells; the map then changes the pixel's color.
Frameworks have hand-written GPU kernels for the slice, with hand-written gradients; here it is a formula, and so is
its derivative. Learned from a small copy of scikit-learn's `china.jpg`, the grid is applied to the whole picture.
"""

import sys

import numpy as np
from matplotlib import pyplot
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image

from relay import relay


@relay
def slice_grid(grid, guide):
    """The grid's values at each pixel. grid: (rows, columns, depth, n), guide: (h, w) in [0, 1] -> (h, w, n)."""
    rows, columns, depth, n = grid.shape
    h, w = guide.shape
    y, x = np.linspace(0.0, rows - 1.001, h)[:, None], np.linspace(0.0, columns - 1.001, w)
    z = guide * (depth - 1.001)
    y0, x0, z0 = np.floor(y), np.floor(x), np.floor(z)
    cells = grid.reshape(-1, n)
    result = np.zeros((h, w, n))
    for i in range(2):
        for j in range(2):
            for k in range(2):
                weight = (1 - abs(y - y0 - i)) * (1 - abs(x - x0 - j)) * (1 - abs(z - z0 - k))
                place = ((y0 + i) * columns + x0 + j) * depth + z0 + k
                result += weight[:, :, None] * cells[place.astype(np.int32)]
    return result


@relay
def retouch(grid, image):
    """The image with each pixel's color changed by the affine map that the grid has there. image: (h, w, 3)."""
    guide = image @ np.array([0.25, 0.5, 0.25])
    maps = slice_grid(grid, guide).reshape(*guide.shape, 3, 4)
    return (maps[:, :, :, :3] @ image[:, :, :, None])[:, :, :, 0] + maps[:, :, :, 3]


@relay
def loss(grid, image, target):
    return ((retouch(grid, image) - target) ** 2).mean()


def retouched(image):
    """What a photographer did: local contrast, brighter shadows, warmer lights."""
    blurred = gaussian_filter(image.mean(axis=2, keepdims=True), (len(image) / 30, len(image) / 30, 0))
    image = np.clip(image + 0.8 * (image - blurred), 0, 1) ** (0.5 + blurred)
    return np.float32(image * np.array([1.1, 1.0, 0.85]) ** blurred)


def main(steps=500, picture="bilateral.png"):
    steps = int(steps)
    large = np.float32(load_sample_image("china.jpg") / 255)
    image, target = large[::4, ::4], retouched(large)[::4, ::4]
    grid = np.zeros((16, 16, 8, 12), np.float32)
    grid[..., [0, 5, 10]] = 1  # the map that changes nothing
    velocity = 0
    for i in range(steps + 1):
        value, gradient = relay.value_and_grad(loss, wrt="grid")(grid, image, target)
        if i % max(1, steps // 5) == 0:
            print(f"step {i:4}  error {np.sqrt(value):.4f}")
        velocity = 0.9 * velocity - 300 * gradient.numpy()
        grid = grid + velocity
    result = retouch(grid, large).numpy()
    print(f"error at full resolution {np.sqrt(((result - retouched(large)) ** 2).mean()):.4f}")
    pyplot.imsave(picture, np.hstack([large, retouched(large), result]).clip(0, 1)[::2, ::2])
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
