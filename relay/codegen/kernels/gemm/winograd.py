"""Winograd convolution: constant weights of 3 by 3 places, with fewer multiplications.

Winograd's F(2x2, 3x3) (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016) makes 2 by 2 results of
4 by 4 inputs d and 3 by 3 weights g with 16 multiplications for each channel instead of 36:

    y = A' [sum over channels of (G g G') * (B' d B)] A

    packed[place, panel, channel, lane] = G g G'                    when the program is compiled
    for blocks of rows of tiles:                                    shared among threads
        inputs[place, tile, channel] = B' d B
        sums[place, tile, column] = sum over channels of inputs[place, tile, channel] * packed[place, channel, column]
        out[rows, columns] = epilogue(A' sums A)

The factors of A, B and G are 0, 1, -1 and 1/2, so a result differs from the direct sum by rounding. With normally
distributed inputs and weights its error is two thirds of the direct sum's, which adds nine times as many terms in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from tvm.sym import Analyzer

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.emission import ConstantOperand, Emission
from relay.codegen.kernels.gemm.packing import NonArithmeticIndex, evaluate_index
from relay.codegen.kernels.gemm.recognition import (
    PARALLEL_PRODUCTS,
    Axis,
    Product,
    constant_right,
    only_moved,
    pieces,
    registers,
    tile_height,
)
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.reduction.reductions import Finish, finish
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, substitute_variables, volume
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx

INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
WEIGHT = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])

MOVED = 10  # multiplications that take as long as bringing an element to and from memory between the three steps
STREAMED = 15  # those that take as long as reading a weight from memory
BLOCK = 600_000  # bytes of inputs and sums of a block, which the second-level cache is to hold


@attrs.frozen(eq=False)
class WinogradConvolution:
    """The description of a convolution. `order` has for each axis of the result whether it is that of images,
    height, width or columns (0 to 3). `images` by `height` by `width` places of results; `base(image)` is the start
    of an image in the buffer of the inputs, and `steps` are the distances to its next row and column of places."""

    order: tuple[int, ...]
    buffer: Any
    base: Callable[[Expression], Expression]
    steps: tuple[int, int]
    images: Extent
    height: int
    width: int
    channels: int
    columns: int
    dtype: str
    constant: ConstantOperand
    places: np.ndarray  # where the weights are in the constant, (3, 3, channels, columns)

    @property
    def tiles(self) -> tuple[int, int]:
        """The tiles along height and width."""
        return -(-self.height // 2), -(-self.width // 2)

    @property
    def pays(self) -> bool:
        """True if this takes less time than the direct sum."""
        images = self.images if isinstance(self.images, int) else 1
        tiles, weights = self.tiles[0] * self.tiles[1] * images, self.channels * self.columns
        fast = 16 * (tiles * weights + MOVED * tiles * (self.channels + self.columns) + STREAMED * weights)
        return fast < 9 * weights * (images * self.height * self.width + STREAMED)


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Convolutions with constant kernels of 3 by 3 places that are large enough."""
    product = subject.product
    constant = None if product is None else constant_right(e, product)
    if product is None or constant is None:
        return None
    convolution = recognize(e, product, constant)
    if convolution is None or not convolution.pays:
        return None
    work = product.stage.work
    threads = 1 if isinstance(work, int) and work < PARALLEL_PRODUCTS else e.threads

    def emit() -> list[Statement]:
        done = finish(e, subject.cluster, ())
        return WinogradGenerator(e, convolution, done, threads, *registers(product.dtype)).statements()

    return Plan("a constant kernel of 3 by 3 places: 16 products for each 4 results, where 36 are written", emit)


