"""Help texts: paragraphs that wrap by themselves, then examples that do not."""

from __future__ import annotations


def help_text(*paragraphs: str, examples: tuple[str, ...] = ()) -> str:
    r"""Put a help text together.

    Examples
    --------
    >>> help_text("Show a model.", examples=("tabnsm info m.safetensors",))
    'Show a model.\n\n\x08\nExamples\n  tabnsm info m.safetensors'
    """
    parts = [" ".join(paragraph.split()) for paragraph in paragraphs]
    if examples:
        parts.append("\n".join(["\b", "Examples", *(f"  {example}" for example in examples)]))
    return "\n\n".join(parts)
