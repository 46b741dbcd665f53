"""Dynamic lists, as Python programmers use them; plain Python gives the expected values."""

import numpy as np

from relay import relay
from zoo import Program

ROW = np.array([1.0, 2.0, 3.0])
SIX = np.arange(6.0) + 0.25


def collected_while(x):
    sums, total, i = [], 0.0, 0
    while total < 10.0:
        total = total + x[i % 3] * x[0]
        sums.append(total * total)
        i += 1
    return sum(sums) * sums[-1] + sums[0] * float(len(sums))


def filtered_product(x):
    large = []
    for v in x:
        if v > 2.0:
            large.append(v * v)
    product = 1.0
    for v in large:
        product = product * v
    return product + max(large) * min(large)


def depth_first(x):
    """A worklist: pop, and push what is found."""
    stack, visited = [(x[1], 0)], 0.0
    while stack:
        value, depth = stack.pop()
        visited = visited + value * value
        if depth < 3:
            stack.append((value * x[2], depth + 1))
            if value < 3.0:
                stack.append((value + x[3], depth + 1))
    return visited


def breadth_first(x):
    queue, order = [(0, x[1])], []
    while len(queue) > 0:
        depth, value = queue.pop(0)
        order.append(value)
        if depth < 2:
            queue += [(depth + 1, value * 2.0), (depth + 1, value * x[0])]
    return sum(v * float(i + 1) for i, v in enumerate(order))


def rearranged(x):
    items, i = [], 0
    while i < 5:
        items.append(x[i])
        i += 1
    items[2] = x[5] * items[1]
    for j in range(len(items)):
        items[j] = items[j] * (items[j - 1] + 2.0)
    others = items[1:4] + items[::-1] + [x[0]]
    others.insert(1, x[1])
    others.reverse()
    others.extend(items[-2:])
    return sum([v * float(i + 1) * v for i, v in enumerate(others)])


def records_in_a_list(x):
    steps, i = [], 0
    while i < 4:
        steps.append((x * float(i), {"scale": x[i % 3]}))
        i += 1
    total = 0.0
    for row, options in steps:
        total = total + row.sum() * options["scale"]
    return total


def lists_of_lists(x):
    rows = []
    for i in range(40):
        row = []
        for j in range(int(x[0] + 0.5) + i % 3):
            row.append(x[j % 3] * x[0])
        rows.append(row)
    total = 0.0
    for row in rows:
        product = 1.0
        for v in row:
            product = product * v
        total = total + product
    return total


def stacked_states(x):
    """More rounds than are unrolled; the length is known all the same."""
    states, h = [], x
    for _ in range(300):
        h = np.tanh(h * 0.9 + x * 0.1)
        states.append(h)
    return np.stack(states, axis=1).mean() * float(len(states))


def functions_in_a_list(x):
    functions, n = [], 0
    while n < 4:
        factor = x[n % 3]
        functions.append(lambda v, factor=factor: v * factor + x[0])
        n += 1
    y = 1.0
    for f in functions:
        y = f(y)
    return y * functions[1](2.0)


def filled_by_a_function(x):
    found = []

    def visit(v):
        if v > 1.5:
            found.append(v * x[1])

    for v in x:
        visit(v)
    return sum(found) + found[0] * float(len(found))


def passed_and_returned(x):
    def collect(limit):
        out = []
        for v in x:
            if v > limit:
                out.append(v * v)
        return out

    def squares(items):
        return sum([a * a for a in items])

    return squares(collect(1.5)) + squares(collect(3.5)) * x[0]


def lists_of_two_paths(x):
    items = [x[0], x[1]]
    if x[2] > 0.0:
        items.append(x[2])
        items.append(x[3] * x[3])
    elif x[1] > 0.0:
        items = [x[0]]
    return sum(items) * items[-1]


def beams(x):
    """A search whose candidates are chosen by their scores, with early exit."""
    candidates = [(x[0], 0), (x[1], 1)]
    for _ in range(4):
        longer = []
        for score, token in candidates:
            longer.append((score * x[2], token))
            if score > 0.5:
                longer.append((score + x[3], token + 1))
        candidates = longer
        if len(candidates) > 6:
            break
    total = 0.0
    for score, token in candidates:
        total += score * float(token + 1)
    return total


def quicksorted(x):
    def quicksort(items):
        if len(items) <= 1:
            return items
        pivot = items[0]
        smaller = [v for v in items[1:] if v < pivot]
        larger = [v for v in items[1:] if v >= pivot]
        return quicksort(smaller) + [pivot] + quicksort(larger)

    ordered = quicksort([v * (4.0 - v) for v in x if v != 100.0])
    return sum(v * float(i) for i, v in enumerate(ordered))


def buckets(x):
    groups, counts = [[], [], []], [0] * 3
    for i in range(6):
        groups[i % 3].append(x[i] * x[i])
        counts[i % 3] += i
    halves = {"low": [], "high": []}
    for v in x:
        if v > 2.5:
            halves["high"].append(v)
        else:
            halves["low"].append(v)
    return sum(groups[1]) * sum(halves["low"]) + sum(halves["high"]) * float(counts[2])


def chosen_by_the_run(x, i):
    parts = (x[1], 2.0, x[3] * x[0])
    functions = [np.tanh, lambda v: v * v, np.sin]
    return parts[i] * functions[i](x[2]) + parts[i - 3]


def chunks(x):
    sums, buffer = [], []
    for v in x:
        buffer.append(v * v)
        if len(buffer) == 4:
            sums.append(sum(buffer))
            buffer = []
    return sums[0] * float(len(sums)) + sum(buffer)


