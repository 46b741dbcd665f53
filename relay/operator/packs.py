"""Operator plugins: distributions with an entry point in the group `relay.operators`.

    [project.entry-points."relay.operators"]
    signal = "my_package.operators"

The module is imported with Relay and registers its operators; an entry point that names a function has it called.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from relay.errors import RegistrationError

GROUP = "relay.operators"


def load_packs() -> None:
    """Load every pack that is installed. Raises RegistrationError, which names the distribution, if one fails."""
    for point in entry_points(group=GROUP):
        try:
            loaded = point.load()
            if callable(loaded):
                loaded()
        except Exception as error:
            distribution = point.dist.name if point.dist is not None else "unknown"
            raise RegistrationError(
                f"the operators {point.name!r} of the distribution {distribution} cannot be loaded: {error}",
                help=f"correct or remove {distribution}",
            ) from error
