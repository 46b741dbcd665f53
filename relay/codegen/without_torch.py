"""TVM's compiler, imported without PyTorch, as `runtime` does it. It must come before all else that imports TVM."""

from relay.codegen.runtime import absent

with absent("torch"):
    import tvm

__all__ = ["tvm"]
