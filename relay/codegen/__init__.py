"""Code generation: native code from core programs, through TVM and LLVM."""
