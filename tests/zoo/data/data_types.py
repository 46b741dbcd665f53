"""Data types and `match`: records, recursion over trees and lists, patterns of every kind."""

from __future__ import annotations

import numpy as np

import relay as rl
from relay import List, Option, Tree, relay
from zoo import Program

A = rl.type_var("A")
b = rl.base_type_var("b")
(n, m) = rl.dims("n m")


@rl.data
class Complex:
    re: A
    im: A

    def times(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def norm(self):
        return rl.sqrt(self.re**2 + self.im**2)


@rl.data
class Cell:
    """The weights of a tree-structured LSTM."""

    weight: rl.Tensor[b, (n, m)]
    bias: rl.Tensor[b, (n,)]

    def join(self, left, right):
        (left_cell, left_hidden), (right_cell, right_hidden) = left, right
        z = self.weight @ rl.concatenate((left_hidden, right_hidden)) + self.bias
        cell = rl.sigmoid(z) * (left_cell + right_cell)
        return cell, rl.tanh(cell) * rl.sigmoid(z)


@rl.data
class Expression:
    class Number:
        value: A

    class Variable:
        pass

    class Sum:
        left: Expression
        right: Expression

    class Product:
        left: Expression
        right: Expression

    class Negative:
        of: Expression

    def evaluate(self, x):
        match self:
            case Expression.Number(value):
                return value
            case Expression.Variable():
                return x
            case Expression.Sum(left, right):
                return left.evaluate(x) + right.evaluate(x)
            case Expression.Product(left, right=right):
                return left.evaluate(x) * right.evaluate(x)
            case Expression.Negative(of):
                return -of.evaluate(x)

    def simplified(self):
        match self:
            case Expression.Sum(Expression.Number(a), Expression.Number(b)):
                return Expression.Number(a + b)
            case Expression.Product(Expression.Number(a), e) | Expression.Product(e, Expression.Number(a)) if a == 1.0:
                return e.simplified()
            case Expression.Product(Expression.Number(a) as zero, _) | Expression.Product(
                _, Expression.Number(a) as zero
            ) if a == 0.0:
                return zero
            case Expression.Sum(left, right):
                return Expression.Sum(left.simplified(), right.simplified())
            case Expression.Product(left, right):
                return Expression.Product(left.simplified(), right.simplified())
            case Expression.Negative(Expression.Negative(e)):
                return e.simplified()
            case other:
                return other


@rl.data
class Rose:
    value: A
    children: Forest[A]

    def total(self):
        return self.value * self.value + self.children.total(self.value * 0.0)


@rl.data
class Forest:
    class Empty:
        pass

    class More:
        first: Rose[A]
        rest: Forest

    def total(self, zero):
        match self:
            case Forest.Empty():
                return zero
            case Forest.More(first, rest):
                return first.total() + rest.total(zero)


@rl.data
class Branching:
    value: A
    children: List[Branching[A]]

    def total(self):
        return self.children.fold(lambda total, child: total + child.total() * 0.5, self.value)


@relay
def record(x, y):
    z = Complex(x, im=y)
    w = z.times(z).times(rl.replace(z, re=2.0 * x))
    return w.norm() + w.re


@relay
def record_in_loop(x):
    z, c = Complex(x, x * 0.0), Complex(0.3, 0.1)
    for _ in range(6):
        square = z.times(z)
        z = Complex(square.re * 0.5 + c.re, square.im * 0.5 + c.im)
    return z.norm()


@relay
def tree_lstm(weight, bias, x, y):
    def encode(cell, tree):
        match tree:
            case Tree.Leaf(v):
                return v, rl.tanh(v)
            case Tree.Node(left, right):
                return cell.join(encode(cell, left), encode(cell, right))

    tree = Tree.Node(
        Tree.Node(Tree.Leaf(x), Tree.Leaf(y)), Tree.Node(Tree.Leaf(x * 2.0), Tree.Node(Tree.Leaf(y), Tree.Leaf(x)))
    )
    _, hidden = encode(Cell(weight, bias), tree)
    return (hidden * hidden).sum()


@relay
def tree_of_depth(depth, x):
    def build(depth, x):
        if depth == 0:
            return Tree.Leaf(x)
        return Tree.Node(build(depth - 1, x * 0.9), build(depth - 1, rl.sin(x)))

    return build(depth, x).fold(lambda v: v, lambda a, b: a * b + a)


@relay
def list_fold(values):
    xs = List.Nil()
    for v in values:
        xs = List.Cons(v, xs)
    squares = xs.map(lambda v: v * v).append(xs.reverse())
    return squares.fold(lambda total, v: total * 0.5 + v, 0.0) + squares.fold_right(
        lambda v, total: rl.sin(total) * v, 1.0
    )


@relay
def list_walk(values):
    xs = List.Nil()
    for v in values:
        xs = List.Cons(v, xs)
    total, count = 0.0, 0
    while True:
        match xs:
            case List.Cons(first, List.Cons(second, rest)):
                total += first * second
                xs = rest
            case List.Cons(last, List.Nil()) if last > 100.0:
                return last
            case List.Cons(last, _):
                total += last
                break
            case List.Nil():
                break
        count += 1
    return total * float(count)


@relay
def list_loop(values):
    xs = List.Nil()
    for v in values:
        xs = List.Cons((v, v * v), xs)
    total, seen = 0.0, List.Nil()
    for v, w in xs:
        if v < -1.0:
            continue
        total = total * 0.5 + v * w
        seen = List.Cons(total, seen)
        if total > 10.0:
            break
    for v in seen:
        total += v
    return total


@relay
def list_zip(values):
    xs, ys = List.Nil(), List.Nil()
    for v in values:
        xs, ys = List.Cons(v, xs), List.Cons(v * v, List.Cons(v, ys))
    return xs.zip_with(lambda x, y: x * y, ys).filter(lambda v: v > 0.0).sum(0.0) + float(ys.length())


@relay
def option_chain(x):
    def root(v):
        return Option.Some(rl.sqrt(v)) if v > 0.0 else Option.Nothing()

    return root(x).bind(lambda v: root(v - 1.0)).map(lambda v: v * 3.0).get(x * x)


@relay
def interpreter(x):
    E = Expression
    e = E.Sum(
        E.Product(E.Number(1.0), E.Variable()),
        E.Product(E.Negative(E.Negative(E.Variable())), E.Sum(E.Number(2.0), E.Number(3.0))),
    )
    dead = E.Product(E.Variable(), E.Number(0.0))
    return e.simplified().evaluate(x) * e.evaluate(x) + E.Sum(dead, e).simplified().evaluate(x)


@relay
def rose_tree(x):
    inner = Rose(x * x, Forest.Empty())
    return Rose(
        x, Forest.More(inner, Forest.More(Rose(x * 3.0, Forest.More(inner, Forest.Empty())), Forest.Empty()))
    ).total()


@relay
def tree_of_lists(x):
    leaf = Branching(x * x, List.Nil())
    return Branching(
        x, List.Cons(leaf, List.Cons(Branching(rl.sin(x), List.Cons(leaf, List.Nil())), List.Nil()))
    ).total()


@relay
def literals(k, xs):
    total = 0.0
    for i in range(k):
        match i % 4, i > 5:
            case 0, False:
                total += xs[i]
            case ((1 | 2), False):
                total = total * xs[i]
            case 3, _ if total > 1.0:
                total -= xs[i]
            case j, True:
                total += xs[i] * float(j)
            case _:
                continue
    return total


@relay
def truths(x, y):
    match x > 0.0, y > 0.0:
        case True, True:
            z = x * y
        case True, False:
            z = x - y
        case False, big:
            z = x * x if big else y * y
    return z


@relay
def nested_tuples(x, y):
    match (x, (y, x * y)), 3:
        case (a, (b, c)), n:
            first, *rest = b, c, a
            match tuple(rest):
                case (p, q):
                    return first * p - q * float(n)


@relay
def match_returns(x):
    for k in range(4):
        o = Option.Some(x * float(k)) if k > 1 else Option.Nothing()
        match o:
            case Option.Some(v) if v > 5.0:
                return v * v
            case Option.Some(v):
                x = x + v
            case Option.Nothing():
                x = x * 1.5
    return x


@relay
def functions_in_data(x):
    steps = List.Cons(lambda v: v * x, List.Cons(lambda v: v + x, List.Nil()))
    return steps.fold(lambda v, step: step(v), x)


@relay
def references_in_data(x):
    z = Complex(rl.ref(x), rl.ref(x * x))
    same = z
    for _ in range(3):
        same.re.value = z.im.value * 0.5
        same.im.value = z.re.value + x
    return z.re.value * z.im.value


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


PROGRAMS = [
    Program(record, (np.float64(1.5), np.float64(-0.7))),
    Program(record_in_loop, (np.float64(0.4),)),
    Program(tree_lstm, (_random(4, 8), _random(4), _random(4), _random(4) * 0.5)),
    Program(tree_of_depth, (4, np.float64(0.8))),
    Program(list_fold, (_random(5),)),
    Program(list_walk, (_random(7),)),
    Program(list_loop, (_random(7),)),
    Program(list_zip, (np.abs(_random(4)) + 0.1,)),
    Program(option_chain, (np.float64(4.0),), expected=3.0, expected_gradient=(0.375,)),
    Program(interpreter, (np.float64(2.0),), expected=156.0, expected_gradient=(150.0,)),
    Program(rose_tree, (np.float64(1.3),)),
    Program(tree_of_lists, (np.float64(1.3),)),
    Program(literals, (9, _random(9))),
    Program(truths, (np.float64(2.0), np.float64(-3.0)), expected=5.0, expected_gradient=(1.0, -1.0)),
    Program(nested_tuples, (np.float64(2.0), np.float64(3.0)), expected=12.0, expected_gradient=(6.0, 12.0)),
    Program(match_returns, (np.float64(0.8),)),
    Program(functions_in_data, (np.float64(1.5),), expected=3.75, expected_gradient=(4.0,)),
    Program(references_in_data, (np.float64(0.7),)),
]
