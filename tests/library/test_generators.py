"""Generators, which make their elements as they are asked for: what Python gives is given."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from agreement import leaves
from generators.lazy_programs import module_of, programs

import relay as rl

SAME = """
it = Count(n)
return next(it) + 10 * next(it), it.i

it = Count(2)
t = 0
try:
    while True:
        t += next(it)
except StopIteration:
    t += 100
return t

g = each(xs)
a = next(g)
b = next(g)
return a, b, list(g)

g = each(xs)
a = next(g)
b = 0
for v in g:
    b += v
    if v == 2: break
return a, b, list(g)

it = iter(xs)
out = []
for a in it:
    b = next(it, 0)
    out.append((a, b))
return out

t = 0
for v in squares(n):
    t += v
    if v > 5:
        break
return t

t = 0
for v in each(list(xs)):
    t += v
    if len(xs) < 6:
        xs.append(v)
return t, xs

c = Counter()
a = list(c.items(3))
return a, c.n

c = Counter()
t = 0
for i in c.items(3):
    t += i
return t, c.n

c = Counter()
t = sum(c.items(2)) + sum(c.items(3))
return t, c.n

c = Counter()
t = list(descend(c, 2))
return t, c.n

c = Counter()
t = 0
for v in descend(c, 2):
    t = t * 10 + v
return t, c.n

v = 0
for v in reachable([[1, 2], [2], [0]], 0):
    if v == 2:
        break
return v

return sum(risky(20)), list(checked(n)), max(naturals(100000))

t = 0
for v in checked(n):
    if v == 2:
        break
    t += v
return t

t = 0
for v in below(n):
    if v == 2:
        break
    t += v
return t, next(v for v in below(n) if v > 2)

return once(each(xs)) + once(each(xs)), both(xs)

a = 0
for i in range(2):
    for v in each(xs):
        a += v
xs.append(a)
return xs

return fill(each(xs), [n])

g = each(xs)
ys = [v + 1 for v in g]
xs.append(n)
return ys, xs

def scaled(k):
    for i in range(3):
        yield i * k + n
return sum(scaled(2)), list(scaled(n))

t = 0
for i, v in enumerate(squares(n)):
    t += i * v
return t, list(zip(each(xs), xs))

a, b, c = each(xs)
return a, b, c, [*each(xs), n], ','.join(str(v) for v in squares(3))

return sum(Group(xs)), [v for v in Group(xs)], max(Group(xs))

return list(collatz(6)), [v for v in fib(50) if v % 2], sum(evens(each(xs)))

for v in fib(1000):
    if v > 50:
        break
else:
    v = 0
return v

cs = [Cell(v) for v in xs]
t = 0
for v in values(cs):
    t += v
cs[2].v = 100
return t + sum(values(cs))

g = each(xs)
a = next(g)
b = next(g)
c = next(g)
return a, b, c, next(g, -1), next(g, -2)

a = list(each(xs))
xs[0] = 9
return a, a[0], xs

t = 0
for a in each(xs):
    for b in each(xs):
        t += a * b
return t

return list(swap(xs)), xs

return sum(v for v in each(xs)), any(v > 2 for v in each(xs)), all(v > 0 for v in squares(3))

return list(chained(xs)), consume_some(squares(5)), list(map(lambda v: v + n, each(xs)))

xs += each([4, 5])
xs.extend(squares(2))
return xs
"""


@pytest.mark.parametrize("body", programs(SAME))
def test_what_python_gives_is_given(body: str, tmp_path: Path) -> None:
    module = module_of(tmp_path, body)
    found = rl.relay(copy.copy(module.f)).interpret([1, 2, 3], 4)
    ours, theirs = (list(map(np.asarray, leaves(v))) for v in (found, module.f([1, 2, 3], 4)))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
