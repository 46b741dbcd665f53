"""The No-U-Turn sampler (Hoffman and Gelman, 2014), with multinomial choice of states (Betancourt, 2017).

A trajectory is doubled, forward or backward at random, until its ends come nearer to each other or its energy is lost.
Each doubling is a binary tree of leapfrog steps, which a recursion builds; a part of the tree that turns back ends it.
"""

from __future__ import annotations

import relay
from relay.library.probability.inference import _energy, log_joint, normal_like

_LEAST = -1000.0  # a state whose density is less than that of the start by e to this power: the steps have diverged


@relay.relay
def nuts(model, key, q, data, count, step, warmup=0, depth=10):
    """A list of `count` samples of the unknowns given the data, from q on; the mean of the steps' acceptance; and the
    length of a step. In the first `warmup` moves, which are left out, `step` is adapted to an acceptance of 0.8 by dual
    averaging. A trajectory has at most 2^depth - 1 steps."""
    force = relay.grad(log_joint, wrt="q")
    here, slope = log_joint(model, q, data), force(model, q, data)
    samples, accepted = [], 0.0
    anchor, error, average = relay.log(10.0 * step), 0.0, 0.0
    step = step * 1.0
    for i in range(count + warmup):
        key, mine = relay.random.split(key)
        q, here, slope, acceptance = _move(model, data, mine, q, here, slope, step, depth)
        if i < warmup:
            number = i + 1.0
            error = error + (0.8 - acceptance - error) / (number + 10.0)
            logarithm = anchor - number**0.5 / 0.05 * error
            part = number**-0.75
            average = part * logarithm + (1.0 - part) * average
            step = relay.exp(average) if i == warmup - 1 else relay.exp(logarithm)
        else:
            samples.append(q)
            accepted += acceptance
    return samples, accepted / count, step


@relay.relay
def _move(model, data, key, q, here, slope, step, depth):
    """The next state with its density and slope, and the mean acceptance of the steps on the way."""
    key, push = relay.random.split(key)
    p = normal_like(push, q)
    start = here - _energy(p)
    left, right = (q, p, slope), (q, p, slope)
    weight, acceptance, steps = 0.0 * here, 0.0 * here, 0
    for level in range(depth):
        key, side, chance, mine = relay.random.split(key, 4)
        forward = relay.random.uniform(side) < 0.5
        sign = relay.where(forward, 1.0, -1.0)
        end = right if forward else left
        tree = _double(model, data, mine, end, level, sign * step, start)
        if forward:
            right = tree["end"]
        else:
            left = tree["end"]
        acceptance += tree["acceptance"]
        steps += tree["steps"]
        if not tree["goes_on"]:
            break
        if relay.log(relay.random.uniform(chance)) < tree["weight"] - weight:
            q, here, slope = tree["state"]
        weight = relay.logaddexp(weight, tree["weight"])
        if _turns(left, right):
            break
    return q, here, slope, acceptance / steps


@relay.relay
def _double(model, data, key, end, level, step, start):
    """The tree of 2^level leapfrog steps from an end of a trajectory: its own outer end, the state that is chosen of
    it, the logarithm of its weight, and whether the trajectory goes on."""
    if level == 0:
        q, p, slope = end
        p = relay.tree.map(lambda a, b: a + 0.5 * step * b, p, slope)
        q = relay.tree.map(lambda a, b: a + step * b, q, p)
        here, slope = log_joint(model, q, data), relay.grad(log_joint, wrt="q")(model, q, data)
        p = relay.tree.map(lambda a, b: a + 0.5 * step * b, p, slope)
        weight = here - _energy(p) - start
        return {
            "begin": (q, p, slope),
            "end": (q, p, slope),
            "state": (q, here, slope),
            "weight": weight,
            "goes_on": weight > _LEAST,
            "acceptance": relay.exp(relay.minimum(weight, 0.0)),
            "steps": 1,
        }
    key, one, other, chance = relay.random.split(key, 4)
    first = _double(model, data, one, end, level - 1, step, start)
    if not first["goes_on"]:
        return first
    second = _double(model, data, other, first["end"], level - 1, step, start)
    weight = relay.logaddexp(first["weight"], second["weight"])
    takes_second = relay.log(relay.random.uniform(chance)) < second["weight"] - weight
    state = second["state"] if takes_second else first["state"]
    begin, outer = first["begin"], second["end"]
    turns = _turns(begin, outer) if step > 0.0 else _turns(outer, begin)
    return {
        "begin": begin,
        "end": outer,
        "state": state,
        "weight": weight,
        "goes_on": second["goes_on"] and not turns,
        "acceptance": first["acceptance"] + second["acceptance"],
        "steps": first["steps"] + second["steps"],
    }


@relay.relay
def _turns(left, right):
    """True if the ends of a trajectory move toward each other."""
    across = relay.tree.map(lambda a, b: b - a, left[0], right[0])
    return _dot(across, left[1]) < 0.0 or _dot(across, right[1]) < 0.0


@relay.relay
def _dot(a, b):
    return sum(relay.tree.leaves(relay.tree.map(lambda x, y: (x * y).sum(), a, b)))
