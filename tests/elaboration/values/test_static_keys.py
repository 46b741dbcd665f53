"""Keys of static values: no two of objects without a hash are equal, also if the first object is gone."""

from __future__ import annotations

from relay.ir.expr import Constant
from relay.typecheck.elaboration.abstract_values import Identity, PythonObject
from relay.typecheck.elaboration.values.static_keys import static_key


def test_keys_of_objects_that_are_gone_are_not_given_again() -> None:
    assert len({static_key(PythonObject([number])) for number in range(200)}) == 200


def test_an_identity_is_that_of_one_object() -> None:
    one, other = [1.0], [1.0]
    assert Identity(one) == Identity(one) and hash(Identity(one)) == hash(Identity(one))
    assert Identity(one) != Identity(other)
    assert Identity(Constant) == Identity(Constant)
