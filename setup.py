"""The compiled kernels: optional, so that an install without a C compiler still succeeds.

Everything else about the package is in pyproject.toml. Each extension is a plain C library that
`tabnsm.kernels` opens with ctypes; the same source is compiled once per instruction set.
"""

import platform

from setuptools import Extension, setup

VARIANTS = {"baseline": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    VARIANTS["avx2"] = ["-mavx2", "-mfma"]
    VARIANTS["avx512"] = ["-mavx512f", "-mavx2", "-mfma"]
# -O3 is needed, not a wish: it turns the short loops over accumulators into registers. Without
# errno, square roots of vectors are vectors.
COMPILED = ("interaction", "tokens", "adamw", "blend")
INCLUDED = ("sparse_attention", "lanes", "lane_attention", "narrow", "head")
FLAGS = ["-std=gnu11", "-O3", "-funroll-loops", "-fno-math-errno", "-g0"]
FLAGS += ["-fvisibility=hidden", "-pthread"]

setup(
    ext_modules=[
        Extension(
            f"tabnsm.kernels._{name}",
            [f"src/tabnsm/kernels/{part}.c" for part in COMPILED],
            depends=[f"src/tabnsm/kernels/{part}.c" for part in INCLUDED],
            extra_compile_args=[*FLAGS, *variant_flags],
            extra_link_args=["-pthread", "-lm"],
            optional=True,
        )
        for name, variant_flags in VARIANTS.items()
    ]
)
