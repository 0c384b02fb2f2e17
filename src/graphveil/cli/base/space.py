"""Upper bounds on the bytes that commands write, to reserve disk space before any budget is spent."""

from __future__ import annotations

from graphveil.graphs import Graph


def room_of(graph: Graph, parts: int = 1) -> int:
    """The most bytes of a run folder: model, pages and pictures, and the epochs of all repeats.

    Args:
        parts: number of repeats; each records its epochs.
    """
    from graphveil.graphs.value.description import memory_of

    of_nodes = 8 * int(graph.num_nodes) * (len(graph.schema.classes) + 64)
    return (4 << 20) + 3 * memory_of(graph) + of_nodes + parts * (1 << 20)


def room_of_split(graph: Graph) -> int:
    """The most bytes of the folders of several holders: features, edges, and every person's id in each."""
    from graphveil.graphs.value.description import memory_of

    return (64 << 10) + 2 * memory_of(graph) + 5 * 100 * int(graph.num_nodes)


def room_of_predictions(graph: Graph) -> int:
    """The most bytes of the predictions for a graph: per node an id, a class and a number for each class."""
    classes, ids = graph.schema.classes, graph.get("ids")
    longest = max((len(str(node_id).encode()) for node_id in (() if ids is None else ids)), default=20)
    row = 64 + longest + max(len(name.encode()) for name in classes) + 25 * (len(classes) + 1)
    return (16 << 10) + row * int(graph.num_nodes)


def room_of_answers(graph: Graph) -> int:
    """The most bytes by which a run grows when it stores the reports of a graph's people, or the answers to them."""
    from graphveil.graphs.value.description import memory_of

    return (64 << 10) + 2 * memory_of(graph) + 8 * int(graph.num_nodes) * (len(graph.schema.classes) + 8)
