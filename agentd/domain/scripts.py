"""Scripts that put no blanks between words."""

from __future__ import annotations

# The inside of a character class: Thai, Lao, Tibetan, Burmese, Khmer, Kana and Han, with the signs that
# belong to their words.
UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
