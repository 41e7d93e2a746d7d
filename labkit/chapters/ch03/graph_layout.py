"""Where the nodes of a graph stand on the page: in layers, the root on top.

The usual three steps of a layered drawing (layers by the longest path, order within a
layer by the mean of the neighbours, then positions), as in Sugiyama, Tagawa and Toda,
"Methods for visual understanding of hierarchical system structures" (1981).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from labkit.chapters.ch03.graph import Edge, Graph, Node

GAP = 0.16  # inches between two boxes of a layer
BEND = 0.12  # inches that an edge needs where it passes a layer
SWEEPS, PULLS = 12, 80


@dataclass
class Place:
    """A box, or the point where an edge passes a layer (then `node` is None)."""

    node: Node | None
    layer: int
    width: float
    x: float = 0.0
    above: list["Place"] = field(default_factory=list)
    below: list["Place"] = field(default_factory=list)


@dataclass
class Layout:
    """Places by layer, from the left; each drawn edge with the places it passes.

    `left_out` counts the nodes that there was no room for.
    """

    layers: list[list[Place]]
    paths: list[tuple[Edge, list[Place]]]
    stubs: list[Place]
    left_out: int


def arrange(
    graph: Graph, width_of: Callable[[Node], float], room: float, most_layers: int
) -> Layout:
    """Layers of the graph that fit on a page `room` inches wide, with positions.

    `width_of` is a box's width in inches.  Layers from `most_layers` on are left out, and
    those from the first that is too wide.
    """
    depth = depths(graph)
    lowest = max(depth.values(), default=0)
    fits = lowest < most_layers and graph.whole
    if fits:  # the leaves at the bottom, where they are looked for
        depth |= {key: lowest for key in depth if graph.nodes[key].leaf and lowest}
    for last in range(min(lowest, most_layers - 1), -1, -1):
        layout = placed(graph, depth, width_of, last)
        if all(wide(layer) <= room for layer in layout.layers):
            position(layout.layers, room)
            straighten(layout, room)
            centre(layout, room)
            return layout
    raise AssertionError("one box is wider than the page")


def depths(graph: Graph) -> dict[int, int]:
    """The longest path from the root to each node."""
    children: dict[int, list[int]] = {key: [] for key in graph.nodes}
    waiting = dict.fromkeys(graph.nodes, 0)
    for edge in graph.edges:
        children[edge.start].append(edge.end)
        waiting[edge.end] += 1
    depth = dict.fromkeys(graph.nodes, 0)
    ready = [key for key, count in waiting.items() if count == 0]
    while ready:
        key = ready.pop()
        for child in children[key]:
            depth[child] = max(depth[child], depth[key] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    return depth


def placed(
    graph: Graph, depth: dict[int, int], width_of: Callable[[Node], float], last: int
) -> Layout:
    """The layers down to `last`, with a bend where an edge passes a layer."""
    layers: list[list[Place]] = [[] for _ in range(last + 1)]
    places: dict[int, Place] = {}
    for key, node in graph.nodes.items():
        if depth[key] <= last:
            places[key] = Place(node, depth[key], width_of(node))
            layers[depth[key]].append(places[key])
    paths, stubs = [], []
    for edge in graph.edges:
        if edge.start not in places:
            continue
        start, end = places[edge.start], places.get(edge.end)
        if end is None:
            stubs.append(start)
            continue
        path = [start]
        for layer in range(start.layer + 1, end.layer):
            path.append(Place(None, layer, BEND))
            layers[layer].append(path[-1])
        path.append(end)
        for upper, lower in pairwise(path):
            upper.below.append(lower)
            lower.above.append(upper)
        paths.append((edge, path))
    return Layout(layers, paths, stubs, len(graph.nodes) - len(places))


def wide(layer: list[Place]) -> float:
    return sum(place.width for place in layer) + GAP * (len(layer) - 1)


def position(layers: list[list[Place]], room: float) -> None:
    """Order each layer so that few edges cross, then place it near its neighbours."""
    for layer in layers:
        side_by_side(layer, room)
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            pull = {
                id(p): mean(p.above if sweep % 2 == 0 else p.below, p) for p in layer
            }
            layer.sort(key=lambda place: pull[id(place)])
            side_by_side(layer, room)
    for _ in range(PULLS):
        for layer in layers:
            spread(layer, [mean([*p.above, *p.below], p) for p in layer], room)


def mean(neighbours: list[Place], place: Place) -> float:
    """The middle of the neighbours; where there are none, where it is."""
    if not neighbours:
        return place.x
    return sum(n.x for n in neighbours) / len(neighbours)


def side_by_side(layer: list[Place], room: float) -> None:
    """One after the other, in the middle of the page."""
    x = (room - wide(layer)) / 2
    for place in layer:
        place.x = x + place.width / 2
        x += place.width + GAP


def spread(layer: list[Place], wanted: list[float], room: float) -> None:
    """As near to what is wanted as the order and the page allow.

    From the left each box gives way to those before it, from the right to those after
    it; the mean of the two keeps the distances and favours no side.
    """
    forward, edge = [], 0.0
    for place, x in zip(layer, wanted, strict=True):
        forward.append(max(x, edge + place.width / 2))
        edge = forward[-1] + place.width / 2 + GAP
    backward, edge = [], room
    for place, x in zip(reversed(layer), reversed(wanted), strict=True):
        backward.append(min(x, edge - place.width / 2))
        edge = backward[-1] - place.width / 2 - GAP
    middles = [(a + b) / 2 for a, b in zip(forward, reversed(backward), strict=True)]
    # the two may leave the page on opposite sides: push what does back onto it
    edge = room
    for place, x in zip(reversed(layer), reversed(middles), strict=True):
        place.x = min(x, edge - place.width / 2)
        edge = place.x - place.width / 2 - GAP
    edge = 0.0
    for place in layer:
        place.x = max(place.x, edge + place.width / 2)
        edge = place.x + place.width / 2 + GAP


def straighten(layout: Layout, room: float) -> None:
    """Let an edge pass all its layers on one line, where there is a free one."""
    for _, path in layout.paths:
        bends = path[1:-1]
        if not bends:
            continue
        low, high = 0.0, room
        for bend in bends:
            left, right = free(layout.layers[bend.layer], bend, room)
            low, high = max(low, left), min(high, right)
        if low <= high:
            wanted = (path[0].x + path[-1].x) / 2 if len(bends) == 1 else path[-1].x
            for bend in bends:
                bend.x = min(max(wanted, low), high)


def free(layer: list[Place], place: Place, room: float) -> tuple[float, float]:
    """From where to where `place` may move between the two beside it."""
    here = next(n for n, other in enumerate(layer) if other is place)
    half = place.width / 2
    left, right = half, room - half
    if here:
        left = layer[here - 1].x + layer[here - 1].width / 2 + GAP + half
    if here + 1 < len(layer):
        right = layer[here + 1].x - layer[here + 1].width / 2 - GAP - half
    return left, right


def centre(layout: Layout, room: float) -> None:
    """Move all so that the drawing stands in the middle of the page."""
    places = [place for layer in layout.layers for place in layer]
    left = min(place.x - place.width / 2 for place in places)
    right = max(place.x + place.width / 2 for place in places)
    for place in places:
        place.x += (room - left - right) / 2