def recognize(e: Emission, product: Product, constant: ConstantOperand) -> WinogradConvolution | None:
    """A product with a constant right operand as a convolution with 3 by 3 places, one apart; None if it is none."""
    if product.batch or (len(product.rows), len(product.columns), len(product.inner)) != (3, 1, 3):
        return None
    if product.dtype not in ("float32", "float64"):
        return None
    if {str(product.left.ty), str(product.right.ty)} != {product.dtype} or not only_moved(e, product.left):
        return None
    left, right = e.element(product.left, {}), e.element(product.right, {})
    steps = {axis: _step(left.indices[0], axis) for axis in (*product.rows, *product.inner)}
    channels = [axis for axis in product.inner if steps[axis] == 1]
    kernel = [axis for axis in product.inner if steps[axis] != 1]
    if None in steps.values() or len(channels) != 1 or [axis.extent for axis in kernel] != [3, 3]:
        return None
    found = [[axis for axis in product.rows if steps[axis] == steps[k] and axis.extent != 1] for k in kernel]
    if any(len(axes) != 1 for axes in found) or found[0] == found[1]:
        return None
    (height,), (width,) = found
    (image,) = (axis for axis in product.rows if axis not in (height, width))
    (column,) = product.columns
    if not all(isinstance(axis.extent, int) for axis in (height, width, column, *channels)):
        return None
    zero = {a.variable: tirx.const(0, str(a.variable.ty)) for a in (height, width, *kernel, *channels)}

    def base(at: Expression) -> Expression:
        return substitute_variables(left.indices[0], {**zero, image.variable: cast(at, str(image.variable.ty))})

    axes = [*kernel, *channels, column]
    grids = np.ogrid[tuple(slice(axis.extent) for axis in axes)]
    try:
        places = evaluate_index(right.indices[0], {a.variable: grid for a, grid in zip(axes, grids, strict=True)})
    except NonArithmeticIndex:
        return None
    which = {image: 0, height: 1, width: 2, column: 3}
    order = sorted(which, key=lambda axis: axis.position)
    return WinogradConvolution(
        tuple(which[axis] for axis in order),
        left.source,
        base,
        (int(steps[height] or 0), int(steps[width] or 0)),
        image.extent,
        _number(height.extent),
        _number(width.extent),
        _number(channels[0].extent),
        _number(column.extent),
        product.dtype,
        constant,
        np.broadcast_to(places, [_number(axis.extent) for axis in axes]),
    )


def _step(offset: Expression, axis: Axis) -> int | None:
    """The distance in memory to the next place along an axis; None if it is not the same everywhere."""
    here = {axis.variable: axis.variable + 1}
    step = Analyzer().simplify(substitute_variables(offset, here) - offset)
    return int(step.value) if isinstance(step, tirx.IntImm) else None


def _number(extent: Extent) -> int:
    assert isinstance(extent, int)
    return extent


