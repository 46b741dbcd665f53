"""Metadata of the distribution. Tool settings are in pyproject.toml, exact versions in requirements/."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'^__version__ = "(.*)"$', (ROOT / "relay" / "__init__.py").read_text(encoding="utf-8"), re.M)[1]
MYPY = ["mypy>=2"]
DEBUG = ["prompt_toolkit"]  # the terminal of `relay debug`
CUDA = ["cuda-bindings>=13", "nvidia-cuda-nvrtc>=13"]  # the driver's interface, and the compiler of kernels
CUBLAS = ["nvidia-cublas>=13"]  # large products on GPUs; 500 MB, without which Relay's own kernels compute them
CUDNN = ["nvidia-cudnn-cu13>=9"]  # large convolutions on GPUs; 500 MB, without which Relay's own kernels compute them
LSP = ["pygls>=2"]  # `relay lsp`
TESTING = ["hypothesis"]  # random arguments, `relay.testing.check`
TEST = ["pytest", "pytest-xdist", "ipython", "ruff", "import-linter", "setuptools"]
EXAMPLES = ["scikit-learn", "matplotlib"]

setup(
    name="relay-lang",
    version=VERSION,
    description="A differentiable, functional language for machine learning, embedded in Python",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    author="The Relay maintainers",
    author_email="maintainers@relay-lang.example",  # a reserved name, as below, until the project has a home
    project_urls={"Documentation": "https://relay-lang.example/docs", "Source": "https://relay-lang.example/source"},
    keywords=["automatic differentiation", "compiler", "machine learning", "TVM", "functional programming"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Software Development :: Compilers",
        "Typing :: Typed",
    ],
    package_dir={"": "."},
    packages=find_packages(include=["relay", "relay.*"]),
    package_data={"": ["py.typed", "*.pyi", "*.relay"]},
    python_requires=">=3.11",
    install_requires=[
        "numpy",
        "attrs",
        "ml_dtypes",
        "rich",  # progress bars
        "apache-tvm==0.27.*",
        # With 0.1.15 the process ends in Schedule.tensorize, which hand-written operators may call.
        "apache-tvm-ffi>=0.1.14.post1,<0.1.15",
    ],
    entry_points={"console_scripts": ["relay = relay.cli:main"]},
    extras_require={
        "mypy": MYPY,
        "debug": DEBUG,
        "lsp": LSP,
        "cuda": [*CUDA, *CUBLAS, *CUDNN],
        "testing": TESTING,
        "examples": EXAMPLES,
        "test": [*TEST, *TESTING, *DEBUG, *LSP, *MYPY, *EXAMPLES],
        "bench": ["torch", "jax", "onnx", "onnxruntime"],
    },
)
