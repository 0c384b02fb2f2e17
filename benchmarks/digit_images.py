"""The image side: pixels of handwritten digits to embeddings by a small convolutional network trained on a public half.

The 1,797 digits of `load_graph("digits")`: 32 pixels of a checkerboard are each user's private image, the other 32 only
built the graph.  Half of the users, drawn at random, declare pixels and digit public; the network is trained on them
alone (a few seconds on one core) and then fixed.  Its last layer but one, 16 numbers within -1 and 1, is everybody's
embedding.  As the sensitive input, which eq. 5 masks, stands the left half of the image.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from graphveil.graphs import load_graph
from graphveil.methods.release.extractor import Extractor, embedded, masked_rows
from graphveil.methods.release.scores import PublicNodes, Scores, public_part, public_scores

WIDTH = 16
EPOCHS = 60
#: Where in the 8 x 8 image each of the 32 private pixels lies (row + column odd), row by row.
PLACES = torch.tensor([row * 8 + column for row in range(8) for column in range(8) if (row + column) % 2])
#: The private pixels of the image's left half.
SENSITIVE = (PLACES % 8 < 4).nonzero().flatten()


class Embedding(nn.Module):
    """Rows of 32 pixels [n, 32] in 0..16 -> embeddings [n, 16] in -1..1; no layer looks at several rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, WIDTH), nn.Tanh()
        )

    def forward(self, rows: Tensor) -> Tensor:
        image = torch.zeros(len(rows), 64)
        image[:, PLACES] = rows / 16
        return self.layers(image.view(-1, 1, 8, 8))


def public_half(nodes: int, seed: int = 0) -> Tensor:
    """Return the users whose data is declared public: half of them, by `seed`."""
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[torch.randperm(nodes, generator=torch.Generator().manual_seed(seed))[: nodes // 2]] = True
    return mask


def trained(part: PublicNodes, seed: int = 0) -> Extractor:
    """Return the extractor trained on a public part."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        embedding, head = Embedding(), nn.Linear(WIDTH, 10)
        optimiser = torch.optim.Adam([*embedding.parameters(), *head.parameters()], lr=0.005)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(part.x)).split(64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(head(embedding(part.x[rows])), part.y[rows]).backward()
                optimiser.step()
    return Extractor(embedding, WIDTH, -1.0, 1.0, "a convolutional network trained on the public half of the digits")


def digit_embeddings(seed: int = 0, gamma: float = 0.5) -> tuple[Any, Tensor, Scores]:
    """Return the graph of embeddings, the public half [n] bool, and budget shares from that half alone."""
    graph = load_graph("digits")
    half = public_half(int(graph.num_nodes), seed)
    part = public_part(graph, half)
    extractor = trained(part, seed)
    embeddings = embedded(graph, extractor)
    masked = extractor(masked_rows(part.x, SENSITIVE, 0.0))
    scores = public_scores(public_part(embeddings, half), masked=masked, gamma=gamma, seed=seed)
    return embeddings, half, scores


if __name__ == "__main__":
    images, labels, shares = digit_embeddings()
    print(
        f"{images.x.shape[0]} embeddings of {images.x.shape[1]} numbers; shares {min(shares.shares):.3f} to "
        f"{max(shares.shares):.3f}, stamp {shares.stamp[:12]}"
    )
