"""How fast the translator is, against the length of the file. The design's bar: 1,000 lines a second, linear in length.

    python -m benchmarks.convert_speed

Files of growing length are made by repeating the example models with their classes renamed; time is process time,
so that other load on the machine does not count. One line per length, and the slope between the shortest and longest.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from t2j_lsp.translate import translate

BAR = 1000
EXAMPLES = Path(__file__).parent.parent / "examples"


def source_of(lines: int) -> str:
    """About ``lines`` lines of models: the examples again and again, each copy under names of its own."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py"))]
    copies: list[str] = []
    count = 0
    while count < lines:
        text = texts[len(copies) % len(texts)]
        for name in re.findall(r"^class (\w+)|^def (\w+)", text, re.MULTILINE):
            defined = name[0] or name[1]
            text = re.sub(rf"\b{defined}\b", f"{defined}_{len(copies)}", text)
        copies.append(text.replace("from __future__ import annotations\n", ""))
        count += text.count("\n")
    return "\n\n".join(copies)


def seconds(source: str, repeats: int) -> float:
    """Best process time of a translation."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        translate(source)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[250, 500, 1000, 2000, 4000, 8000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    translate("import torch\nx = torch.zeros(2)\n")
    print(f"{'lines':>8} {'seconds':>9} {'lines/s':>9}   bar {BAR}")
    rates: list[tuple[int, float]] = []
    for length in options.lengths:
        source = source_of(length)
        lines = source.count("\n")
        taken = seconds(source, options.repeats)
        rates.append((lines, lines / taken))
        print(f"{lines:8} {taken:9.3f} {lines / taken:9.0f}")
    (short, fast), (long, slow) = rates[0], rates[-1]
    times = long / short
    print(f"from {short} to {long} lines ({times:.0f} times as long) the rate falls by a factor of {fast / slow:.2f}")


if __name__ == "__main__":
    main()
