"""The signatures of Relay's operators: `python -m relay.operator.stubs` writes this file."""

from typing import Any

class Operators:
    """The object `relay.name` for each operator."""

    @staticmethod
    def abs(x: Any) -> Any:
        """Type: T:number -> T

        |x|, whose gradient at 0 is 0. x: (T, s) -> (T, s); the smallest integer wraps.
        """

    @staticmethod
    def absolute(x: Any) -> Any:
        """Type: T:number -> T

        |x|, whose gradient at 0 is 0. x: (T, s) -> (T, s); the smallest integer wraps.
        """

    @staticmethod
    def acos(x: Any) -> Any:
        """Type: T:float -> T

        The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def acosh(x: Any) -> Any:
        """Type: T:float -> T

        The number, not negative, whose hyperbolic cosine is x; NaN below 1. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def adaptive_avg_pool1d(x: Any, output_size: Any, layout: str = "NCW") -> Any:
        """Type: T:float -> T

        The means of `output_size` bins along the spatial axis. Bin i of m over an axis of extent n is [floor(i n / m),
        ceil((i + 1) n / m)). x: (T float, (n, c, *sizes)) -> (T, (n, c, *output_size)).
        """

    @staticmethod
    def adaptive_avg_pool2d(x: Any, output_size: Any, layout: str = "NCHW") -> Any:
        """Type: T:float -> T

        The means of `output_size` bins along each of 2 spatial axes. Bin i of m over an axis of extent n is [floor(i n
        / m), ceil((i + 1) n / m)). x: (T float, (n, c, *sizes)) -> (T, (n, c, *output_size)).
        """

    @staticmethod
    def adaptive_avg_pool3d(x: Any, output_size: Any, layout: str = "NCDHW") -> Any:
        """Type: T:float -> T

        The means of `output_size` bins along each of 3 spatial axes. Bin i of m over an axis of extent n is [floor(i n
        / m), ceil((i + 1) n / m)). x: (T float, (n, c, *sizes)) -> (T, (n, c, *output_size)).
        """

    @staticmethod
    def adaptive_max_pool1d(x: Any, output_size: Any, layout: str = "NCW") -> Any:
        """Type: T:number -> T

        The maxima of `output_size` bins along the spatial axis. Bin i of m over an axis of extent n is [floor(i n / m),
        ceil((i + 1) n / m)). x: (T, (n, c, *sizes)) -> (T, (n, c, *output_size)).
        """

    @staticmethod
    def adaptive_max_pool2d(x: Any, output_size: Any, layout: str = "NCHW") -> Any:
        """Type: T:number -> T

        The maxima of `output_size` bins along each of 2 spatial axes. Bin i of m over an axis of extent n is [floor(i n
        / m), ceil((i + 1) n / m)). x: (T, (n, c, *sizes)) -> (T, (n, c, *output_size)).
        """

    @staticmethod
    def adaptive_max_pool3d(x: Any, output_size: Any, layout: str = "NCDHW") -> Any:
        """Type: T:number -> T

        The maxima of `output_size` bins along each of 3 spatial axes. Bin i of m over an axis of extent n is [floor(i n
        / m), ceil((i + 1) n / m)). x: (T, (n, c, *sizes)) -> (T, (n, c, *output_size)).
        """

    @staticmethod
    def add(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Sum. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def add_along_axis(x: Any, indices: Any, updates: Any, axis: Any = 0) -> Any:
        """Type: T:number, I:int, T -> T

        x with each update added where `take_along_axis` reads; repeated indices accumulate, in order. x: (T, (*a, n,
        *b)), indices: (int, (*a, m, *b)) in [-n, n), updates: (T, (*a, m, *b)) -> (T, (*a, n, *b)).
        """

    @staticmethod
    def add_slice(x: Any, new: Any, begin: Any, end: Any, strides: Any) -> Any:
        """Type: T:number, T -> T

        x with `new` added to a slice; the bounds are as in `strided_slice`. x: (T, s), new: (T, the slice's shape) ->
        (T, s).
        """

    @staticmethod
    def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: bool -> bool

        True where all elements are true along axes; true over none. x: (bool, s) -> (bool, s without the axes).
        """

    @staticmethod
    def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: bool -> bool

        True where at least one element is true along axes; false over none. x: (bool, s) -> (bool, s without the axes).
        """

    @staticmethod
    def arange(start: Any, stop: Any, step: Any = 1, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        start, start + step, .. before stop. () -> (dtype, (ceil((stop - start) / step),)).
        """

    @staticmethod
    def arccos(x: Any) -> Any:
        """Type: T:float -> T

        The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def arccosh(x: Any) -> Any:
        """Type: T:float -> T

        The number, not negative, whose hyperbolic cosine is x; NaN below 1. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def arcsin(x: Any) -> Any:
        """Type: T:float -> T

        The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def arcsinh(x: Any) -> Any:
        """Type: T:float -> T

        The number whose hyperbolic sine is x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def arctan(x: Any) -> Any:
        """Type: T:float -> T

        The angle in [-pi/2, pi/2] whose tangent is x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def arctan2(y: Any, x: Any) -> Any:
        """Type: T:float, T -> T

        The angle in [-pi, pi] of the point (x, y). y: (T float, s1), x: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def arctanh(x: Any) -> Any:
        """Type: T:float -> T

        The number whose hyperbolic tangent is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def argmax(x: Any, axis: Any = None, keepdims: bool = False, ties: str = "first") -> Any:
        """Type: by its own rule

        The index of the largest element along an axis, or in all elements in order, NaN before all; of equal ones the
        first, or the last with ties="last"; int64 if there are more than 2**31 - 1. x: (T, s) -> (int32, s without the
        axis).
        """

    @staticmethod
    def argmin(x: Any, axis: Any = None, keepdims: bool = False, ties: str = "first") -> Any:
        """Type: by its own rule

        The index of the smallest element along an axis, or in all elements in order, NaN before all; of equal ones the
        first, or the last with ties="last"; int64 if there are more than 2**31 - 1. x: (T, s) -> (int32, s without the
        axis).
        """

    @staticmethod
    def argsort(x: Any, axis: Any = -1, descending: bool = False, ties: str = "first") -> Any:
        """Type: T -> int32

        The places of the elements along an axis in ascending order, NaN as the largest; of equal ones the first comes
        first (a stable order), or the last with ties="last". x: (T, s) -> (int32, s).
        """

    @staticmethod
    def asin(x: Any) -> Any:
        """Type: T:float -> T

        The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def asinh(x: Any) -> Any:
        """Type: T:float -> T

        The number whose hyperbolic sine is x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def atan(x: Any) -> Any:
        """Type: T:float -> T

        The angle in [-pi/2, pi/2] whose tangent is x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def atan2(y: Any, x: Any) -> Any:
        """Type: T:float, T -> T

        The angle in [-pi, pi] of the point (x, y). y: (T float, s1), x: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def atanh(x: Any) -> Any:
        """Type: T:float -> T

        The number whose hyperbolic tangent is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def avg_pool1d(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        layout: str = "NCW",
        count_include_pad: bool = True,
    ) -> Any:
        """Type: T:float -> T

        The mean of each window over 1 spatial axis; padding counts as 0, or not at all without `count_include_pad`. x:
        (T float, (n, c, *sizes)) -> (T, (n, c, *extents)). Attributes are those of `avg_pool2d`, with the layouts NCW,
        NWC and NCWc.
        """

    @staticmethod
    def avg_pool2d(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
    ) -> Any:
        """Type: T:float -> T

        The mean of each window over 2 spatial axes; padding counts as 0, or not at all without `count_include_pad`. x:
        (T float, (n, c, *sizes)) -> (T, (n, c, *extents)). The stride is the kernel's size unless given. `padding` is
        as in `conv2d`; with `ceil_mode` a last window that is not full counts, too. In the layout NCHWc x is (n, c / b,
        *sizes, b).
        """

    @staticmethod
    def avg_pool3d(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
    ) -> Any:
        """Type: T:float -> T

        The mean of each window over 3 spatial axes; padding counts as 0, or not at all without `count_include_pad`. x:
        (T float, (n, c, *sizes)) -> (T, (n, c, *extents)). Attributes are those of `avg_pool2d`, with the layouts
        NCDHW, NDHWC and NCDHWc.
        """

    @staticmethod
    def batch_matmul(x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False) -> Any:
        """Type: T:number, T -> T

        The matrix product in each batch, of matrices that may be transposed. x: (T, (b, m, k)), y: (T, (b, k, n)) ->
        (T, (b, m, n)).
        """

    @staticmethod
    def batch_norm(
        x: Any,
        weight: Any,
        bias: Any,
        mean: Any,
        variance: Any,
        epsilon: Any = 1e-05,
        axis: Any = 1,
    ) -> Any:
        """Type: T:float, T, T, T, T -> T

        (x - mean) / sqrt(variance + epsilon) * weight + bias in each channel, with statistics that are given, as for
        inference. x: (T float, s); weight, bias, mean, variance: (T, (c,)), c the extent of the axis -> (T, s).
        """

    @staticmethod
    def batch_norm_training(x: Any, weight: Any, bias: Any, epsilon: Any = 1e-05, axis: Any = 1) -> Any:
        """Type: by its own rule

        As `batch_norm`, with the mean and the variance of the batch itself, over all axes but the channels'; both are
        returned behind the result. x: (T float, s), weight: (T, (c,)), bias: (T, (c,)) -> ((T, s), (T, (c,)), (T,
        (c,))). For inference keep running means of them, `m * running + (1 - m) * mean`. The variance is the mean of
        squares, without Bessel's correction.
        """

    @staticmethod
    def bilateral_slice(grid: Any, guide: Any) -> Any:
        """Type: T:float, T -> T

        A slice of a bilateral grid: linear interpolation at each pixel's place, and at the depth that the guide, in [0,
        1], gives (Chen, Paris, Durand, 2007). Cell k of m along an axis has its center at (k + 1/2) / m; beyond the
        outer centers the outer cells hold. grid: (T float, (n, c, d, i, j)), guide: (T, (n, h, w)) -> (T, (n, c, h,
        w)).
        """

    @staticmethod
    def binary_cross_entropy(prediction: Any, target: Any, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        -target log p - (1 - target) log(1 - p) of probabilities p, with logarithms of at least -100. prediction: (T
        float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def binary_cross_entropy_with_logits(prediction: Any, target: Any, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        The binary cross-entropy of p = sigmoid(prediction), without overflow or cancellation: max(x, 0) - x target +
        log(1 + exp(-|x|)). prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def bitwise_and(x: Any, y: Any) -> Any:
        """Type: T:int|bool, T -> T

        The bits set in both. x: (T int or bool, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def bitwise_not(x: Any) -> Any:
        """Type: T:int|bool -> T

        All bits turned. x: (T int or bool, s) -> (T, s).
        """

    @staticmethod
    def bitwise_or(x: Any, y: Any) -> Any:
        """Type: T:int|bool, T -> T

        The bits set in either or both. x: (T int or bool, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def bitwise_xor(x: Any, y: Any) -> Any:
        """Type: T:int|bool, T -> T

        The bits set in one only. x: (T int or bool, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def broadcast_add(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Sum. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def broadcast_div(x: Any, y: Any) -> Any:
        """Type: T:float, T -> T

        Quotient of floats; for integers there is `floor_divide`. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def broadcast_mul(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Product. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def broadcast_sub(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Difference. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def broadcast_to(x: Any, shape: Any) -> Any:
        """Type: T -> T

        x stretched to a shape. x: (T, s) -> (T, shape).
        """

    @staticmethod
    def cast(x: Any, dtype: Any) -> Any:
        """Type: T -> @dtype

        x in another dtype: floats lose their fraction in an integer, integers wrap, numbers other than 0 are true. x:
        (T, s) -> (dtype, s).
        """

    @staticmethod
    def cat(tensors: Any, axis: Any = 0) -> Any:
        """Type: T.. -> T

        Tensors joined along an axis. Each: (T, (*a, n_k, *b)) -> (T, (*a, sum of n_k, *b)).
        """

    @staticmethod
    def ceil(x: Any) -> Any:
        """Type: T:number -> T

        The smallest integer that is not below x. x: (T, s) -> (T, s).
        """

    @staticmethod
    def characters(x: Any, form: Any) -> Any:
        """Type: T, int32 -> int32

        The text of a number as Python's `format` writes it: the number of its characters, and their code points, with
        zeros behind them. x: (T, ()), form: (int32, (n,)), the code points of the format -> (int32, (401,)). Raises
        ExecutionError for a text of more than 400 characters.
        """

    @staticmethod
    def cholesky(a: Any) -> Any:
        """Type: T:float -> T

        The lower triangular L with L L^T = a, for symmetric positive definite matrices; of others (a + a^T) / 2 is
        taken, and where that is not positive definite the result holds NaN. a: (T float, (*b, n, n)) -> (T, (*b, n,
        n)).
        """

    @staticmethod
    def clip(x: Any, low: Any = None, high: Any = None) -> Any:
        """Type: T:number -> T

        The larger of x and `low`, of that the smaller with `high`; NaN stays. The gradient passes where x is not
        outside the bounds. x: (T, s) -> (T, s).
        """

    @staticmethod
    def collective_gather(x: Any, axis_name: str = "", size: Any = 1) -> Any:
        """Type: T -> T

        x of all `size` examples along an axis of `relay.vmap`, one after the other: `relay.all_gather`. x: (T, s) ->
        (T, (size, *s)).
        """

    @staticmethod
    def collective_index(axis_name: str = "") -> Any:
        """Type: -> int32

        The number of the example along an axis of `relay.vmap`: `relay.axis_index`. () -> (int32, ()).
        """

    @staticmethod
    def collective_max(x: Any, axis_name: str = "") -> Any:
        """Type: T:number -> T

        The largest of x of all examples along an axis of `relay.vmap`, element by element: `relay.pmax`; ties share the
        gradient evenly. x: (T, s) -> (T, s).
        """

    @staticmethod
    def collective_min(x: Any, axis_name: str = "") -> Any:
        """Type: T:number -> T

        The smallest of x of all examples along an axis of `relay.vmap`, element by element: `relay.pmin`; ties share
        the gradient evenly. x: (T, s) -> (T, s).
        """

    @staticmethod
    def collective_sum(x: Any, axis_name: str = "") -> Any:
        """Type: T:number -> T

        The sum of x of all examples along an axis of `relay.vmap`: `relay.psum`. x: (T, s) -> (T, s).
        """

    @staticmethod
    def concatenate(tensors: Any, axis: Any = 0) -> Any:
        """Type: T.. -> T

        Tensors joined along an axis. Each: (T, (*a, n_k, *b)) -> (T, (*a, sum of n_k, *b)).
        """

    @staticmethod
    def conv1d(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCW",
    ) -> Any:
        """Type: T:number, T -> T

        Convolution over 1 spatial axis, without turning the kernel round (a cross-correlation). x: (T, (n, c, *sizes)),
        weight: (T, (o, c / groups, *kernel)) -> (T, (n, o, *extents)), with extent = floor((size + low + high -
        dilation (kernel - 1) - 1) / stride) + 1. Attributes are those of `conv2d`, with the layouts NCW, NWC and NCWc.
        """

    @staticmethod
    def conv1d_transpose(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCW",
    ) -> Any:
        """Type: T:number, T -> T

        Transposed convolution over 1 spatial axis: the linear map that carries the cotangent of `conv1d` back to its
        input. x: (T, (n, o, *extents)), weight: (T, (o, c / groups, *kernel)) -> (T, (n, c, *sizes)), with size =
        (extent - 1) stride + dilation (kernel - 1) + 1 - low - high + output_padding. Attributes are those of `conv1d`;
        with padding="same" the sizes are the extents times the stride, and `output_padding`, less than the stride, is
        not given. In the layout NWC weight is (*kernel, c / groups, o).
        """

    @staticmethod
    def conv1d_weight_gradient(
        x: Any,
        y: Any,
        kernel: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCW",
    ) -> Any:
        """Type: T:number, T -> T

        The cotangent of the weight of `conv1d`, whose input is x and whose result has the cotangent y. x: (T, (n, c,
        *sizes)), y: (T, (n, o, *extents)) -> (T, (o, c / groups, *kernel)).
        """

    @staticmethod
    def conv2d(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCHW",
    ) -> Any:
        """Type: T:number, T -> T

        Convolution over 2 spatial axes, without turning the kernel round (a cross-correlation). x: (T, (n, c, *sizes)),
        weight: (T, (o, c / groups, *kernel)) -> (T, (n, o, *extents)), with extent = floor((size + low + high -
        dilation (kernel - 1) - 1) / stride) + 1. `stride` and `dilation` are one number or one for each axis; `padding`
        is "valid", "same" (extents are ceil(size / stride)), "same_lower", a number, or for each axis a number or a
        pair (low, high). With `groups` the channels are divided into groups that do not mix; as many groups as channels
        make it depthwise. In the layout NHWC x is (n, *sizes, c) and weight (*kernel, c / groups, o). In the layout
        NCHWc the channels are in blocks of b, those of the result of p, in one group: x is (n, c / b, *sizes, b),
        weight (o / p, c / b, *kernel, b, p). float16 and bfloat16 are summed in float32.
        """

    @staticmethod
    def conv2d_transpose(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCHW",
    ) -> Any:
        """Type: T:number, T -> T

        Transposed convolution over 2 spatial axes: the linear map that carries the cotangent of `conv2d` back to its
        input. x: (T, (n, o, *extents)), weight: (T, (o, c / groups, *kernel)) -> (T, (n, c, *sizes)), with size =
        (extent - 1) stride + dilation (kernel - 1) + 1 - low - high + output_padding. Attributes are those of `conv2d`;
        with padding="same" the sizes are the extents times the stride, and `output_padding`, less than the stride, is
        not given. In the layout NHWC weight is (*kernel, c / groups, o).
        """

    @staticmethod
    def conv2d_weight_gradient(
        x: Any,
        y: Any,
        kernel: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCHW",
    ) -> Any:
        """Type: T:number, T -> T

        The cotangent of the weight of `conv2d`, whose input is x and whose result has the cotangent y. x: (T, (n, c,
        *sizes)), y: (T, (n, o, *extents)) -> (T, (o, c / groups, *kernel)).
        """

    @staticmethod
    def conv3d(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCDHW",
    ) -> Any:
        """Type: T:number, T -> T

        Convolution over 3 spatial axes, without turning the kernel round (a cross-correlation). x: (T, (n, c, *sizes)),
        weight: (T, (o, c / groups, *kernel)) -> (T, (n, o, *extents)), with extent = floor((size + low + high -
        dilation (kernel - 1) - 1) / stride) + 1. Attributes are those of `conv2d`, with the layouts NCDHW, NDHWC and
        NCDHWc.
        """

    @staticmethod
    def conv3d_transpose(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCDHW",
    ) -> Any:
        """Type: T:number, T -> T

        Transposed convolution over 3 spatial axes: the linear map that carries the cotangent of `conv3d` back to its
        input. x: (T, (n, o, *extents)), weight: (T, (o, c / groups, *kernel)) -> (T, (n, c, *sizes)), with size =
        (extent - 1) stride + dilation (kernel - 1) + 1 - low - high + output_padding. Attributes are those of `conv3d`;
        with padding="same" the sizes are the extents times the stride, and `output_padding`, less than the stride, is
        not given. In the layout NDHWC weight is (*kernel, c / groups, o).
        """

    @staticmethod
    def conv3d_weight_gradient(
        x: Any,
        y: Any,
        kernel: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCDHW",
    ) -> Any:
        """Type: T:number, T -> T

        The cotangent of the weight of `conv3d`, whose input is x and whose result has the cotangent y. x: (T, (n, c,
        *sizes)), y: (T, (n, o, *extents)) -> (T, (o, c / groups, *kernel)).
        """

    @staticmethod
    def copy(x: Any) -> Any:
        """Type: T -> T

        x itself. x: (T, s) -> (T, s).
        """

    @staticmethod
    def cos(x: Any) -> Any:
        """Type: T:float -> T

        Cosine of radians. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def cosh(x: Any) -> Any:
        """Type: T:float -> T

        Hyperbolic cosine. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def cross_entropy(
        logits: Any,
        target: Any,
        axis: Any = -1,
        ignore_index: Any = None,
        label_smoothing: Any = 0.0,
        reduction: str = "mean",
    ) -> Any:
        """Type: T:float, I:int -> T

        Minus the logarithm of softmax(logits) for each target's class, without overflow; with `label_smoothing` a part
        of each target's weight is spread evenly over all classes. logits: (T float, (*s, c)), target: (int, s) in [0,
        c) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def cumprod(x: Any, axis: Any = 0, reverse: bool = False) -> Any:
        """Type: T:number -> T

        The products of the elements so far along an axis, from its end with `reverse`. The gradient is right where
        elements are 0. x: (T, s) -> (T, s).
        """

    @staticmethod
    def cumsum(x: Any, axis: Any = 0, reverse: bool = False) -> Any:
        """Type: T:number -> T

        The sums of the elements so far along an axis, from its end with `reverse`. x: (T, s) -> (T, s).
        """

    @staticmethod
    def deg2rad(x: Any) -> Any:
        """Type: T:float -> T

        An angle in degrees, in radians. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def degrees(x: Any) -> Any:
        """Type: T:float -> T

        An angle in radians, in degrees. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def dense(x: Any, weight: Any) -> Any:
        """Type: T:number, T -> T

        x times the transposed weight. x: (T, (*b, k)), weight: (T, (n, k)) -> (T, (*b, n)).
        """

    @staticmethod
    def depth_to_space(x: Any, block: Any, mode: str = "DCR") -> Any:
        """Type: by its own rule

        Channels as blocks of the image. x: (T, (n, c, h, w)) -> (T, (n, c / block**2, h block, w block)); in mode "DCR"
        the block's axes are before the channels', in "CRD" after.
        """

    @staticmethod
    def dequantize(x: Any, scale: Any, zero_point: Any, axis: Any = -1) -> Any:
        """Type: Q:int, T:float, int32 -> T

        (x - zero_point) * scale. x: (int, s), scale: (T float, ()) or (T, (c,)), zero_point: (int32, ()) or (int32,
        (c,)) -> (T, s).
        """

    @staticmethod
    def diag(x: Any, k: Any = 0) -> Any:
        """Type: T:number -> T

        The diagonal of a matrix, or the matrix of a diagonal. x: (T, (m, n)) or (T, (n,)) -> (T, (k,)) or (T, (m, m)).
        """

    @staticmethod
    def diag_embed(x: Any, offset: Any = 0, shape_of: Any = None) -> Any:
        """Type: T:number -> T

        Matrices with a diagonal of x, and 0 elsewhere; square unless their shape is given. x: (T, (*b, k)) -> (T, (*b,
        m, n)).
        """

    @staticmethod
    def diagonal(x: Any, offset: Any = 0) -> Any:
        """Type: T -> T

        A diagonal of the matrices of the last two axes; `offset` 1 is the one above the main diagonal. x: (T, (*b, m,
        n)) -> (T, (*b, k)).
        """

    @staticmethod
    def div(x: Any, y: Any) -> Any:
        """Type: T:float, T -> T

        Quotient of floats; for integers there is `floor_divide`. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def divide(x: Any, y: Any) -> Any:
        """Type: T:float, T -> T

        Quotient of floats; for integers there is `floor_divide`. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def dot(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        NumPy's product: the sum over the last axis of x and the last but one of y (the only one of a vector); with a
        rank of 0 on either side the plain product. x: (T, (*s, k)), y: (T, (*t, k, n)) -> (T, (*s, *t, n)).
        """

    @staticmethod
    def dropout(x: Any, key: Any, rate: Any = 0.5, training: bool = True) -> Any:
        """Type: T:float, uint32 -> T

        x with each element 0 with probability `rate`, the others divided by 1 - rate (Srivastava and others, 2014); x
        itself with training=False, for inference. x: (T float, s), key: (uint32, (2,)) -> (T, s).
        """

    @staticmethod
    def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
        """Type: T, I:int -> T

        A window of x whose place is known only at run time; it must lie in x. x: (T, s), starts: (int, (rank,)) -> (T,
        sizes).
        """

    @staticmethod
    def dynamic_update_slice(x: Any, new: Any, starts: Any) -> Any:
        """Type: T, T, I:int -> T

        x with a window replaced whose place is known only at run time; it must lie in x. x: (T, s), new: (T, t),
        starts: (int, (rank,)) -> (T, s).
        """

    @staticmethod
    def einsum(subscripts: Any, *operands: Any) -> Any:
        """Type: T:number.. -> T

        The sum of products that subscripts describe, as NumPy's: a letter for each axis, summed over unless the result
        names it; without `->` the result has the letters that occur once, sorted. `...` are further axes, which are
        broadcast. operands: (T, s).. -> (T, the extents of the result's letters).
        """

    @staticmethod
    def elu(x: Any, alpha: Any = 1.0) -> Any:
        """Type: T:float -> T

        x where it is positive, otherwise alpha (exp(x) - 1). x: (T float, s) -> (T, s).
        """

    @staticmethod
    def embedding(indices: Any, weight: Any) -> Any:
        """Type: I:int, T -> T

        The weight's rows at indices in [-n, n). indices: (int, s), weight: (T, (n, k)) -> (T, (*s, k)).
        """

    @staticmethod
    def equal(x: Any, y: Any) -> Any:
        """Type: T, T -> bool

        x = y; NaN equals nothing. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def erf(x: Any) -> Any:
        """Type: T:float -> T

        The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def erfc(x: Any) -> Any:
        """Type: T:float -> T

        1 - erf(x), accurate where that is small. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def exp(x: Any) -> Any:
        """Type: T:float -> T

        e to the x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def exp2(x: Any) -> Any:
        """Type: T:float -> T

        2 to the x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def expand_dims(x: Any, axis: Any) -> Any:
        """Type: T -> T

        New axes of extent 1, at positions counted in the result. x: (T, s) -> (T, s with 1s).
        """

    @staticmethod
    def expm1(x: Any) -> Any:
        """Type: T:float -> T

        e to the x, minus 1, accurate for small x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        1 on the k-th diagonal (above the main one for k > 0), otherwise 0. () -> (dtype, (n, m)), m = n by default.
        """

    @staticmethod
    def fix(x: Any) -> Any:
        """Type: T:number -> T

        x without its fraction. x: (T, s) -> (T, s).
        """

    @staticmethod
    def flatten(x: Any, start_axis: Any = 0, end_axis: Any = -1) -> Any:
        """Type: T -> T

        The axes from one to another as one. x: (T, (*a, *b, *c)) -> (T, (*a, product(b), *c)).
        """

    @staticmethod
    def flip(x: Any, axis: Any = None) -> Any:
        """Type: T -> T

        The elements in reverse along axes, all without any given. x: (T, s) -> (T, s).
        """

    @staticmethod
    def floor(x: Any) -> Any:
        """Type: T:number -> T

        The largest integer that is not above x. x: (T, s) -> (T, s).
        """

    @staticmethod
    def floor_divide(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        The quotient rounded down. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer y is not 0.
        """

    @staticmethod
    def fma(x: Any, y: Any, z: Any) -> Any:
        """Type: T:number, T, T -> T

        x y + z; the product is rounded or not. x: (T, s1), y: (T, s2), z: (T, s3) -> (T, broadcast(s1, s2, s3)).
        """

    @staticmethod
    def full(shape: Any, value: Any, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        One number everywhere. () -> (dtype, shape).
        """

    @staticmethod
    def full_like(x: Any, value: Any) -> Any:
        """Type: T -> T

        One number everywhere, in x's shape and dtype. x: (T, s) -> (T, s).
        """

    @staticmethod
    def gather_nd(x: Any, indices: Any) -> Any:
        """Type: T, I:int -> T

        The slices of x at index vectors, which lie along the last axis of `indices`. x: (T, (*a, *b)), indices: (int,
        (*s, k)) with k the number of axes a -> (T, (*s, *b)).
        """

    @staticmethod
    def gelu(x: Any, approximate: str = "none") -> Any:
        """Type: T:float -> T

        x Phi(x), where Phi is the normal distribution function; approximate="tanh" takes (1 + tanh(sqrt(2 / pi) (x +
        0.044715 x**3))) / 2 for it, which is sigmoid(1.5957691 x + 0.0713548 x**3). x: (T float, s) -> (T, s).
        """

    @staticmethod
    def global_avg_pool1d(x: Any, layout: str = "NCW") -> Any:
        """Type: T:float -> T

        The mean over the spatial axis, which stays with extent 1. x: (T, (n, c, *sizes)) -> (T, (n, c, *ones)).
        """

    @staticmethod
    def global_avg_pool2d(x: Any, layout: str = "NCHW") -> Any:
        """Type: T:float -> T

        The mean over all 2 spatial axes, which stay with extent 1. x: (T, (n, c, *sizes)) -> (T, (n, c, *ones)).
        """

    @staticmethod
    def global_avg_pool3d(x: Any, layout: str = "NCDHW") -> Any:
        """Type: T:float -> T

        The mean over all 3 spatial axes, which stay with extent 1. x: (T, (n, c, *sizes)) -> (T, (n, c, *ones)).
        """

    @staticmethod
    def global_max_pool1d(x: Any, layout: str = "NCW") -> Any:
        """Type: T:number -> T

        The largest element over the spatial axis, which stays with extent 1. x: (T, (n, c, *sizes)) -> (T, (n, c,
        *ones)).
        """

    @staticmethod
    def global_max_pool2d(x: Any, layout: str = "NCHW") -> Any:
        """Type: T:number -> T

        The largest element over all 2 spatial axes, which stay with extent 1. x: (T, (n, c, *sizes)) -> (T, (n, c,
        *ones)).
        """

    @staticmethod
    def global_max_pool3d(x: Any, layout: str = "NCDHW") -> Any:
        """Type: T:number -> T

        The largest element over all 3 spatial axes, which stay with extent 1. x: (T, (n, c, *sizes)) -> (T, (n, c,
        *ones)).
        """

    @staticmethod
    def greater(x: Any, y: Any) -> Any:
        """Type: T, T -> bool

        x > y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def greater_equal(x: Any, y: Any) -> Any:
        """Type: T, T -> bool

        x >= y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def grid_sample(
        x: Any,
        grid: Any,
        method: str = "bilinear",
        padding: str = "zeros",
        align_corners: bool = False,
    ) -> Any:
        """Type: T:float, T -> T

        The image at the points of a grid, (x, y) in [-1, 1] from the first to the last column and row (Jaderberg and
        others, 2015). Their ends are the centers of the outer elements if `align_corners`, else the outer edges. x: (T
        float, (n, c, h, w)), grid: (T, (n, i, j, 2)) -> (T, (n, c, i, j)). Outside there is 0 ("zeros"), the nearest
        element ("border"), or the mirrored image ("reflection"). A place that is NaN counts as -1.
        """

    @staticmethod
    def group_norm(x: Any, weight: Any, bias: Any, groups: Any, epsilon: Any = 1e-05) -> Any:
        """Type: T:float, T, T -> T

        Groups of channels of each example normalized together, then scaled by channel (Wu, He, 2018). x: (T float, (n,
        c, *sizes)), weight: (T, (c,)), bias: (T, (c,)) -> (T, (n, c, *sizes)).
        """

    @staticmethod
    def hardswish(x: Any) -> Any:
        """Type: T:float -> T

        x times x + 3 cut to [0, 6], divided by 6. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def hinge_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        max(0, 1 - prediction target), of targets 1 and -1. prediction: (T float, s), target: (T, s) -> (T, ()), or (T,
        s) unreduced.
        """

    @staticmethod
    def huber_loss(prediction: Any, target: Any, delta: Any = 1.0, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        d**2 / 2 where |d| <= delta, otherwise delta (|d| - delta / 2), for d = prediction - target (Huber, 1964).
        prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def index(x: Any, index: Any) -> Any:
        """Type: T, I:int -> T

        x[index] along the first axis, of extent n; -n <= index < n. x: (T, (n, *s)), index: (int, ()) -> (T, s).
        """

    @staticmethod
    def index_add(x: Any, index: Any, new: Any) -> Any:
        """Type: T:number, I:int, T -> T

        x with `new` added to x[index]; -n <= index < n. x: (T, (n, *s)), index: (int, ()), new: (T, s) -> (T, (n, *s)).
        """

    @staticmethod
    def index_update(x: Any, index: Any, new: Any) -> Any:
        """Type: T, I:int, T -> T

        x with x[index] replaced; -n <= index < n. x: (T, (n, *s)), index: (int, ()), new: (T, s) -> (T, (n, *s)).
        """

    @staticmethod
    def instance_norm(x: Any, weight: Any, bias: Any, epsilon: Any = 1e-05) -> Any:
        """Type: T:float, T, T -> T

        Each channel of each example normalized over its places, then scaled. x: (T float, (n, c, *sizes)), weight: (T,
        (c,)), bias: (T, (c,)) -> (T, (n, c, *sizes)).
        """

    @staticmethod
    def isfinite(x: Any) -> Any:
        """Type: T:number -> bool

        True where an element is neither infinite nor NaN. x: (T, s) -> (bool, s).
        """

    @staticmethod
    def isinf(x: Any) -> Any:
        """Type: T:number -> bool

        True where an element is infinite. x: (T, s) -> (bool, s).
        """

    @staticmethod
    def isnan(x: Any) -> Any:
        """Type: T:number -> bool

        True where an element is not a number. x: (T, s) -> (bool, s).
        """

    @staticmethod
    def kl_div(prediction: Any, target: Any, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        The terms target (log target - prediction) of the Kullback-Leibler divergence, where the prediction is a
        logarithm of probabilities; 0 where the target is. "batchmean" divides the sum by the first extent. prediction:
        (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def l1_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        |prediction - target|. prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def layer_norm(x: Any, weight: Any, bias: Any, epsilon: Any = 1e-05) -> Any:
        """Type: T:float, T, T -> T

        (x - mean) / sqrt(variance + epsilon) * weight + bias, with mean and variance over the last axes, as many as the
        weight has. x: (T float, (*b, *s)), weight: (T, s), bias: (T, s) -> (T, (*b, *s)).
        """

    @staticmethod
    def layout_transform(x: Any, source: Any, target: Any) -> Any:
        """Type: T -> T

        The same elements in another layout. A layout has a capital for each axis; a number and a letter is an axis of
        blocks of it, as in NCHW4c. x: (T, s) -> (T, s in the other layout).
        """

    @staticmethod
    def leaky_relu(x: Any, alpha: Any = 0.01) -> Any:
        """Type: T:float -> T

        x where it is positive, otherwise alpha x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def left_shift(x: Any, y: Any) -> Any:
        """Type: T:int, T -> T

        x with its bits moved up by y; 0 where y is not below the width. x: (T int, s1), y: (T, s2) -> (T, broadcast(s1,
        s2)).
        """

    @staticmethod
    def less(x: Any, y: Any) -> Any:
        """Type: T, T -> bool

        x < y; False is less than True. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def less_equal(x: Any, y: Any) -> Any:
        """Type: T, T -> bool

        x <= y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        Numbers in equal steps from start to stop, which is one of them only with `endpoint`. () -> (dtype, (num,)).
        """

    @staticmethod
    def log(x: Any) -> Any:
        """Type: T:float -> T

        Natural logarithm: -inf at 0, NaN below. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def log10(x: Any) -> Any:
        """Type: T:float -> T

        Logarithm to base 10: -inf at 0, NaN below. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def log1p(x: Any) -> Any:
        """Type: T:float -> T

        log(1 + x), accurate for small x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def log2(x: Any) -> Any:
        """Type: T:float -> T

        Logarithm to base 2: -inf at 0, NaN below. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def log_softmax(x: Any, axis: Any = -1) -> Any:
        """Type: T:float -> T

        The logarithm of `softmax`, computed without its underflow. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def logaddexp(x: Any, y: Any) -> Any:
        """Type: T:float, T -> T

        log(exp(x) + exp(y)), without overflow. x: (T float, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def logical_and(x: Any, y: Any) -> Any:
        """Type: bool, bool -> bool

        Both. x: (bool, s1), y: (bool, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def logical_not(x: Any) -> Any:
        """Type: bool -> bool

        The opposite. x: (bool, s) -> (bool, s).
        """

    @staticmethod
    def logical_or(x: Any, y: Any) -> Any:
        """Type: bool, bool -> bool

        Either or both. x: (bool, s1), y: (bool, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def logical_xor(x: Any, y: Any) -> Any:
        """Type: bool, bool -> bool

        One only. x: (bool, s1), y: (bool, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: T:float -> T

        log(sum(exp(x))) along axes, without overflow; -inf of no elements. x: (T float, s) -> (T, s without the axes).
        """

    @staticmethod
    def lrn(x: Any, size: Any, alpha: Any = 0.0001, beta: Any = 0.75, bias: Any = 1.0, axis: Any = 1) -> Any:
        """Type: T:float -> T

        Local response normalization: x / (bias + alpha / size * sum of squares of `size` neighboring channels)**beta
        (Krizhevsky, Sutskever, Hinton, 2012). x: (T float, s) -> (T, s).
        """

    @staticmethod
    def masked_attention(query: Any, key: Any, value: Any, mask: Any, scale: Any = None) -> Any:
        """Type: T:float, T, T, M:bool|float -> T

        As `scaled_dot_product_attention`, with a mask that is broadcast to the scores: bools say which keys a query
        sees (the result is 0 where it sees none), floats of x's dtype are added. query: (T float, (*b, l, d)), key: (T,
        (*b, s, d)), value: (T, (*b, s, e)), mask: (bool or T, to (*b, l, s)) -> (T, (*b, l, e)).
        """

    @staticmethod
    def matmul(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Matrix product; leading axes are broadcast, and a vector on either side loses its axis. x: (T, (*b1, m, k)), y:
        (T, (*b2, k, n)) -> (T, (*broadcast(b1, b2), m, n)).
        """

    @staticmethod
    def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: T:number -> T

        The largest element along axes, which must not be empty; NaN if there is one; ties share the gradient evenly. x:
        (T, s) -> (T, s without the axes).
        """

    @staticmethod
    def max_pool1d(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        layout: str = "NCW",
    ) -> Any:
        """Type: T:number -> T

        The largest element of each window over 1 spatial axis; what is outside does not count. Equal ones share a
        cotangent. x: (T, (n, c, *sizes)) -> (T, (n, c, *extents)). Attributes are those of `max_pool2d`, with the
        layouts NCW, NWC and NCWc.
        """

    @staticmethod
    def max_pool2d(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        layout: str = "NCHW",
    ) -> Any:
        """Type: T:number -> T

        The largest element of each window over 2 spatial axes; what is outside does not count. Equal ones share a
        cotangent. x: (T, (n, c, *sizes)) -> (T, (n, c, *extents)). The stride is the kernel's size unless given.
        `padding` is as in `conv2d`; with `ceil_mode` a last window that is not full counts, too. In the layout NCHWc x
        is (n, c / b, *sizes, b).
        """

    @staticmethod
    def max_pool3d(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
    ) -> Any:
        """Type: T:number -> T

        The largest element of each window over 3 spatial axes; what is outside does not count. Equal ones share a
        cotangent. x: (T, (n, c, *sizes)) -> (T, (n, c, *extents)). Attributes are those of `max_pool2d`, with the
        layouts NCDHW, NDHWC and NCDHWc.
        """

    @staticmethod
    def maximum(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        The larger one, NaN if either is; a tie halves the gradient. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: T:float -> T

        The sum along axes divided by the number of elements; NaN over none. float16 and bfloat16 are summed and divided
        in float32. x: (T float, s) -> (T, s without the axes).
        """

    @staticmethod
    def meshgrid(*xs: Any, indexing: str = "xy") -> Any:
        """Type: by its own rule

        Coordinates of a grid from those of its axes: each vector's elements along an axis of its own, repeated along
        the others. With indexing="xy" the first two axes are exchanged, as NumPy has them. xs: n vectors, or numbers,
        (T_i, (d_i,)) -> n tensors (T_i, (d_1, .., d_n)).
        """

    @staticmethod
    def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: T:number -> T

        The smallest element along axes, which must not be empty; NaN if there is one; ties share the gradient evenly.
        x: (T, s) -> (T, s without the axes).
        """

    @staticmethod
    def minimum(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        The smaller one, NaN if either is; a tie halves the gradient. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def mish(x: Any) -> Any:
        """Type: T:float -> T

        x tanh(softplus(x)). x: (T float, s) -> (T, s).
        """

    @staticmethod
    def mod(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        The remainder of `floor_divide`; it has y's sign. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer y
        is not 0.
        """

    @staticmethod
    def moveaxis(x: Any, source: Any, destination: Any) -> Any:
        """Type: T -> T

        Axes at other positions, the others in their order. x: (T, s) -> (T, s in another order).
        """

    @staticmethod
    def mse_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        (prediction - target) squared. prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def mul(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Product. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def multiply(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Product. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def ndtr(x: Any) -> Any:
        """Type: T:float -> T

        The normal distribution function: 1 / sqrt(2 pi) times the integral of exp(-t**2 / 2) from -infinity to x. x: (T
        float, s) -> (T, s).
        """

    @staticmethod
    def neg(x: Any) -> Any:
        """Type: T:number -> T

        -x. x: (T, s) -> (T, s); integers wrap.
        """

    @staticmethod
    def negative(x: Any) -> Any:
        """Type: T:number -> T

        -x. x: (T, s) -> (T, s); integers wrap.
        """

    @staticmethod
    def nll_loss(
        prediction: Any,
        target: Any,
        axis: Any = -1,
        ignore_index: Any = None,
        reduction: str = "mean",
    ) -> Any:
        """Type: T:float, I:int -> T

        Minus the prediction for each target's class, where predictions are logarithms of probabilities along an axis.
        prediction: (T float, (*s, c)), target: (int, s) in [0, c) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: T:float -> T

        The vector norm (sum |x|**ord)**(1 / ord) along axes, of all elements without any; the largest |x| for inf, the
        smallest for -inf, the number of nonzero elements for 0. The gradient of the 2-norm at 0 is 0. x: (T float, s)
        -> (T, s without the axes).
        """

    @staticmethod
    def not_equal(x: Any, y: Any) -> Any:
        """Type: T, T -> bool

        Not x = y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).
        """

    @staticmethod
    def one_hot(indices: Any, depth: Any, dtype: Any = ...) -> Any:
        """Type: I:int -> @dtype

        1 at each index along a new last axis, otherwise 0; all 0 for an index outside [0, depth). indices: (int, s) ->
        (dtype, (*s, depth)).
        """

    @staticmethod
    def ones(shape: Any, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        1 everywhere. () -> (dtype, shape).
        """

    @staticmethod
    def ones_like(x: Any) -> Any:
        """Type: T -> T

        1 everywhere, in x's shape and dtype. x: (T, s) -> (T, s).
        """

    @staticmethod
    def optimization_barrier(x: Any, number: Any = 0) -> Any:
        """Type: T -> T

        x itself, where what depends on it is computed a second time: equal calls on x and on this value are not merged.
        x: (T, s) -> (T, s). Derivatives of `relay.checkpoint` use it, with a number for each call.
        """

    @staticmethod
    def outer(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        All products of an element of x with one of y, both as vectors. x: (T, s), y: (T, t) -> (T, (product(s),
        product(t))).
        """

    @staticmethod
    def overlap_add(
        windows: Any,
        sizes: Any,
        axes: Any = -1,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
    ) -> Any:
        """Type: T:number -> T

        The sum of windows, each at its place, in a tensor with `sizes` along the axes: the adjoint of
        `sliding_windows`. windows: (T, (*(s with the number of windows along the axes), *kernel)) -> (T, s).
        """

    @staticmethod
    def pad(x: Any, widths: Any, mode: str = "constant", value: Any = 0) -> Any:
        """Type: T:number -> T

        x with elements added before and after: `widths` has (before, after) for each axis, or one for all. They are
        `value`, the last element of that side (mode="edge"), or the reflection there (mode="reflect"). x: (T, s) -> (T,
        s plus the widths).
        """

    @staticmethod
    def parse_float(codes: Any) -> Any:
        """Type: int32 -> float64

        1 if Python's `float` reads a text, else 0, and the number. codes: (int32, (n,)), code points -> (float64,
        (2,)).
        """

    @staticmethod
    def parse_integer(codes: Any) -> Any:
        """Type: int32 -> int64

        1 if Python's `int` reads a text, else 0, and the number. codes: (int32, (n,)), code points -> (int64, (2,)).
        """

    @staticmethod
    def permute(x: Any, axes: Any = None) -> Any:
        """Type: T -> T

        The axes in another order; reversed without one. x: (T, s) -> (T, s in that order).
        """

    @staticmethod
    def place_slice(x: Any, shape: Any, begin: Any, end: Any, strides: Any) -> Any:
        """Type: T:number -> T

        Zeros of a shape with x at a slice: the adjoint of `strided_slice`, with its bounds. x: (T, the slice's shape)
        -> (T, shape).
        """

    @staticmethod
    def pow(x: Any, y: Any) -> Any:
        """Type: T:number, T/int -> T

        x to the y. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer to an integer y that is negative is an
        error. The gradient with respect to y is 0 where x is not positive. In programs as text a float may have an
        exponent of any integer dtype.
        """

    @staticmethod
    def power(x: Any, y: Any) -> Any:
        """Type: T:number, T/int -> T

        x to the y. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer to an integer y that is negative is an
        error. The gradient with respect to y is 0 where x is not positive. In programs as text a float may have an
        exponent of any integer dtype.
        """

    @staticmethod
    def prelu(x: Any, slope: Any, axis: Any = 1) -> Any:
        """Type: T:float, T -> T

        x where it is positive, elsewhere x times the slope of its channel. x: (T float, s), slope: (T, (c,)) or (T,
        (1,)) -> (T, s).
        """

    @staticmethod
    def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: T:number -> T

        The product along axes; 1 over no elements; integers wrap. x: (T, s) -> (T, s without the axes).
        """

    @staticmethod
    def quantize(x: Any, scale: Any, zero_point: Any, axis: Any = -1, out_dtype: Any = ...) -> Any:
        """Type: T:float, T, int32 -> @out_dtype

        round(x / scale) + zero_point, to the even one of two integers, kept within the dtype. x: (T float, s), scale:
        (T, ()) or (T, (c,)), zero_point: (int32, ()) or (int32, (c,)) -> (out_dtype, s).
        """

    @staticmethod
    def quantized_conv2d(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCHW",
    ) -> Any:
        """Type: by its own rule

        `conv2d` of 8-bit numbers, summed in 32 bits, in all of its layouts. x: (int8 or uint8, (n, c, h, w)), weight:
        (int8 or uint8, (o, c / groups, i, j)) -> (int32, (n, o, *extents)).
        """

    @staticmethod
    def quantized_conv2d_transpose(
        x: Any,
        weight: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
        layout: str = "NCHW",
    ) -> Any:
        """Type: by its own rule

        `conv2d_transpose` of 8-bit numbers, summed in 32 bits. x: (int8 or uint8, (n, o, h, w)), weight: (int8 or
        uint8, (o, c / groups, i, j)) -> (int32, (n, c, *sizes)).
        """

    @staticmethod
    def quantized_dense(x: Any, weight: Any) -> Any:
        """Type: by its own rule

        x times the transposed weight, of 8-bit numbers, summed in 32 bits. x: (int8 or uint8, (*b, k)), weight: (int8
        or uint8, (n, k)) -> (int32, (*b, n)).
        """

    @staticmethod
    def rad2deg(x: Any) -> Any:
        """Type: T:float -> T

        An angle in radians, in degrees. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def radians(x: Any) -> Any:
        """Type: T:float -> T

        An angle in degrees, in radians. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def random_bernoulli(key: Any, p: Any, shape: Any = None) -> Any:
        """Type: uint32, T:float -> bool

        True with probability p, independently for each element of p, or of `shape`, to which p is broadcast. key:
        (uint32, (2,)), p: (T float, s) -> (bool, shape).
        """

    @staticmethod
    def random_bits(key: Any, shape: Any = (), width: Any = 32) -> Any:
        """Type: by its own rule

        Random bits in words of 32 or 64. key: (uint32, (*s, 2)) -> (uint32 or uint64, (*s, *shape)).
        """

    @staticmethod
    def random_categorical(key: Any, logits: Any, axis: Any = -1, shape: Any = None) -> Any:
        """Type: uint32, T:float -> int32

        Places along an axis, place i with probability softmax(logits)[i]: where logits plus Gumbel numbers are largest.
        `shape` is that of the draws, to which the other axes are broadcast. key: (uint32, (2,)), logits: (T float, s)
        -> (int32, s without the axis, or shape).
        """

    @staticmethod
    def random_exponential(key: Any, shape: Any = (), dtype: Any = ...) -> Any:
        """Type: uint32 -> @dtype

        Floats of the exponential distribution with mean 1. key: (uint32, (*s, 2)) -> (dtype float, (*s, *shape)).
        """

    @staticmethod
    def random_gumbel(key: Any, shape: Any = (), dtype: Any = ...) -> Any:
        """Type: uint32 -> @dtype

        Floats -log(-log u) of the standard Gumbel distribution. key: (uint32, (*s, 2)) -> (dtype float, (*s, *shape)).
        """

    @staticmethod
    def random_key(seed: Any) -> Any:
        """Type: T:int -> uint32

        The key of a seed, or of each: its upper and lower 32 bits, the upper ones 0 for narrower seeds. seed: (int, s)
        -> (uint32, (*s, 2)).
        """

    @staticmethod
    def random_normal(key: Any, shape: Any = (), dtype: Any = ...) -> Any:
        """Type: uint32 -> @dtype

        Floats of the normal distribution with mean 0 and variance 1. key: (uint32, (*s, 2)) -> (dtype float, (*s,
        *shape)).
        """

    @staticmethod
    def random_permutation(key: Any, x: Any, axis: Any = 0) -> Any:
        """Type: uint32, T -> T

        x with what lies along an axis in random order: that of 64 random bits for each place. key: (uint32, (2,)), x:
        (T, s) -> (T, s).
        """

    @staticmethod
    def random_randint(key: Any, minval: Any, maxval: Any, shape: Any = ()) -> Any:
        """Type: uint32, T:int, T -> T

        Integers from minval up to maxval, exclusive, the upper part of the product of 64 random bits and the range: no
        integer's probability is off by more than 2**-64. key: (uint32, (*s, 2)), minval: (T int, () or s), maxval: (T,
        () or s) -> (T, (*s, *shape)).
        """

    @staticmethod
    def random_split(key: Any, num: Any = 2) -> Any:
        """Type: uint32 -> uint32

        New keys, independent of each other and of what is drawn with other keys; use the old one no more. key: (uint32,
        (*s, 2)) -> (uint32, (*s, num, 2)).
        """

    @staticmethod
    def random_uniform(key: Any, shape: Any = (), minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = ...) -> Any:
        """Type: uint32 -> @dtype

        Floats that are equally likely everywhere in [minval, maxval). key: (uint32, (*s, 2)) -> (dtype float, (*s,
        *shape)).
        """

    @staticmethod
    def ravel(x: Any, start_axis: Any = 0, end_axis: Any = -1) -> Any:
        """Type: T -> T

        The axes from one to another as one. x: (T, (*a, *b, *c)) -> (T, (*a, product(b), *c)).
        """

    @staticmethod
    def reciprocal(x: Any) -> Any:
        """Type: T:float -> T

        1 / x. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def relu(x: Any) -> Any:
        """Type: T:number -> T

        The larger of x and 0, NaN of NaN; its gradient at 0 is 0. x: (T, s) -> (T, s).
        """

    @staticmethod
    def remainder(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        The remainder of `floor_divide`; it has y's sign. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer y
        is not 0.
        """

    @staticmethod
    def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
        """Type: T -> T

        Each element repeated `repeats` times along an axis; all in one row if axis is None. x: (T, (*a, n, *b)) -> (T,
        (*a, n * repeats, *b)).
        """

    @staticmethod
    def requantize(
        x: Any,
        scale: Any,
        zero_point: Any,
        new_scale: Any,
        new_zero_point: Any,
        axis: Any = -1,
        out_dtype: Any = ...,
    ) -> Any:
        """Type: Q:int, T:float, int32, T, int32 -> @out_dtype

        The same numbers with another scale and zero point, computed in float64: for the 32-bit sums of products of
        8-bit numbers. x: (int, s); scale, new_scale: (T float, ()) or (T, (c,)); zero_point, new_zero_point: (int32,
        ()) or (int32, (c,)) -> (out_dtype, s).
        """

    @staticmethod
    def reshape(x: Any, shape: Any) -> Any:
        """Type: T -> T

        The same elements, the last axis fastest, in another shape, in which one extent may be -1. x: (T, s) -> (T,
        shape).
        """

    @staticmethod
    def reshape_codes(x: Any, codes: Any) -> Any:
        """Type: T -> T

        The same elements in another shape, told by codes: a number is a dim, 0 keeps one, -1 is found, -2 keeps all
        that are left, -3 joins two, -4 splits one into the two numbers after it. x: (T, s) -> (T, the shape of the
        codes).
        """

    @staticmethod
    def resize2d(
        x: Any,
        size: Any,
        method: str = "bilinear",
        coordinates: str = "half_pixel",
        layout: str = "NCHW",
    ) -> Any:
        """Type: T:float -> T

        The image at another size, by its nearest elements or by linear interpolation between two along each axis. x: (T
        float, (n, c, h, w)) -> (T, (n, c, *size)). Place i of m lies in the source of extent n at (i + 1/2) n / m - 1/2
        ("half_pixel"), i n / m ("asymmetric") or i (n - 1) / (m - 1) ("align_corners"); the nearest element is below it
        for "asymmetric", otherwise at floor(.. + 1/2).
        """

    @staticmethod
    def reverse_sequence(x: Any, lengths: Any, axis: Any = 0, batch_axis: Any = 1) -> Any:
        """Type: T, I:int -> T

        x with the first elements of each sequence, as many as its length, in reverse. x: (T, s), lengths: (int,
        (batch,)) -> (T, s).
        """

    @staticmethod
    def right_shift(x: Any, y: Any) -> Any:
        """Type: T:int, T -> T

        x with its bits moved down by y, the sign shifted in. x: (T int, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def rint(x: Any) -> Any:
        """Type: T:number -> T

        The nearest integer, of two the even one. x: (T, s) -> (T, s).
        """

    @staticmethod
    def rms_norm(x: Any, weight: Any, epsilon: Any = 1e-06) -> Any:
        """Type: T:float, T -> T

        x / sqrt(mean of squares + epsilon) * weight, over the last axes, as many as the weight has (Zhang, Sennrich,
        2019). x: (T float, (*b, *s)), weight: (T, s) -> (T, (*b, *s)).
        """

    @staticmethod
    def roll(x: Any, shift: Any, axis: Any = None) -> Any:
        """Type: T -> T

        The elements moved along axes, those that leave coming back at the other end; all as one row without axes. x:
        (T, s) -> (T, s).
        """

    @staticmethod
    def round(x: Any) -> Any:
        """Type: T:number -> T

        The nearest integer, of two the even one. x: (T, s) -> (T, s).
        """

    @staticmethod
    def rsqrt(x: Any) -> Any:
        """Type: T:float -> T

        1 / sqrt(x). x: (T float, s) -> (T, s).
        """

    @staticmethod
    def scaled_dot_product_attention(query: Any, key: Any, value: Any, causal: bool = False, scale: Any = None) -> Any:
        """Type: T:float, T, T -> T

        softmax(query key^T scale) value (Vaswani and others, 2017), with scale = 1 / sqrt(d) unless given; if `causal`,
        query i sees the keys up to i. query: (T float, (*b, l, d)), key: (T, (*b, s, d)), value: (T, (*b, s, e)) -> (T,
        (*b, l, e)).
        """

    @staticmethod
    def scatter_add(x: Any, indices: Any, updates: Any, axis: Any = 0) -> Any:
        """Type: T:number, I:int, T -> T

        x with updates added at indices along an axis of extent n; repeated indices accumulate, in order. x: (T, (*a, n,
        *b)), indices: (int, s) in [-n, n), updates: (T, (*a, *s, *b)) -> (T, (*a, n, *b)).
        """

    @staticmethod
    def scatter_nd(x: Any, indices: Any, updates: Any, reduction: str = "none") -> Any:
        """Type: T:number, I:int, T -> T

        x with the slices at index vectors replaced (the last one counts where they repeat), or with reduction="add"
        added to. x: (T, (*a, *b)), indices: (int, (*s, k)) with k the number of axes a, updates: (T, (*s, *b)) -> (T,
        (*a, *b)).
        """

    @staticmethod
    def scatter_nd_add(x: Any, indices: Any, updates: Any) -> Any:
        """Type: T:number, I:int, T -> T

        x with the slices at index vectors added to, also where they repeat; the adjoint of `gather_nd`. x: (T, (*a,
        *b)), indices: (int, (*s, k)) with k the number of axes a, updates: (T, (*s, *b)) -> (T, (*a, *b)).
        """

    @staticmethod
    def schedule(
        x: Any,
        tile: Any = (),
        vectorize: bool = True,
        unroll: bool = False,
        cache: bool = False,
        in_blocks: bool = False,
        parallel: Any = None,
        rule: Any = None,
        rows: Any = None,
        vectors: Any = None,
        packed: Any = None,
    ) -> Any:
        """Type: T -> T

        x itself, computed by a kernel with the given loops. x: (T, s) -> (T, s). `tile`: the lengths of the blocks,
        along each axis, in which an elementwise kernel goes through its result, in vectors if `vectorize`, with the
        rounds of the other loops in a block written out if `unroll`; with `cache` a block first copies what it reads of
        the operands to memory of its own, row by row. `in_blocks`: a kernel with a `tile` that alone reads x computes
        it once for each of its blocks, as far as the block reads it, in memory of its own; elsewhere it is a value like
        others. Of a product: `rows` and `vectors` are the tile that stays in registers, and `packed` copies panels of
        the right operand. `parallel`: share the loops among threads, or not. `rule`: the schedule rule, as `relay show
        --stage kernels` names it. Other parameters are chosen automatically.
        """

    @staticmethod
    def searchsorted(ordered: Any, values: Any, side: str = "left") -> Any:
        """Type: T:number, T -> int32

        The places at which to insert values so that ascending elements stay ascending: before equal ones, or behind
        them with side="right". ordered: (T, (n,)), values: (T, s), or rows of both: (T, (*b, n)), (T, (*b, m)) ->
        (int32, the shape of values).
        """

    @staticmethod
    def selu(x: Any) -> Any:
        """Type: T:float -> T

        1.0507 elu(x, 1.6733): it keeps mean 0 and variance 1. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def sequence_mask(x: Any, lengths: Any, axis: Any = 0, batch_axis: Any = 1, value: Any = 0) -> Any:
        """Type: T:number, I:int -> T

        x with what lies beyond the length of each sequence replaced by a number. x: (T, s), lengths: (int, (batch,)) ->
        (T, s).
        """

    @staticmethod
    def sigmoid(x: Any) -> Any:
        """Type: T:float -> T

        1 / (1 + exp(-x)), without overflow. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def sign(x: Any) -> Any:
        """Type: T:number -> T

        -1, 0 or 1; NaN of NaN. Its gradient is 0. x: (T, s) -> (T, s).
        """

    @staticmethod
    def silu(x: Any) -> Any:
        """Type: T:float -> T

        x sigmoid(x). x: (T float, s) -> (T, s).
        """

    @staticmethod
    def sin(x: Any) -> Any:
        """Type: T:float -> T

        Sine of radians. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def sinh(x: Any) -> Any:
        """Type: T:float -> T

        Hyperbolic sine. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def sliding_windows(
        x: Any,
        kernel: Any,
        axes: Any = -1,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        fill: Any = 0,
    ) -> Any:
        """Type: T:number -> T

        Windows of x along axes, each as new axes at the end; outside of x is the number `fill`. Stride, padding and
        dilation are as in `conv2d`. x: (T, s) -> (T, (*(s with the number of windows along the axes), *kernel)).
        """

    @staticmethod
    def soft_cross_entropy(logits: Any, target: Any, axis: Any = -1, reduction: str = "mean") -> Any:
        """Type: T:float, T -> T

        Minus the sum of target log softmax(logits) along an axis, where targets are probabilities. logits: (T float,
        (*s, c)), target: (T, (*s, c)) -> (T, ()), or (T, s) unreduced.
        """

    @staticmethod
    def softmax(x: Any, axis: Any = -1) -> Any:
        """Type: T:float -> T

        exp(x) divided by its sum along an axis, without overflow. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def softplus(x: Any) -> Any:
        """Type: T:float -> T

        log(1 + exp(x)), without overflow. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def sort(x: Any, axis: Any = -1, descending: bool = False) -> Any:
        """Type: T -> T

        The elements along an axis in ascending order; NaN is the largest. x: (T, s) -> (T, s).
        """

    @staticmethod
    def space_to_depth(x: Any, block: Any) -> Any:
        """Type: by its own rule

        Blocks of the image as channels: the inverse of `depth_to_space` with mode "DCR". x: (T, (n, c, h, w)) -> (T,
        (n, c block**2, h / block, w / block)).
        """

    @staticmethod
    def split(x: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
        """Type: by its own rule

        A tensor's parts along an axis: this many of equal extent, or those between the indices at which it is cut, as
        NumPy's split. x: (T, (*a, n, *b)) -> a tuple of (T, (*a, m, *b)).
        """

    @staticmethod
    def sqrt(x: Any) -> Any:
        """Type: T:float -> T

        Square root; NaN below 0. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def square(x: Any) -> Any:
        """Type: T:number -> T

        x * x. x: (T, s) -> (T, s); integers wrap.
        """

    @staticmethod
    def squeeze(x: Any, axis: Any = None) -> Any:
        """Type: T -> T

        x without axes of extent 1: the given ones, or all such. x: (T, s) -> (T, s without them).
        """

    @staticmethod
    def stack(tensors: Any, axis: Any = 0) -> Any:
        """Type: T.. -> T

        Tensors of one shape along a new axis. Each of n: (T, (*a, *b)) -> (T, (*a, n, *b)).
        """

    @staticmethod
    def std(x: Any, axis: Any = None, keepdims: bool = False, ddof: Any = 0) -> Any:
        """Type: T:float -> T

        The square root of `var`, whose gradient where it is 0 is 0. x: (T float, s) -> (T, s without the axes).
        """

    @staticmethod
    def stop_fusion(x: Any) -> Any:
        """Type: T -> T

        x itself, stored in memory: the kernel that computes it ends, and what reads it is in others. x: (T, s) -> (T,
        s).
        """

    @staticmethod
    def stop_gradient(x: Any) -> Any:
        """Type: T -> T

        x itself, as a constant to differentiation; of a structure or data all tensors in it. x: (T, s) -> (T, s).
        """

    @staticmethod
    def straight_through(x: Any, y: Any) -> Any:
        """Type: T:float, T -> T

        y, whose derivative is that of x: for what is computed from x by steps that have none, as rounding (Bengio,
        Leonard and Courville, 2013). x, y: (T float, s) -> (T, s).
        """

    @staticmethod
    def strided_slice(x: Any, begin: Any, end: Any, strides: Any) -> Any:
        """Type: T -> T

        The elements begin, begin + stride, .. before end, along each axis. x: (T, s) -> (T, the slice's shape). Each
        axis of extent n has the (begin, end, stride) that `slice(..).indices(n)` gives: with a negative stride the end
        -1 means "before element 0".
        """

    @staticmethod
    def sub(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Difference. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def subtract(x: Any, y: Any) -> Any:
        """Type: T:number, T -> T

        Difference. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.
        """

    @staticmethod
    def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Type: by its own rule

        The sum along axes; 0 over no elements; bools are counted in int32, or in int64 if there may be more than 2**31
        - 1. x: (T, s) -> (T, s without the axes).
        """

    @staticmethod
    def sum_to(x: Any, shape: Any) -> Any:
        """Type: T:number -> T

        The inverse of `broadcast_to`: x summed over the axes that `shape` would be stretched along. x: (T, s) -> (T,
        shape).
        """

    @staticmethod
    def swapaxes(x: Any, axis1: Any, axis2: Any) -> Any:
        """Type: T -> T

        Two axes exchanged. x: (T, s) -> (T, s with two dims exchanged).
        """

    @staticmethod
    def take(x: Any, indices: Any, axis: Any = 0, mode: str = "raise") -> Any:
        """Type: T, I:int -> T

        The elements at indices along an axis of extent n. x: (T, (*a, n, *b)), indices: (int, s) -> (T, (*a, *s, *b)).
        With axis=None, those in all elements in order, of which there are n. x: (T, a), indices: (int, s) -> (T, s).
        Indices lie in [-n, n); with mode="clip" those below 0 mean 0 and those beyond the end the last, with
        mode="wrap" they are taken modulo n.
        """

    @staticmethod
    def take_along_axis(x: Any, indices: Any, axis: Any = 0) -> Any:
        """Type: T, I:int -> T

        x with the position along an axis of extent n chosen for each element. x: (T, (*a, n, *b)), indices: (int, (*a,
        m, *b)) in [-n, n) -> (T, (*a, m, *b)).
        """

    @staticmethod
    def tan(x: Any) -> Any:
        """Type: T:float -> T

        Tangent of radians. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def tanh(x: Any) -> Any:
        """Type: T:float -> T

        Hyperbolic tangent. x: (T float, s) -> (T, s).
        """

    @staticmethod
    def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
        """Type: T:number, T -> T

        The sum of products over the last axes of x and the first of y, or over pairs of axes. x: (T, s), y: (T, t) ->
        (T, (*s without its axes, *t without its axes)).
        """

    @staticmethod
    def tile(x: Any, reps: Any) -> Any:
        """Type: T -> T

        x repeated `reps` times along the last axes, or along new ones at the front. x: (T, s) -> (T, s times reps).
        """

    @staticmethod
    def to_integer(x: Any, dtype: Any) -> Any:
        """Type: T -> @dtype

        x without its fraction, in an integer dtype that has all these numbers. x: (T, s) -> (dtype, s).
        """

    @staticmethod
    def topk(x: Any, k: Any, axis: Any = -1, largest: bool = True, ties: str = "first") -> Any:
        """Type: by its own rule

        The k largest (or smallest) elements along an axis, the best first, and their places; of equal ones the first,
        or the last with ties="last". x: (T, s) -> ((T, s with k along the axis), (int32, the same shape)).
        """

    @staticmethod
    def topk_indices(x: Any, k: Any, axis: Any = -1, largest: bool = True, ties: str = "first") -> Any:
        """Type: T -> int32

        The places of the k largest (or smallest) elements along an axis, the best first; of equal ones the first, or
        the last with ties="last". x: (T, s) -> (int32, s with k along the axis).
        """

    @staticmethod
    def topk_values(x: Any, k: Any, axis: Any = -1, largest: bool = True, ties: str = "first") -> Any:
        """Type: T -> T

        The k largest (or smallest) elements along an axis, the best first; `ties` as in `topk`, which only the gradient
        shows. x: (T, s) -> (T, s with k along the axis).
        """

    @staticmethod
    def trace(x: Any, offset: Any = 0) -> Any:
        """Type: T:number -> T

        The sum of a diagonal of the matrices of the last two axes. x: (T, (*b, m, n)) -> (T, b).
        """

    @staticmethod
    def transpose(x: Any, axes: Any = None) -> Any:
        """Type: T -> T

        The axes in another order; reversed without one. x: (T, s) -> (T, s in that order).
        """

    @staticmethod
    def tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        1 on and below the k-th diagonal, otherwise 0. () -> (dtype, (n, m)), m = n by default.
        """

    @staticmethod
    def triangular_solve(
        a: Any,
        b: Any,
        lower: bool = True,
        transpose: bool = False,
        unit_diagonal: bool = False,
    ) -> Any:
        """Type: T:float, T -> T

        x with a x = b, or with a^T x = b if `transpose`, where only the lower (or upper) triangle of a is read. a: (T
        float, (*b, n, n)), b: (T, (*b, n, k)) -> (T, (*b, n, k)).
        """

    @staticmethod
    def tril(x: Any, k: Any = 0) -> Any:
        """Type: T -> T

        x on and below the k-th diagonal, otherwise 0. x: (T, (*b, n, m)) -> (T, (*b, n, m)).
        """

    @staticmethod
    def triu(x: Any, k: Any = 0) -> Any:
        """Type: T -> T

        x on and above the k-th diagonal, otherwise 0. x: (T, (*b, n, m)) -> (T, (*b, n, m)).
        """

    @staticmethod
    def true_divide(x: Any, y: Any) -> Any:
        """Type: T:float, T -> T

        Quotient of floats; for integers there is `floor_divide`. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).
        """

    @staticmethod
    def trunc(x: Any) -> Any:
        """Type: T:number -> T

        x without its fraction. x: (T, s) -> (T, s).
        """

    @staticmethod
    def undef(shape: Any, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        A tensor with undefined elements, for values that are not read: the slots of constructors that a value does not
        have. The interpreter gives zeros, compiled code whatever is in memory. () -> (dtype, shape).
        """

    @staticmethod
    def unique(x: Any, size: Any, fill_value: Any = None) -> Any:
        """Type: T:number -> T

        The distinct elements in ascending order, of which there are `size`: of more, only the first; after fewer, the
        smallest again, or `fill_value`. x: (T, s) -> (T, (size,)).
        """

    @staticmethod
    def unsqueeze(x: Any, axis: Any) -> Any:
        """Type: T -> T

        New axes of extent 1, at positions counted in the result. x: (T, s) -> (T, s with 1s).
        """

    @staticmethod
    def update_slice(x: Any, new: Any, begin: Any, end: Any, strides: Any) -> Any:
        """Type: T, T -> T

        x with a slice replaced; the bounds are as in `strided_slice`. x: (T, s), new: (T, the slice's shape) -> (T, s).
        """

    @staticmethod
    def upsampling(x: Any, scale: Any = 2, method: str = "nearest", layout: str = "NCHW") -> Any:
        """Type: T:float -> T

        The image `scale` times as large, as `resize2d` makes it with half-pixel coordinates. x: (T float, (n, c, h, w))
        -> (T, (n, c, h scale, w scale)).
        """

    @staticmethod
    def var(x: Any, axis: Any = None, keepdims: bool = False, ddof: Any = 0) -> Any:
        """Type: T:float -> T

        The mean square distance to the mean, where the number n of elements is taken as n - ddof, or as 0. x: (T float,
        s) -> (T, s without the axes).
        """

    @staticmethod
    def view(x: Any, shape: Any) -> Any:
        """Type: T -> T

        The same elements, the last axis fastest, in another shape, in which one extent may be -1. x: (T, s) -> (T,
        shape).
        """

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        """Type: bool, T, T -> T

        x where the condition holds, otherwise y; no gradient passes the side not taken. condition: (bool, s1), x: (T,
        s2), y: (T, s3) -> (T, broadcast(s1, s2, s3)).
        """

    @staticmethod
    def zeros(shape: Any, dtype: Any = ...) -> Any:
        """Type: -> @dtype

        0 everywhere. () -> (dtype, shape).
        """

    @staticmethod
    def zeros_like(x: Any) -> Any:
        """Type: T -> T

        0 everywhere, in x's shape and dtype. x: (T, s) -> (T, s).
        """

abs = Operators.abs
absolute = Operators.absolute
acos = Operators.acos
acosh = Operators.acosh
adaptive_avg_pool1d = Operators.adaptive_avg_pool1d
adaptive_avg_pool2d = Operators.adaptive_avg_pool2d
adaptive_avg_pool3d = Operators.adaptive_avg_pool3d
adaptive_max_pool1d = Operators.adaptive_max_pool1d
adaptive_max_pool2d = Operators.adaptive_max_pool2d
adaptive_max_pool3d = Operators.adaptive_max_pool3d
add = Operators.add
add_along_axis = Operators.add_along_axis
add_slice = Operators.add_slice
all = Operators.all
any = Operators.any
arange = Operators.arange
arccos = Operators.arccos
arccosh = Operators.arccosh
arcsin = Operators.arcsin
arcsinh = Operators.arcsinh
arctan = Operators.arctan
arctan2 = Operators.arctan2
arctanh = Operators.arctanh
argmax = Operators.argmax
argmin = Operators.argmin
argsort = Operators.argsort
asin = Operators.asin
asinh = Operators.asinh
atan = Operators.atan
atan2 = Operators.atan2
atanh = Operators.atanh
avg_pool1d = Operators.avg_pool1d
avg_pool2d = Operators.avg_pool2d
avg_pool3d = Operators.avg_pool3d
batch_matmul = Operators.batch_matmul
batch_norm = Operators.batch_norm
batch_norm_training = Operators.batch_norm_training
bilateral_slice = Operators.bilateral_slice
binary_cross_entropy = Operators.binary_cross_entropy
binary_cross_entropy_with_logits = Operators.binary_cross_entropy_with_logits
bitwise_and = Operators.bitwise_and
bitwise_not = Operators.bitwise_not
bitwise_or = Operators.bitwise_or
bitwise_xor = Operators.bitwise_xor
broadcast_add = Operators.broadcast_add
broadcast_div = Operators.broadcast_div
broadcast_mul = Operators.broadcast_mul
broadcast_sub = Operators.broadcast_sub
broadcast_to = Operators.broadcast_to
cast = Operators.cast
cat = Operators.cat
ceil = Operators.ceil
characters = Operators.characters
cholesky = Operators.cholesky
clip = Operators.clip
collective_gather = Operators.collective_gather
collective_index = Operators.collective_index
collective_max = Operators.collective_max
collective_min = Operators.collective_min
collective_sum = Operators.collective_sum
concatenate = Operators.concatenate
conv1d = Operators.conv1d
conv1d_transpose = Operators.conv1d_transpose
conv1d_weight_gradient = Operators.conv1d_weight_gradient
conv2d = Operators.conv2d
conv2d_transpose = Operators.conv2d_transpose
conv2d_weight_gradient = Operators.conv2d_weight_gradient
conv3d = Operators.conv3d
conv3d_transpose = Operators.conv3d_transpose
conv3d_weight_gradient = Operators.conv3d_weight_gradient
copy = Operators.copy
cos = Operators.cos
cosh = Operators.cosh
cross_entropy = Operators.cross_entropy
cumprod = Operators.cumprod
cumsum = Operators.cumsum
deg2rad = Operators.deg2rad
degrees = Operators.degrees
dense = Operators.dense
depth_to_space = Operators.depth_to_space
dequantize = Operators.dequantize
diag = Operators.diag
diag_embed = Operators.diag_embed
diagonal = Operators.diagonal
div = Operators.div
divide = Operators.divide
dot = Operators.dot
dropout = Operators.dropout
dynamic_slice = Operators.dynamic_slice
dynamic_update_slice = Operators.dynamic_update_slice
einsum = Operators.einsum
elu = Operators.elu
embedding = Operators.embedding
equal = Operators.equal
erf = Operators.erf
erfc = Operators.erfc
exp = Operators.exp
exp2 = Operators.exp2
expand_dims = Operators.expand_dims
expm1 = Operators.expm1
eye = Operators.eye
fix = Operators.fix
flatten = Operators.flatten
flip = Operators.flip
floor = Operators.floor
floor_divide = Operators.floor_divide
fma = Operators.fma
full = Operators.full
full_like = Operators.full_like
gather_nd = Operators.gather_nd
gelu = Operators.gelu
global_avg_pool1d = Operators.global_avg_pool1d
global_avg_pool2d = Operators.global_avg_pool2d
global_avg_pool3d = Operators.global_avg_pool3d
global_max_pool1d = Operators.global_max_pool1d
global_max_pool2d = Operators.global_max_pool2d
global_max_pool3d = Operators.global_max_pool3d
greater = Operators.greater
greater_equal = Operators.greater_equal
grid_sample = Operators.grid_sample
group_norm = Operators.group_norm
hardswish = Operators.hardswish
hinge_loss = Operators.hinge_loss
huber_loss = Operators.huber_loss
index = Operators.index
index_add = Operators.index_add
index_update = Operators.index_update
instance_norm = Operators.instance_norm
isfinite = Operators.isfinite
isinf = Operators.isinf
isnan = Operators.isnan
kl_div = Operators.kl_div
l1_loss = Operators.l1_loss
layer_norm = Operators.layer_norm
layout_transform = Operators.layout_transform
leaky_relu = Operators.leaky_relu
left_shift = Operators.left_shift
less = Operators.less
less_equal = Operators.less_equal
linspace = Operators.linspace
log = Operators.log
log10 = Operators.log10
log1p = Operators.log1p
log2 = Operators.log2
log_softmax = Operators.log_softmax
logaddexp = Operators.logaddexp
logical_and = Operators.logical_and
logical_not = Operators.logical_not
logical_or = Operators.logical_or
logical_xor = Operators.logical_xor
logsumexp = Operators.logsumexp
lrn = Operators.lrn
masked_attention = Operators.masked_attention
matmul = Operators.matmul
max = Operators.max
max_pool1d = Operators.max_pool1d
max_pool2d = Operators.max_pool2d
max_pool3d = Operators.max_pool3d
maximum = Operators.maximum
mean = Operators.mean
meshgrid = Operators.meshgrid
min = Operators.min
minimum = Operators.minimum
mish = Operators.mish
mod = Operators.mod
moveaxis = Operators.moveaxis
mse_loss = Operators.mse_loss
mul = Operators.mul
multiply = Operators.multiply
ndtr = Operators.ndtr
neg = Operators.neg
negative = Operators.negative
nll_loss = Operators.nll_loss
norm = Operators.norm
not_equal = Operators.not_equal
one_hot = Operators.one_hot
ones = Operators.ones
ones_like = Operators.ones_like
optimization_barrier = Operators.optimization_barrier
outer = Operators.outer
overlap_add = Operators.overlap_add
pad = Operators.pad
parse_float = Operators.parse_float
parse_integer = Operators.parse_integer
permute = Operators.permute
place_slice = Operators.place_slice
pow = Operators.pow
power = Operators.power
prelu = Operators.prelu
prod = Operators.prod
quantize = Operators.quantize
quantized_conv2d = Operators.quantized_conv2d
quantized_conv2d_transpose = Operators.quantized_conv2d_transpose
quantized_dense = Operators.quantized_dense
rad2deg = Operators.rad2deg
radians = Operators.radians
random_bernoulli = Operators.random_bernoulli
random_bits = Operators.random_bits
random_categorical = Operators.random_categorical
random_exponential = Operators.random_exponential
random_gumbel = Operators.random_gumbel
random_key = Operators.random_key
random_normal = Operators.random_normal
random_permutation = Operators.random_permutation
random_randint = Operators.random_randint
random_split = Operators.random_split
random_uniform = Operators.random_uniform
ravel = Operators.ravel
reciprocal = Operators.reciprocal
relu = Operators.relu
remainder = Operators.remainder
repeat = Operators.repeat
requantize = Operators.requantize
reshape = Operators.reshape
reshape_codes = Operators.reshape_codes
resize2d = Operators.resize2d
reverse_sequence = Operators.reverse_sequence
right_shift = Operators.right_shift
rint = Operators.rint
rms_norm = Operators.rms_norm
roll = Operators.roll
round = Operators.round
rsqrt = Operators.rsqrt
scaled_dot_product_attention = Operators.scaled_dot_product_attention
scatter_add = Operators.scatter_add
scatter_nd = Operators.scatter_nd
scatter_nd_add = Operators.scatter_nd_add
schedule = Operators.schedule
searchsorted = Operators.searchsorted
selu = Operators.selu
sequence_mask = Operators.sequence_mask
sigmoid = Operators.sigmoid
sign = Operators.sign
silu = Operators.silu
sin = Operators.sin
sinh = Operators.sinh
sliding_windows = Operators.sliding_windows
soft_cross_entropy = Operators.soft_cross_entropy
softmax = Operators.softmax
softplus = Operators.softplus
sort = Operators.sort
space_to_depth = Operators.space_to_depth
split = Operators.split
sqrt = Operators.sqrt
square = Operators.square
squeeze = Operators.squeeze
stack = Operators.stack
std = Operators.std
stop_fusion = Operators.stop_fusion
stop_gradient = Operators.stop_gradient
straight_through = Operators.straight_through
strided_slice = Operators.strided_slice
sub = Operators.sub
subtract = Operators.subtract
sum = Operators.sum
sum_to = Operators.sum_to
swapaxes = Operators.swapaxes
take = Operators.take
take_along_axis = Operators.take_along_axis
tan = Operators.tan
tanh = Operators.tanh
tensordot = Operators.tensordot
tile = Operators.tile
to_integer = Operators.to_integer
topk = Operators.topk
topk_indices = Operators.topk_indices
topk_values = Operators.topk_values
trace = Operators.trace
transpose = Operators.transpose
tri = Operators.tri
triangular_solve = Operators.triangular_solve
tril = Operators.tril
triu = Operators.triu
true_divide = Operators.true_divide
trunc = Operators.trunc
undef = Operators.undef
unique = Operators.unique
unsqueeze = Operators.unsqueeze
update_slice = Operators.update_slice
upsampling = Operators.upsampling
var = Operators.var
view = Operators.view
where = Operators.where
zeros = Operators.zeros
zeros_like = Operators.zeros_like
