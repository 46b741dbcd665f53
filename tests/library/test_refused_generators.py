"""Programs that show when a generator makes its elements are refused, as all are made at once here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from generators.lazy_programs import module_of, programs

import relay as rl

REFUSED = """
g = reversed(xs)
xs[0] = 9
return list(g)  # E: `g` sees the change of `xs`

t = 0
for v in Count(n):
    t += v
return t  # E: a loop cannot go through Count, whose `__next__` changes it

return list(Count(n))  # E: a loop cannot go through Count, whose `__next__` changes it

it = Count(n)
return next(it, 0)  # E: a Count does not tell whether it has a next element

ys = [n]
return next(ys)  # E: `next` needs an iterator, and `ys` is a list

return each(xs)[0]  # E: is an iterator, which has no items

t = 0
for v in each(xs):
    t += v
    if len(xs) < 6:
        xs.append(v)
return t, xs  # E: `xs` changes in a loop

g = each(xs)
xs.append(n)
return list(g), xs  # E: `g` sees the change of `xs`

g = twice(xs)
xs[0] = n
return sum(g), xs  # E: sees the change of `xs`

t = 0
for i, v in enumerate(each(xs)):
    t += v
    xs[1] = n
return t, xs  # E: changes

t = 0
for v in Group(xs):
    t += v
    if len(xs) < 6:
        xs.append(v)
return t, xs  # E: `xs` changes in a loop

g = map(lambda v: v + 1, xs)
xs.append(n)
return sum(g)  # E: sees the change of `xs`

g = iter(xs)
xs.append(n)
return next(g), sum(g)  # E: sees the change of `xs`

k = 1
def scaled():
    for i in range(3):
        yield i * k
t = 0
for v in scaled():
    t += v
    k += 1
return t  # E: `k` changes in a loop

c = Counter()
t = 0
for i in c.items(3):
    t = t * 10 + c.n
return t  # E: changes `c` as

c = Counter()
for i in c.items(3):
    if i == n:
        break
return c.n  # E: changes `c` as

c = Counter()
g = c.items(3)
return c.n  # E: changes `c` as

c = Counter()
g = c.items(3)
k = c.n
return k, list(g)  # E: changes `c` as

c = Counter()
g = c.items(3)
if n > 5:
    n = sum(g)
return n, c.n  # E: changes `c` as

c = Counter()
a = next(c.items(3))
return a, c.n  # E: changes `c` as

g = growing(xs)
return len(xs)  # E: changes `xs` as

g = spoiling(xs)
return len(xs)  # E: changes `xs` as

c = Counter()
t = 0
for v in descend(c, 2):
    t = t * 10 + c.n
return t  # E: changes `c` as

b = Bag(xs)
t = 0
for v in b:
    t += b.seen
return t  # E: its changes of what it is given are not seen

b = Bag(xs)
t = sum(b)
return t, b.seen  # E: its changes of what it is given are not seen

seen = []
def noting():
    for i in range(3):
        seen.append(i)
        yield i
t = 0
for v in noting():
    t += len(seen)
return t  # E: changes

return list(rows(3))  # E: what has been yielded before sees this change of `row`

t = 0
for v in risky(4):
    t += v
    if v == 2:
        break
return t  # E: `risky` may be left early

t = 0
try:
    for v in risky(4):
        t += v
except ValueError:
    t += 100
return t  # E: `risky` may be left early

return next(risky(4))  # E: `risky` may be left early

t = 0
for v in naturals(n):
    if v > 20:
        break
    t += v
return t  # E: nothing bounds the `while`

return any(v > 4 for v in naturals(n))  # E: nothing bounds the `while`

def g():
    for v in xs:
        yield v
t = 0
for v in g():
    t += v
    if len(xs) < 6:
        xs.append(n)
return t  # E: `xs`

return first(naturals(n))  # E: nothing bounds the `while`

t = 0
for a, b in zip(risky(4), xs):
    t += a * b
return t  # E: left early

return n in naturals(1)  # E: left early

g = each(xs)
a = sum(g)
return a, sum(g)  # E: `g` is an iterator

g = each(xs)
for i in range(2):
    n += sum(g)
return n  # E: is an iterator

g = squares(n)
for v in g:
    if v == 1:
        break
return list(g)  # E: is an iterator

return both(each(xs))  # E: is an iterator

g = each(xs)
h = g
return list(g), list(h)  # E: is an iterator

g = iter(xs)
return sum(g), sum(g)  # E: is an iterator

return sum(printing(n))  # E: `printing` prints

return total_and_change(each(xs), xs)  # E: in Python, `each_result` sees the change of `xs`: they are one object,

