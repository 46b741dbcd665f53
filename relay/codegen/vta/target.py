"""The accelerator as a target, by the text that programs name it with: `vta`, or `vta, log_block=5, threads=1`."""

from __future__ import annotations

import attrs

from relay.codegen.vta.config import DEFAULT, Config
from relay.errors import CompileError

NAME = "vta"
_OPTIONS = (*(field.name for field in attrs.fields(Config)), "threads")
_FIXED = ("log_inp_width", "log_wgt_width", "log_acc_width")


@attrs.frozen
class Target:
    """The target of streams: a configuration, and 1 or 2 virtual threads."""

    config: Config = DEFAULT
    threads: int = 2


def names_target(text: object) -> bool:
    """True if a text names the accelerator."""
    return isinstance(text, str) and text.split(",")[0].strip() == NAME


def parse_target(text: str) -> Target:
    """The target that a text names. Raises CompileError for options that there are not, and for configurations that
    cannot be encoded, or that have other numbers than those of 8 bits with sums of 32."""
    found: dict[str, int] = {}
    for part in text.split(",")[1:]:
        name, _, number = (word.strip() for word in part.partition("="))
        if name not in _OPTIONS or not number.isdecimal():
            raise CompileError(
                f"the target {text!r} has the option {part.strip()!r}",
                help=f'options are numbers, as in "vta, log_block=5", of {", ".join(_OPTIONS)}',
            )
        if name in found:
            raise CompileError(f"the target {text!r} has {name} twice", help="leave one of them out")
        found[name] = int(number)
    threads = found.pop("threads", 2)
    if threads not in (1, 2):
        raise CompileError(
            f"there are 1 or 2 virtual threads, found {threads}", help='write "vta, threads=1", or "vta"'
        )
    config = Config(**found)
    if any(getattr(config, name) != getattr(DEFAULT, name) for name in _FIXED):
        raise CompileError(
            f"the target {text!r} has numbers of other widths",
            notes=("programs have activations and weights of 8 bits, and sums of 32",),
            help=f"leave out {', '.join(_FIXED)}",
        )
    return Target(config, threads)
