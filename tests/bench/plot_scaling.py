"""Draws what scaling.py measured: one SVG with a panel for each series, tokens per second over what
was varied, on logarithmic axes. Dashed: what it would be if cost grew with the work alone.

    python3 plot_scaling.py scaling.csv scaling.svg
"""

import argparse
import csv
import math

WIDTH, HEIGHT = 440, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 70, 110, 40, 50
COLORS = ("#1f5fa8", "#c4501b", "#2e7d32", "#7b3fa0")
PANELS = {
    "sequence": "sequence length (tokens), same tokens a step",
    "layers": "layers",
    "microbatches": "microbatches a step",
    "ranks": "ranks, same cores and batch",
}


def lines_of(rows, series):
    """Points by line: one of no name, or one for each mesh axis."""
    lines = {}
    for row in rows:
        if row["series"] == series:
            point = (float(row["x"]), float(row["tokens_per_second"]))
            lines.setdefault(row["axis"], []).append(point)
    return {name: sorted(points) for name, points in lines.items()}


def ideal_of(series, points):
    """Of layers, each takes its time; else a token costs the same everywhere."""
    x0, y0 = points[0]
    return [(x, y0 * x0 / x if series == "layers" else y0) for x, _ in points]


def ticks(low, high):
    """1, 2 and 5 times powers of ten around low to high."""
    steps = [m * 10.0**e for e in range(math.floor(math.log10(low)) - 1,
                                       math.ceil(math.log10(high)) + 1) for m in (1, 2, 5)]
    inside = [step for step in steps if low <= step <= high]
    below = max(step for step in steps if step <= low)
    above = min(step for step in steps + [10 * high] if step >= high)
    return sorted({below, *inside, above})


class Axis:
    """Maps numbers to pixels, by their logarithm."""

    def __init__(self, low, high, begin, end):
        self.low, self.high = math.log(low), math.log(high if high > low else 2 * low)
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = (math.log(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def text(x, y, words, anchor="middle", size=11, color="#222", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{color}"{more}>{words}</text>')


def polyline(points, x_axis, y_axis, color, dashed=False):
    pixels = " ".join(f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in points)
    style = ' stroke-dasharray="5 4" opacity="0.6"' if dashed else ""
    return f'<polyline points="{pixels}" fill="none" stroke="{color}" stroke-width="1.8"{style}/>'


def panel(rows, series, left, top):
    lines = lines_of(rows, series)
    if not lines:
        return []
    ideals = {name: ideal_of(series, points) for name, points in lines.items()}
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in (*lines.values(), *ideals.values()) for _, y in points]
    y_ticks = ticks(min(ys), max(ys))
    x_axis = Axis(xs[0], xs[-1], left + LEFT, left + WIDTH - RIGHT)
    y_axis = Axis(y_ticks[0], y_ticks[-1], top + HEIGHT - BOTTOM, top + TOP)
    parts = []
    for y in y_ticks:
        parts.append(f'<line x1="{left + LEFT}" x2="{left + WIDTH - RIGHT}" y1="{y_axis(y):.1f}" '
                     f'y2="{y_axis(y):.1f}" stroke="#ddd"/>')
        parts.append(text(left + LEFT - 8, y_axis(y) + 4, f"{y:g}", "end"))
    for x in xs:
        parts.append(text(x_axis(x), top + HEIGHT - BOTTOM + 18, f"{x:g}"))
    parts.append(text((x_axis.begin + x_axis.end) / 2, top + HEIGHT - 12, PANELS[series]))
    parts.append(text(left + LEFT, top + TOP - 14, "tokens/s", "start", 12))
    for index, (name, points) in enumerate(lines.items()):
        color = COLORS[index % len(COLORS)]
        parts.append(polyline(ideals[name], x_axis, y_axis, color, dashed=True))
        parts.append(polyline(points, x_axis, y_axis, color))
        for x, y in points:
            parts.append(f'<circle cx="{x_axis(x):.1f}" cy="{y_axis(y):.1f}" r="3" '
                         f'fill="{color}"/>')
        label_y = top + TOP + 8 + 16 * index
        parts.append(text(left + WIDTH - RIGHT + 10, label_y, name, "start", 11, color))
    return parts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("csv")
    parser.add_argument("svg")
    args = parser.parse_args()
    with open(args.csv, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise SystemExit(f"{args.csv} has no rows")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {2 * HEIGHT}" '
             'font-family="sans-serif">',
             f'<rect width="{2 * WIDTH}" height="{2 * HEIGHT}" fill="white"/>']
    for index, series in enumerate(PANELS):
        parts += panel(rows, series, WIDTH * (index % 2), HEIGHT * (index // 2))
    with open(args.svg, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    main()