@attrs.frozen(eq=False)
class WinogradWeights:
    """The weights G g G', in panels of columns. `places`: where they are in the constant, (3, 3, channels, columns)."""

    places: np.ndarray
    width: int

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """packed[place, panel, channel, lane], of one axis."""
        weights = array.reshape(-1)[self.places].astype(np.float64)
        made = np.einsum("ai,bj,ijco->abco", WEIGHT, WEIGHT, weights).reshape(16, *weights.shape[2:])
        panels = -(-made.shape[2] // self.width)
        padded = np.pad(made, ((0, 0), (0, 0), (0, panels * self.width - made.shape[2])))
        split = padded.reshape(16, made.shape[1], panels, self.width)
        return np.ascontiguousarray(split.transpose(0, 2, 1, 3), array.dtype).reshape(-1)


class WinogradGenerator:
    """The statements of one convolution. `lanes` is the width of a vector; the tiles of sums that stay in registers
    take at most this many `accumulators`."""

    def __init__(
        self, e: Emission, convolution: WinogradConvolution, done: Finish, threads: int, lanes: int, accumulators: int
    ) -> None:
        self.e = e
        self.threads = threads
        self.convolution = convolution
        self.done = done
        self.lanes = lanes
        self.vectors = 2 if convolution.columns > lanes else 1
        self.panel = self.vectors * lanes
        self.panels = -(-convolution.columns // self.panel)
        itemsize = np.dtype(convolution.dtype).itemsize
        rows, across = convolution.tiles
        each = 16 * across * (convolution.channels + self.panels * self.panel) * itemsize  # bytes of a row of tiles
        fitting = [n for n in range(1, rows + 1) if rows % n == 0 and (n == 1 or n * each <= BLOCK)]
        self.block = fitting[-1]  # rows of tiles
        self.blocks = volume([convolution.images, rows // self.block])
        self.height = tile_height(self.block * across, accumulators)
        self.rows = -(-self.block * across // self.height) * self.height  # of the products, some in vain

    def statements(self) -> list[Statement]:
        """The whole convolution."""
        conv = self.convolution
        total = 16 * self.panels * conv.channels * self.panel
        self.packed = self.e.pack(conv.constant, WinogradWeights(conv.places, self.panel), total).buffer
        if self.threads == 1 or (isinstance(self.blocks, int) and self.blocks == 1):
            return self._part(None, tirx.const(0, self.e.index), self.blocks)
        each = number(pieces(self.blocks, self.threads), self.e.index)

        def part(thread: Expression) -> list[Statement]:
            first = cast(thread, self.e.index) * each
            left = number(self.blocks, self.e.index) - first
            return self._part(thread, first, tirx.Max(tirx.Min(each, left), tirx.const(0, self.e.index)))

        return loop(self.threads, "int32", part, "PARALLEL")

    def _part(self, thread: Expression | None, first: Expression, count: Extent) -> list[Statement]:
        """This many blocks, from the first one on."""
        conv, name = self.convolution, self.convolution.constant
        place, made = self.e.scratch((name, "inputs"), conv.dtype, (16, self.rows, conv.channels), thread, 0)
        shape = 16, self.rows, self.panels * self.panel
        sums, more = self.e.scratch((name, "sums"), conv.dtype, shape, thread, 0)
        self.inputs, self.sums = place.buffer, sums.buffer

        def block(own: Expression) -> list[Statement]:
            rows = conv.tiles[0] // self.block
            image, row = unravel_index(first + own, [conv.images, rows], self.e.index)
            top = row * self.block  # row of tiles
            return [
                *self._tiles(partial(self._input, image, top)),
                *loop(16, self.e.index, self._product),
                *self._tiles(partial(self._output, image, top)),
            ]

        return [*made, *more, *loop(count, self.e.index, block)]

    def _tiles(self, body: Callable[[Expression, Expression], list[Statement]]) -> list[Statement]:
        """body(row, column) for all tiles of a block."""
        return loop(self.block, self.e.index, lambda r: loop(self.convolution.tiles[1], self.e.index, partial(body, r)))

    def _vectors(self, extent: int, body: Callable[[Expression, int], list[Statement]]) -> list[Statement]:
        """body(start, lanes) for vectors over an axis, the last ones shorter."""
        whole, rest = divmod(extent, self.lanes)
        statements = loop(whole, self.e.index, lambda v: body(v * self.lanes, self.lanes))
        start, lanes = whole * self.lanes, self.lanes
        while rest:
            while lanes > rest:
                lanes //= 2
            statements += body(tirx.const(start, self.e.index), lanes)
            start, rest = start + lanes, rest - lanes
        return statements

    # ---- the three steps

    def _input(self, image: Expression, top: Expression, row: Expression, column: Expression) -> list[Statement]:
        """B' d B of a tile."""
        conv = self.convolution
        base = conv.base(image)
        tile = row * conv.tiles[1] + column

        def place(step: int, at: Expression, size: int) -> Expression:
            last = tirx.const(size + 1, self.e.index)  # what lies beyond takes part in results that are not stored
            return tirx.Min(at + step, last) if size % 2 and step == 3 else at + step

        def lane_statements(channel: Expression, lanes: int) -> list[Statement]:
            registers = _TileRegisters(self.e, conv.dtype, lanes)
            given = [
                [
                    registers.keep(
                        lambda lane, i=i, j=j: tirx.BufferLoad(  # type: ignore[misc]
                            conv.buffer,
                            [
                                base
                                + place(i, (top + row) * 2, conv.height) * conv.steps[0]
                                + place(j, column * 2, conv.width) * conv.steps[1]
                                + channel
                                + lane
                            ],
                        )
                    )
                    for j in range(4)
                ]
                for i in range(4)
            ]
            for n, value in enumerate(registers.transform_tile(given, INPUT)):
                at = (n * self.rows + tile) * conv.channels + channel
                registers.store(self.inputs, at, value)
            return registers.statements

        return self._vectors(conv.channels, lane_statements)

    def _product(self, which: Expression) -> list[Statement]:
        """The sums over channels at one of the 16 places."""
        conv = self.convolution
        width = self.panels * self.panel

        def tile(panel: Expression, own: Expression) -> list[Statement]:
            row = own * self.height
            registers = [_TileRegisters(self.e, conv.dtype, self.lanes) for _ in range(self.height)]
            zero = tirx.const(0, conv.dtype)
            sums = [[r.keep(lambda lane: zero) for _ in range(self.vectors)] for r in registers]
            start = (which * self.panels + panel) * (conv.channels * self.panel)

            def step(channel: Expression) -> list[Statement]:
                statements: list[Statement] = []
                for r in range(self.height):
                    factor = tirx.Var("left", conv.dtype)
                    at = (which * self.rows + row + r) * conv.channels + channel
                    statements.append(tirx.Bind(factor, tirx.BufferLoad(self.inputs, [at])))
                    for v in range(self.vectors):

                        def add(lane: Expression, r: int = r, v: int = v, factor: Any = factor) -> list[Statement]:
                            right = tirx.BufferLoad(
                                self.packed, [start + channel * self.panel + (v * self.lanes + lane)]
                            )
                            buffer = registers[r].buffers[v]
                            return [tirx.BufferStore(buffer, tirx.BufferLoad(buffer, [lane]) + factor * right, [lane])]

                        statements += loop(self.lanes, self.e.index, add, "VECTORIZED")
                return statements

            statements = [s for r in registers for s in r.statements]
            statements += loop(conv.channels, self.e.index, step)
            for r, (register, row_of) in enumerate(zip(registers, sums, strict=True)):
                register.statements = []
                for v, value in enumerate(row_of):
                    at = (which * self.rows + row + r) * width + panel * self.panel + v * self.lanes
                    register.store(self.sums, at, value)
                statements += register.statements
            return statements

        tiles = self.rows // self.height
        return loop(self.panels, self.e.index, lambda p: loop(tiles, self.e.index, partial(tile, p)))

    def _output(self, image: Expression, top: Expression, row: Expression, column: Expression) -> list[Statement]:
        """A' sums A of a tile, and what is computed from it."""
        conv = self.convolution
        tile = row * conv.tiles[1] + column

        def lane_statements(start: Expression, lanes: int) -> list[Statement]:
            registers = _TileRegisters(self.e, conv.dtype, lanes)
            width = self.panels * self.panel
            given = [
                [
                    registers.keep(
                        lambda lane, n=4 * i + j: tirx.BufferLoad(  # type: ignore[misc]
                            self.sums, [(n * self.rows + tile) * width + start + lane]
                        )
                    )
                    for j in range(4)
                ]
                for i in range(4)
            ]
            statements: list[Statement] = []
            for n, value in enumerate(registers.transform_tile(given, OUTPUT)):
                i, j = divmod(n, 2)
                y, x = (top + row) * 2 + i, column * 2 + j

                def store(lane: Expression, y: Any = y, x: Any = x, value: Any = value) -> list[Statement]:
                    indices = image, y, x, start + lane
                    return self.done([indices[which] for which in conv.order], [value(lane)])

                stores = loop(lanes, self.e.index, store, "VECTORIZED")
                inside = [
                    tirx.LT(at, tirx.const(size, self.e.index))
                    for at, size, step in ((y, conv.height, i), (x, conv.width, j))
                    if size % 2 and step == 1
                ]
                for condition in inside:
                    stores = [tirx.IfThenElse(condition, sequence(stores), None)]
                statements += stores
            return [*registers.statements, *statements]

        return self._vectors(conv.columns, lane_statements)


class _TileRegisters:
    """Vectors that stay in registers, and the statements that fill them."""

    def __init__(self, e: Emission, dtype: str, lanes: int) -> None:
        self.e = e
        self.dtype = dtype
        self.lanes = lanes
        self.buffers: list[Any] = []
        self.statements: list[Statement] = []

    def keep(self, value: Callable[[Expression], Expression]) -> Callable[[Expression], Expression]:
        """A vector with these elements."""
        alignment = np.dtype(self.dtype).itemsize * self.lanes
        buffer = tirx.decl_buffer((self.lanes,), self.dtype, "vector", data_alignment=alignment)
        self.buffers.append(buffer)
        self.statements.append(tirx.AllocBuffer(buffer))
        self.statements += loop(
            self.lanes, self.e.index, lambda lane: [tirx.BufferStore(buffer, value(lane), [lane])], "VECTORIZED"
        )
        return lambda lane: tirx.BufferLoad(buffer, [lane])

    def store(self, buffer: Any, at: Expression, value: Callable[[Expression], Expression]) -> None:
        """Write a vector to memory."""
        self.statements += loop(
            self.lanes, self.e.index, lambda lane: [tirx.BufferStore(buffer, value(lane), [at + lane])], "VECTORIZED"
        )

    def transform_tile(
        self, given: Sequence[Sequence[Callable[[Expression], Expression]]], matrix: np.ndarray
    ) -> list[Callable[[Expression], Expression]]:
        """matrix . given . matrix', row by row."""
        columns = [[given[i][j] for i in range(4)] for j in range(4)]
        first = [[self.keep(_combination(row, column)) for column in columns] for row in matrix]
        return [self.keep(_combination(row, vectors)) for vectors in first for row in matrix]


def _combination(
    factors: np.ndarray, vectors: Sequence[Callable[[Expression], Expression]]
) -> Callable[[Expression], Expression]:
    """The sum of vectors with the factors 0, 1 and -1, of which the first one is not -1 only."""

    def element(lane: Expression) -> Expression:
        terms = sorted(((f, v) for f, v in zip(factors, vectors, strict=True) if f), key=lambda term: -term[0])
        value = terms[0][1](lane)
        for factor, vector in terms[1:]:
            value = value + vector(lane) if factor > 0 else value - vector(lane)
        return value

    return element


RULE = Rule("winograd", 90, match)
