"""The table of what must be how fast, from one run on one machine.

Usage: bench_table.py CANDIDATE.json PROVIDER.json PYTORCH.json OUT.json

The first two are what `gpu_tests bench` writes, the third what pytorch_bench.py does. Prints a line for each target:
what was measured, what PyTorch takes, their ratio, and what it must be and should be. Writes the same as JSON.
"""

import json
import sys

# Ratios to PyTorch in the same run: rows, work, must, aim.
BLOCK_RATIOS = (
    (264, "forward", 0.8, 0.4),
    (925, "forward", 1.0, 0.8),
    (3160, "forward", 1.0, 0.9),
    (38912, "forward", 1.1, 0.9),
    (264, "forward+backward", 1.0, 0.6),
    (925, "forward+backward", 1.1, 0.9),
    (3160, "forward+backward", 1.3, 1.1),
)
MOST_ROWS = 38912
PRODUCTS = ("q_proj", "o_proj", "ffn_gate_up", "ffn_down")
ELEMENTWISE = ("norm1", "q_norm", "rope_q", "swiglu", "residual_attn")


def find(entries, **wanted):
    for entry in entries:
        if all(entry.get(key) == value for key, value in wanted.items()):
            return entry
    return None


def line(name, value, unit, must, aim, times, at_most=False, peer=None):
    """One row; `at_most`: less is better. `times`: what `value` was made of, with its spread."""
    met = lambda bound: value <= bound if at_most else value >= bound
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "must": must,
        "aim": aim,
        "peer": peer,
        "spread": f"{times['least_ms']:.3f} to {times['most_ms']:.3f} ms",
        "met": "aim" if met(aim) else "must" if met(must) else "no",
    }


def build(candidate, provider, pytorch):
    lines = []
    peers = pytorch["entries"]
    for rows, work, must, aim in BLOCK_RATIOS:
        times = find(candidate["blocks"], rows=rows, work=work)
        own = times["median_ms"]
        peer = find(peers, rows=rows, work="block", direction=work)["median_ms"]
        name = f"block {work}, {rows} rows ({own:.3f} ms)"
        lines.append(line(name, own / peer, "ratio", must, aim, times, True, f"{peer:.3f} ms"))

    def node_times(side, node, direction):
        return find(side["nodes"], rows=MOST_ROWS, node=node, direction=direction)

    def peer_rate(work, direction):
        entry = find(peers, rows=MOST_ROWS, work=work, direction=direction)
        return entry and f"{entry['tflops']:.0f} TFLOP/s"

    def add_rate(side, label, node, direction, must, aim):
        times = node_times(side, node, direction)
        name = f"{label}, {direction}, {MOST_ROWS} rows"
        peer = peer_rate(node, direction)
        lines.append(line(name, times["rate"], "TFLOP/s", must, aim, times, False, peer))

    add_rate(candidate, "attention", "attention", "forward", 520, 620)
    add_rate(candidate, "attention", "attention", "backward", 350, 500)
    for node in PRODUCTS:
        add_rate(candidate, node, node, "forward", 600, 700)
    add_rate(provider, "provider's attention", "attention", "forward", 150, 350)
    for node in ELEMENTWISE:
        times = node_times(candidate, node, "forward")
        share = 100 * times["rate"] / candidate["copy_gb_s"]
        lines.append(line(f"{node}, {MOST_ROWS} rows", share, "% of copy", 80, 90, times))
    return lines


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    candidate, provider, pytorch = (json.load(open(path)) for path in sys.argv[1:4])
    lines = build(candidate, provider, pytorch)
    print(f"{candidate['device_class']}; peer: {pytorch['peer']}; a copy moves {candidate['copy_gb_s']:.0f} GB/s")
    print(f"{'':48} {'measured':>9} {'':9} {'PyTorch':>12} {'must':>6} {'aim':>6}  {'met':4}  spread")
    for entry in lines:
        print(
            f"{entry['name']:48} {entry['value']:9.2f} {entry['unit']:9} {entry['peer'] or '':>12} "
            f"{entry['must']:6} {entry['aim']:6}  {entry['met']:4}  {entry['spread']}"
        )
    with open(sys.argv[4], "w") as file:
        table = {"device_class": candidate["device_class"], "peer": pytorch["peer"], "table": lines}
        table["candidate"], table["provider"], table["pytorch"] = candidate, provider, pytorch["entries"]
        json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
