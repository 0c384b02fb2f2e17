"""The most bytes that answers of commands take, to be reserved before anything is spent for them."""

from __future__ import annotations

from graphveil.graphs import Graph


def room_of(graph: Graph, parts: int = 1) -> int:
    """The most bytes that a run folder takes: model, pages and pictures, and the epochs of all repeats.

    Args:
        graph: that the run is on.
        parts: repeats, each with epochs of its own.

    Returns:
        Bytes, on the safe side.
    """
    from graphveil.graphs.value.description import memory_of

    of_nodes = 8 * int(graph.num_nodes) * (len(graph.schema.classes) + 64)
    return (4 << 20) + 3 * memory_of(graph) + of_nodes + parts * (1 << 20)


def room_of_split(graph: Graph) -> int:
    """The most bytes that the folders of several holders take: features, edges, and an id of each person in each."""
    from graphveil.graphs.value.description import memory_of

    return (64 << 10) + 2 * memory_of(graph) + 5 * 100 * int(graph.num_nodes)


def room_of_predictions(graph: Graph) -> int:
    """The most bytes that the predictions of a graph take: an id, a class and as many numbers as there are classes."""
    classes, ids = graph.schema.classes, graph.get("ids")
    longest = max((len(str(node_id).encode()) for node_id in (() if ids is None else ids)), default=20)
    row = 64 + longest + max(len(name.encode()) for name in classes) + 25 * (len(classes) + 1)
    return (16 << 10) + row * int(graph.num_nodes)


def room_of_answers(graph: Graph) -> int:
    """The most bytes by which a run grows that keeps what the people of a graph sent, or were answered."""
    from graphveil.graphs.value.description import memory_of

    return (64 << 10) + 2 * memory_of(graph) + 8 * int(graph.num_nodes) * (len(graph.schema.classes) + 8)
