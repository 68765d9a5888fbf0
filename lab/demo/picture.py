# SPDX-License-Identifier: Apache-2.0
"""The quickstart's result as an SVG picture: flows on every uplink before and after, and the goodput of every flow."""
from xml.sax.saxutils import escape

WIDTH = 1200
INK, SOFT, LINE, PAPER = "#1f2933", "#7b8794", "#d9e0e7", "#ffffff"
BEFORE, AFTER, IDEAL = "#e07a5f", "#2a9d8f", "#3d405b"
# Flows on an uplink, relative to the best possible: fewer, as many, one more, more.
HEAT = ("#b8c4ce", "#2a9d8f", "#f2b24c", "#d1495b")


def text(x, y, words, size=14, colour=INK, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def box(x, y, width, height, colour, radius=4, stroke="none"):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" fill="{colour}" '
            f'stroke="{stroke}"/>')


def line(x1, y1, x2, y2, colour=LINE, width=1.0, dashes=""):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width:.1f}"'
            + (f' stroke-dasharray="{dashes}"' if dashes else "") + ' stroke-linecap="round"/>')


def heat(count, best):
    if count < best:
        return HEAT[0]
    return HEAT[min(3, 1 + count - best)]


def spread(count, left, width):
    """Centres of `count` things in a row."""
    return [left + width * (place + 0.5) / count for place in range(count)]


def fabric(left, top, width, title, subtitle, lab, uplinks, best):
    """One drawing of the fabric: every uplink as thick as the flows on it."""
    leaves, spines = lab.names("leaf"), lab.names("spine")
    spine_x = dict(zip(spines, spread(len(spines), left, width)))
    leaf_x = dict(zip(leaves, spread(len(leaves), left, width)))
    spine_y, leaf_y, host_y = top + 74, top + 234, top + 296
    parts = [text(left, top + 8, title, 18, weight="bold"), text(left, top + 28, subtitle, 13, SOFT)]
    for (leaf, spine), flows in uplinks.items():
        parts.append(line(leaf_x[leaf], leaf_y, spine_x[spine], spine_y, heat(len(flows), best), 2 + 2.2 * len(flows)))
    share = 0.22  # of the way down: near the spines the lines are furthest apart
    for (leaf, spine), flows in uplinks.items():
        x = spine_x[spine] + (leaf_x[leaf] - spine_x[spine]) * share
        y = spine_y + (leaf_y - spine_y) * share
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="{PAPER}" stroke="{heat(len(flows), best)}" '
                     f'stroke-width="2"/>')
        parts.append(text(x, y + 4.5, str(len(flows)), 13, INK, "middle", "bold"))
    for spine, x in spine_x.items():
        parts += [box(x - 38, spine_y - 15, 76, 30, INK), text(x, spine_y + 5, spine, 13, PAPER, "middle")]
    for leaf, x in leaf_x.items():
        hosts = [host for host in lab.names("host") if lab.attachment(host)[0] == leaf]
        for host, host_x in zip(hosts, spread(len(hosts), x - width / (2 * len(leaves)), width / len(leaves))):
            parts += [line(x, leaf_y, host_x, host_y, LINE, 2), box(host_x - 20, host_y - 12, 40, 24, "#eef2f6", 4, LINE),
                      text(host_x, host_y + 5, host, 12, INK, "middle")]
        parts += [box(x - 46, leaf_y - 15, 92, 30, INK), text(x, leaf_y + 5, leaf, 13, PAPER, "middle")]
    return parts


def bars(left, top, width, height, flows, before, after, ideal):
    """Goodput of each flow before and after, with the ideal as a line. Rates in Mbit/s."""
    highest = max([ideal, *before.values(), *after.values()]) * 1.1
    base = top + height
    parts = []
    step = 10 if highest > 50 else 5
    for value in range(0, int(highest) + 1, step):
        y = base - height * value / highest
        parts += [line(left, y, left + width, y), text(left - 8, y + 4, str(value), 12, SOFT, "end")]
    slot = width / len(flows)
    for place, flow in enumerate(flows):
        x = left + slot * place
        for shift, rates, colour in ((0.16, before, BEFORE), (0.51, after, AFTER)):
            tall = height * rates[flow] / highest
            parts.append(box(x + slot * shift, base - tall, slot * 0.32, tall, colour, 2))
        parts.append(text(x + slot / 2, base + 16, f"{flow.source}\u2192{flow.destination}", 11, INK, "middle"))
        parts.append(text(x + slot / 2, base + 30, f"#{flow.qp + 1}", 10, SOFT, "middle"))
    y = base - height * ideal / highest
    parts += [line(left, y, left + width, y, IDEAL, 1.6, "6 5"),
              text(left + width, y - 6, f"ideal {ideal:.1f}", 12, IDEAL, "end", "bold")]
    return parts


def legend(x, y, entries):
    parts = []
    for colour, words in entries:
        parts += [box(x, y - 10, 12, 12, colour, 2), text(x + 18, y, words, 12, SOFT)]
        x += 30 + 7 * len(words)
    return parts


def draw(lab, flows, before, after, uplinks_before, uplinks_after, ideal, result, best):
    """The whole picture as SVG text. `before`, `after`: {flow: Mbit/s}; `best`: flows on the fullest uplink at best."""
    height = 830
    steered, ecmp = result["steered"], result["ecmp"]
    parts = [box(0, 0, WIDTH, height, PAPER, 0),
             text(40, 48, "RoCEv2 flows, re-steered by their UDP source port", 26, weight="bold"),
             text(40, 74, f"{len(flows)} flows over {len(lab.names('leaf'))} leaves and {len(lab.names('spine'))} spines, links of "
                  f"{lab.rate_bps / 1e6:.0f} Mbit/s, seed {result['seed']}. Slowest flow {ecmp['min_flow_mbps']:.1f} \u2192 "
                  f"{steered['min_flow_mbps']:.1f} Mbit/s from {max(steered['converge_ms'], 0) / 1000:.1f} s after acting on, with "
                  f"{steered['moves']} moves.", 15, SOFT)]
    parts += fabric(40, 112, 530, "ECMP", f"slowest {ecmp['min_flow_mbps']:.1f}, sum {ecmp['sum_mbps']:.0f} Mbit/s",
                    lab, uplinks_before, best)
    parts += fabric(630, 112, 530, "Steered", f"slowest {steered['min_flow_mbps']:.1f}, sum {steered['sum_mbps']:.0f} Mbit/s",
                    lab, uplinks_after, best)
    parts += legend(40, 452, [(HEAT[0], "fewer flows than at best"), (HEAT[1], f"{best} flows, as at best"),
                              (HEAT[2], "one too many"), (HEAT[3], "more too many")])
    parts.append(text(40, 500, "Goodput of each flow at its receiver, Mbit/s", 18, weight="bold"))
    parts += legend(990, 500, [(BEFORE, "ECMP"), (AFTER, "steered")])
    parts += bars(70, 525, 1090, 250, flows, before, after, ideal)
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'font-family="Helvetica, Arial, sans-serif" role="img">\n<title>roce-te quickstart</title>\n{body}\n</svg>\n')