g, k = pair(n)
return sum(g), sum(g)  # E: the result of `pair` holds an iterator

h = Held(each(xs))
a = h.take()
return a, h.take(), sum(h.g), sum(h.g)  # E: in Python, `h` is an iterator, of which nothing is left after its firs

cs = [Cell(v) for v in xs]
t = 0
for v in values(cs):
    t += v
    cs[2].v = 100
return t  # E: `cs` changes in a loop that goes through it: in Python, later rounds s

cs = [Cell(1), Cell(2), Cell(3)]
t = 0
for c in cells(cs):
    c.v += 1
    t += cs[0].v
return t  # E: in Python, `cs` sees the change of `c`: they are one object, or one is

t = 0
for v in swap(xs):
    t = t * 10 + xs[0]
return t  # E: a generator changes `xs` as its elements are asked for, and here it ru

ys = [n]
t = 0
for v in reader(xs, ys):
    t += v
    ys[0] += 1
return t  # E: `ys` changes in a loop that goes through it: in Python, later rounds s

t = 0
for v in sized(xs):
    t += v
    xs[2] = 50
return t  # E: `xs` changes in a loop that goes through it: in Python, later rounds s

return sum(with_default(3)), sum(with_default(3))  # E: this changes the default of `seen`

t = 0
for v in asserting(9):
    t += v
    if v == 1:
        break
return t  # E: the generator `asserting` may be left early, and here it runs to its e

t = 0
for v in chained(xs):
    t += v
    if len(xs) < 5:
        xs.append(1)
return t  # E: `xs` changes in a loop that goes through it: in Python, later rounds s

g = each(xs)
e = evens(g)
return list(e), list(g)  # E: in Python, `g` is an iterator, of which nothing is left after its firs

g = each(xs)
a = consume_some(g)
return a, list(g)  # E: in Python, `g` is an iterator, of which nothing is left after its firs

g = each(xs)
t = 0
for a, b in zip(g, g):
    t += a * b
return t  # E: in Python, `g` is an iterator, of which nothing is left after its firs

g = filter(lambda v: v > 1, each(xs))
xs[1] = 7
return list(g)  # E: in Python, `g` sees the change of `xs`: they are one object, or one is

gs = [each(xs), each(xs)]
a = sum(gs[0])
return a, sum(gs[0])  # E: in Python, `gs` is an iterator, of which nothing is left after its fir

d = {'g': each(xs)}
a = sum(d['g'])
return a, sum(d['g'])  # E: in Python, `d` is an iterator, of which nothing is left after its firs

e = evens(each(xs))
xs[0] = 4
return sum(e)  # E: in Python, `e` sees the change of `xs`: they are one object, or one is

g = each(xs)
if n > 2:
    k = next(g)
else:
    k = sum(g)
return k, each(xs)[0]  # E: `each_result` is an iterator, which has no items

g = interleave(xs, each(xs))
xs[0] = 5
return list(g)  # E: in Python, `g` sees the change of `xs`: they are one object, or one is

g = each(xs)
b = 2 in g
return b, list(g)  # E: in Python, `g` is an iterator, of which nothing is left after its firs

f = lambda: each(xs)
g = f()
xs.append(n)
return list(g)  # E: in Python, `g` sees the change of `xs`: they are one object, or one is

return [sum(g) for g in [each(xs)] * 2]  # E: in Python, `the iterable` is an iterator, of which nothing is left aft

return both(v * 2 for v in xs)  # E: in Python, `items` is an iterator, of which nothing is left after its

g = enumerate(each(xs))
a = list(g)
return a, list(g)  # E: in Python, `g` is an iterator, of which nothing is left after its firs

g = zip(xs, [1, 2, 3])
xs[0] = 9
return list(g)  # E: in Python, `g` sees the change of `xs`: they are one object, or one is

g = enumerate(xs)
xs[0] = 9
return list(g)  # E: in Python, `g` sees the change of `xs`: they are one object, or one is

h = [each]
g = h[0](xs)
xs[0] = 9
return list(g)  # E: in Python, `g` sees the change of `xs`: they are one object, or one is

g, k = pair(n)
a = sum(g)
return a, list(g)  # E: the result of `pair` holds an iterator
"""


@pytest.mark.parametrize("body", programs(REFUSED))
def test_what_python_makes_later_is_refused_where_that_shows(body: str, tmp_path: Path) -> None:
    function = rl.relay(module_of(tmp_path, body).f)
    with pytest.raises(rl.TypeCheckError, match=re.escape(body.rpartition("# E: ")[2])):
        function.interpret([1, 2, 3], 4)