def filtered_comprehensions(x, n):
    squares = [float(i) * x[i] for i in range(n)]
    large = [v for v in x if v > 1.5]
    pairs = [a * b for a in large for b in squares if a > b]
    return sum(squares) + sum(pairs) + max(v * 2.0 for v in large) * float(4.25 in large)


def primes(x, n):
    found = []
    for k in range(2, n):
        if all([k % p != 0 for p in found]):
            found.append(k)
    return x * float(sum(found)) + float(found[-1])


def until_first_large(x):
    for_later = []
    for i in range(100):
        v = x[i % 6] * float(i)
        if v > 30.0:
            break
        for_later.append(v)
    else:
        for_later.append(-1.0)
    return sum(for_later[::2]) - for_later[-1]


PYTHON = [
    (collected_while, (ROW,)),
    (filtered_product, (SIX,)),
    (depth_first, (SIX,)),
    (breadth_first, (SIX,)),
    (rearranged, (SIX,)),
    (records_in_a_list, (ROW,)),
    (lists_of_lists, (ROW,)),
    (stacked_states, (ROW,)),
    (functions_in_a_list, (ROW,)),
    (filled_by_a_function, (SIX,)),
    (passed_and_returned, (SIX,)),
    (lists_of_two_paths, (SIX,)),
    (beams, (SIX,)),
    (quicksorted, (SIX,)),
    (buckets, (SIX,)),
    (chosen_by_the_run, (SIX, np.int32(1))),
    (chunks, (SIX,)),
    (filtered_comprehensions, (SIX, np.int32(4))),
    (primes, (np.float64(0.5), np.int32(30))),
    (until_first_large, (SIX,)),
]

PROGRAMS = [Program(relay(function), arguments, expected=function(*arguments)) for function, arguments in PYTHON]


@relay
def returned_lists(x):
    kept, i = [], 0
    while x[i] < 3.0:
        kept.append((x[i], {"twice": x[i] * 2.0}))
        i += 1
    triangle = [[x[k] for k in range(j + 1)] for j in range(i)]
    return kept, triangle, [v for v in x if v > 100.0], len(kept)


PROGRAMS.append(
    Program(
        returned_lists,
        (SIX,),
        differentiable=False,
        expected=(
            [(0.25, {"twice": 0.5}), (1.25, {"twice": 2.5}), (2.25, {"twice": 4.5})],
            [[0.25], [0.25, 1.25], [0.25, 1.25, 2.25]],
            [],
            3,
        ),
    )
)


def records_as_state(x):
    state = {"history": [], "total": 0.0}
    while state["total"] < 5.5:
        state["total"] += x[1]
        state["history"].append(state["total"] * x[2])

    def step(both, v):
        items, total = both
        if v > 2.0:
            items = [*items, v * v]
        return items, total + v

    both = ([], 0.0)
    for v in x:
        both = step(both, v)
    return sum(state["history"]) * sum(both[0]) + both[1]


def dynamic_programme(x, n):
    best = [0.0] * (n + 1)
    for i in range(1, n + 1):
        best[i] = max(best[i - 1], x[i] * x[0] + (best[i - 2] if i >= 2 else 0.0))
    return best[n] * best[1]


def returned_early(x):
    def before(limit):
        seen = []
        for v in x:
            if v > limit:
                return seen, v
            seen.append(v * v)
        return seen, x[0]

    (few, one), (many, other) = before(2.0), before(100.0)
    return sum(few) * one + sum(many) * other * float(len(few))


def grid_of_lists(x, n):
    grid = [[0.0] * 3 for _ in range(n)]
    for i in range(n):
        for j in range(3):
            grid[i][j] = x[i * 3 + j] * x[j]
    return sum([max(row) * sum(row) for row in grid]) + grid[1][2]


def swapped(x):
    items = [v * (4.0 - v) for v in x]
    for i in range(len(items)):
        for j in range(len(items) - 1 - i):
            if items[j] < items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return sum([v * float(i) for i, v in enumerate(items)])


def distances(x):
    neighbors, distance, queue = [[1, 2], [3], [3], []], [-1] * 4, [0]
    distance[0] = 0
    while queue:
        u = queue.pop(0)
        for w in neighbors[u]:
            if distance[w] < 0:
                distance[w] = distance[u] + 1
                queue.append(w)
    return x * float(sum(distance))


def stack_machine(codes, x):
    stack = []
    for code in codes:
        if code == 0:
            stack.append(x)
        else:
            right = stack.pop()
            left = stack.pop()
            stack.append(left * right if code == 1 else left + right)
    return stack[-1]


def halves(x, n):
    waiting = [n]
    seen = 0
    while len(waiting) > 0:
        part = waiting.pop(0)
        seen += part
        if part > 1:
            waiting.append(part // 2)
            waiting.append(part - part // 2)
    return x * float(seen)


MORE = [
    (stack_machine, (np.array([0, 0, 1, 0, 2], np.int32), np.float64(3.0))),
    (halves, (np.float64(0.5), np.int32(9))),
    (records_as_state, (SIX,)),
    (dynamic_programme, (SIX, np.int32(4))),
    (returned_early, (SIX,)),
    (grid_of_lists, (SIX, np.int32(2))),
    (swapped, (SIX,)),
    (distances, (np.float64(1.5),)),
]

PROGRAMS += [Program(relay(function), arguments, expected=function(*arguments)) for function, arguments in MORE]
