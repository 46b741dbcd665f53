"""Plain Python classes whose objects are made, changed and returned inside of programs."""

import numpy as np

from relay import relay
from zoo import Program

_RANDOM = np.random.default_rng(0)


class Stack:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()

    def is_empty(self):
        return len(self) == 0

    def __len__(self):
        return len(self.items)


@relay
def folded(xs):
    """A stack that a loop fills, and another one empties."""
    stack = Stack()
    for x in xs:
        stack.push(x * x)
    total = 0.0
    while not stack.is_empty():
        total = 0.5 * total + stack.pop()
    return total


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    def __rmul__(self, factor):
        return self * factor

    def __neg__(self):
        return type(self)(-self.x, -self.y)

    def __getitem__(self, axis):
        return self.x if axis == 0 else self.y

    def __iadd__(self, other):
        self.x += other.x
        self.y += other.y
        return self

    def dot(self, other):
        return self.x * other.x + self.y * other.y


class Body:
    """Fields that are objects, and a class's constant."""

    drag = 0.5

    def __init__(self, position, velocity=None, *, mass=1.0):
        self.position = position
        self.velocity = Vector(0.0, 0.0) if velocity is None else velocity
        self.mass = mass

    def step(self, force, dt):
        self.velocity += (force + -self.drag * self.velocity) * (dt / self.mass)
        self.position = self.position + dt * self.velocity

    @property
    def energy(self):
        return 0.5 * self.mass * self.velocity.dot(self.velocity)


@relay
def simulated(x):
    """Objects in a list, which a loop over them changes."""
    bodies = [Body(Vector(x, 0.0)), Body(Vector(0.0, x), Vector(1.0, 0.0), mass=2.0)]
    for _ in range(4):
        for body in bodies:
            body.step(-body.position, 0.1)
    return bodies[0].position[0] + bodies[1].position[1] + sum(body.energy for body in bodies)


class Shape:
    count = 0

    def __init__(self, name):
        self.name = name

    def describe(self):
        return 2.0 * self.area() if isinstance(self, Square) else self.area()


class Circle(Shape):
    def __init__(self, radius):
        super().__init__("circle")
        self.radius = radius

    def area(self):
        return 3.0 * self.radius**2


class Square(Shape):
    def __init__(self, side):
        Shape.__init__(self, "square")
        self.side = side
        self.__secret = 1.0

    def area(self):
        return self.side**2 * self.__secret

    def grow(self, factor):
        self.side *= factor
        return self.side


class LargeSquare(Square):
    def grow(self, factor):
        return super().grow(2.0 * factor) + 1.0

    @classmethod
    def of_area(cls, area):
        return cls(np.sqrt(area))

    @staticmethod
    def half(x):
        return 0.5 * x


@relay
def shaped(x):
    """Classes that derive from others; methods of the class."""
    square = LargeSquare.of_area(x)
    grown = square.grow(LargeSquare.half(3.0))
    named = 1.0 if square.name == "square" and isinstance(square, Shape) else 0.0
    return sum(shape.describe() for shape in (Circle(x), square)) * grown + named


class Adam:
    def __init__(self, parameters, rate=0.1):
        self.rate = rate
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]
        self.rounds = 0

    def step(self, parameters, gradients):
        self.rounds += 1
        found = []
        for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            self.first[i] = 0.9 * self.first[i] + 0.1 * g
            self.second[i] = 0.99 * self.second[i] + 0.01 * g**2
            m = self.first[i] / (1 - 0.9**self.rounds)
            v = self.second[i] / (1 - 0.99**self.rounds)
            found.append(p - self.rate * m / (np.sqrt(v) + 1e-8))
        return found


@relay
def trained(w, b):
    """A loop that carries an object with lists of arrays."""
    optimizer, parameters = Adam([w, b]), [w, b]
    for _ in range(3):
        w, b = parameters
        parameters = optimizer.step(parameters, [2.0 * w * b.sum() + 1.0, 3.0 * b])
    return parameters[0].sum() + (parameters[1] ** 2).sum() + optimizer.rounds


class Generator:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 75 + 74) % 65537
        return self.state


class Account:
    def __init__(self, owner, balance=0.0):
        self.owner = owner
        self._balance = balance
        self.history = []
        self.largest = None

    @property
    def balance(self):
        return self._balance

    @balance.setter
    def balance(self, value):
        self.history.append(value - self._balance)
        self._balance = value

    def withdraw(self, amount):
        if amount > self._balance:
            return False
        self.balance = self._balance - amount
        if self.largest is None or amount > self.largest:
            self.largest = amount
        return True


@relay
def banked(seed, amount):
    """Objects that are returned, with a property that is assigned, a field that is None at first, and text."""
    generator, account = Generator(seed), Account("ann", amount)
    refused = 0
    for _ in range(5):
        if not account.withdraw(0.25 * (generator.next() % 8)):
            refused += 1
    return account, generator.state, refused, account.balance


def moved(body, by):
    body.position = body.position + by
    return body


@relay
def chosen(x, flag):
    """Objects that helpers change and return, that branches choose, and that a dict holds."""
    body = Body(Vector(x, 1.0)) if flag > 0 else Body(Vector(1.0, x), mass=3.0)
    body = moved(body, Vector(x, x))
    if x > 0.0:
        body.step(Vector(1.0, 2.0), 0.5)
    else:
        body = Body(Vector(0.0, 0.0))
    held = {"body": body, "other": Vector(x, x)}
    held["body"].step(held["other"], 0.1)
    return held["body"].energy + held["body"].position.dot(held["other"])


class Oscillator:
    def __init__(self, state, speed=0.0):
        self.state, self.speed, self.rounds = state, speed, 0

    def next(self, push=0.0):
        self.speed += 0.1 * (push - np.sin(self.state))
        self.state += 0.1 * self.speed
        self.rounds += 1
        return self.state


class Damped(Oscillator):
    def next(self, push=0.0):
        self.speed *= 0.9
        return super().next(push) + 0.5 * super().next()


def advance(oscillator, pushes):
    """A helper that changes an object: in a loop, and by itself."""
    for push in pushes:
        oscillator.next(push)
    if oscillator.rounds < 12:
        advance(oscillator, pushes)


@relay
def driven(x):
    """Objects that comprehensions and helpers change."""
    oscillator, damped = Oscillator(x), Damped(x, speed=1.0)
    states = [oscillator.next(push * x) for push in (1.0, -1.0, 2.0)]
    advance(oscillator, [x, 0.5])
    advance(damped, [x])
    both = [oscillator, Oscillator(x)]
    both[1].next(both[0].next())
    return sum(states) + both[0].state * both[1].state + sum(damped.next() for _ in range(2))


PROGRAMS = [
    Program(folded, (np.array([1.0, 2.0, 3.0]),), expected=9.0 * 0.25 + 4.0 * 0.5 + 1.0),
    Program(simulated, (np.float64(1.5),)),
    Program(shaped, (np.float64(2.0),)),
    Program(trained, (_RANDOM.standard_normal(3), _RANDOM.standard_normal(2))),
    Program(banked, (42, 3.0), differentiable=False),
    Program(chosen, (np.float64(0.5), 1)),
    Program(driven, (np.float64(0.5),)),
]
