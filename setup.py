"""Metadata of the distribution. Tool settings are in pyproject.toml, exact versions in requirements/."""

from pathlib import Path

from setuptools import find_packages, setup

MYPY = ["mypy>=2"]
TEST = ["pytest", "pytest-xdist", "hypothesis", "ipython", "ruff", "import-linter", "setuptools"]
EXAMPLES = ["scikit-learn", "matplotlib"]

setup(
    name="relay-lang",
    version="0.1.0",
    description="A differentiable, functional language for machine learning, embedded in Python",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Software Development :: Compilers",
        "Typing :: Typed",
    ],
    package_dir={"": "."},
    packages=find_packages(include=["relay", "relay.*"]),
    package_data={"": ["py.typed", "*.relay"]},
    python_requires=">=3.11",
    install_requires=[
        "numpy",
        "attrs",
        "ml_dtypes",
        "rich",  # progress bars
        "apache-tvm==0.27.*",
        "apache-tvm-ffi==0.1.14.post1",  # later ones crash with this TVM in tensorize
    ],
    entry_points={"console_scripts": ["relay = relay.cli:main"]},
    extras_require={
        "mypy": MYPY,
        "examples": EXAMPLES,
        "test": [*TEST, *MYPY, *EXAMPLES],
        "bench": ["torch", "jax", "onnx", "onnxruntime"],
    },
)
