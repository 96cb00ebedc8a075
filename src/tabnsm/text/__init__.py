"""Text embeddings: encoders, the cache on disk and the projection of embeddings to features."""

from tabnsm.text.cache import CacheInfo, cache_info, clear_cache
from tabnsm.text.encoder import TextEncoder

__all__ = ["CacheInfo", "TextEncoder", "cache_info", "clear_cache"]
