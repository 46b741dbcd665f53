"""TVM's compiler, imported without PyTorch, as `runtime` does it. It must come before all else that imports TVM."""

from relay.codegen.tvm.tvm_runtime import package_absent

with package_absent("torch"):
    import tvm

__all__ = ["tvm"]
