"""`Option[A]`: a value, or none."""

from __future__ import annotations

import relay

A = relay.type_var("A")


@relay.data
class Option:
    """Nothing, or Some(value)."""

    class Nothing:
        """No value."""

    class Some:
        """A value."""

        value: A

    def is_some(self):
        """True if there is a value."""
        match self:
            case Option.Some():
                return True
            case Option.Nothing():
                return False

    def map(self, function):
        """Some(function(value)), or Nothing."""
        match self:
            case Option.Some(value):
                return Option.Some(function(value))
            case Option.Nothing():
                return Option.Nothing()

    def bind(self, function):
        """function(value), which is an Option itself, or Nothing."""
        match self:
            case Option.Some(value):
                return function(value)
            case Option.Nothing():
                return Option.Nothing()

    def get(self, default):
        """The value, or the default."""
        match self:
            case Option.Some(value):
                return value
            case Option.Nothing():
                return default
