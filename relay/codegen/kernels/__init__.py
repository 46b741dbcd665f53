"""Kernels: groups of operator calls as loops."""

import relay.codegen.tvm.without_torch  # noqa: F401  (before anything here imports TVM)
