"""Which letters the bytes of a text file stand for."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path
from typing import IO

from tabnsm.errors import InvalidDataError, warn

BLOCK_BYTES = 1 << 22

# The mark of UTF-16 is how that of UTF-32 begins, so the longer one comes first.
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Bytes that mean nothing in cp1252; a file with one of them is read as latin-1, which has all.
_NOT_CP1252 = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])


def is_gzipped(path: Path) -> bool:
    """Whether the name says that the file is compressed."""
    return path.name.lower().endswith(".gz")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed."""
    return gzip.open(path, "rb") if is_gzipped(path) else open(path, "rb")  # type: ignore[return-value]


def open_text(path: Path, encoding: str) -> IO[str]:
    """Open a file for reading as text, decompressed, with its line ends as they are."""
    if is_gzipped(path):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return open(path, encoding=encoding, newline="")


def find_encoding(path: Path) -> str:
    """Find the encoding of a text file: by its mark, else UTF-8, else Windows' or latin-1.

    All bytes are read once, because one encoding holds for a whole file, also when it is later read
    in pieces.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, fallback = True, "cp1252"
    with open_bytes(path) as stream:
        block = stream.read(BLOCK_BYTES)
        for mark, encoding in _BOMS.items():
            if block.startswith(mark):
                return encoding
        if b"\0" in block:
            raise InvalidDataError(
                f"{path} is not a text file. Save it as CSV in UTF-8, or give it the extension of "
                "its kind."
            )
        while block:
            following = stream.read(BLOCK_BYTES)
            try:
                if is_utf8:
                    decoder.decode(block, final=not following)
            except UnicodeDecodeError:
                is_utf8 = False
            if any(byte in block for byte in _NOT_CP1252):
                fallback = "latin-1"
            block = following
    if is_utf8:
        return "utf-8"
    warn(
        f"{path} is not UTF-8 and was read as {fallback}. If letters look wrong, save it as UTF-8."
    )
    return fallback
