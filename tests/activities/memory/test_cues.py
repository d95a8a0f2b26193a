"""What is said meets a cue by its words, and by its meaning where there is a model for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from gmi.activities.embedders.embedder import EmbedderDownError, EmbedKind, Vectors
from gmi.activities.memory.cues import MAX_KEPT, Cues, least_similarity, word_share
from gmi.workflows.steps import Reminder


class Meanings:
    """An embedder for which texts lie in the plane at the angles that it is told.

    Every other text has a direction of its own, and all share ``common``.
    """

    model = "test:meanings"
    dimension = 64

    def __init__(self, common: float = 0.0, **cosines: float) -> None:
        self.asked: list[str] = []
        self.down = False
        self._common = common
        self._cosines = cosines
        self._seen: dict[str, int] = {}

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        if self.down:
            raise EmbedderDownError("nobody answers")
        self.asked += texts
        return np.array([self._vector(text) for text in texts], np.float32)

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimension
        place = 3 + self._seen.setdefault(text, len(self._seen))
        cosine = self._cosines.get(text)
        if cosine is not None:
            vector[0], vector[1] = cosine, (1 - cosine**2) ** 0.5
        else:
            vector[2], vector[place] = self._common**0.5, (1 - self._common) ** 0.5
        return vector


class Held(Meanings):
    """Answers about the text ``later`` when it is let go."""

    def __init__(self, **cosines: float) -> None:
        super().__init__(**cosines)
        self.waits = asyncio.Event()
        self.go = asyncio.Event()

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        if "later" in texts:
            self.waits.set()
            await self.go.wait()
        return await super().embed(texts, kind)


def reminder(name: str, cue: str | None) -> Reminder:
    return Reminder(id=name, content="x", cue=cue)


async def met(cues: Cues, said: str, *waiting: str) -> list[str]:
    found, warnings = await cues.met([reminder(cue, cue) for cue in waiting], said)
    assert warnings == []
    return [item.id for item in found]


@pytest.mark.parametrize(
    ("cue", "said", "share"),
    [
        ("the dentist", "I was at the dentist's today", 1.0),
        ("birthday party", "We had parties", 0.5),
        ("moving to Oslo", "She moved", 0.5),
        ("to be or not to be", "the question is to be or not to be", 1.0),
        ("to be or not to be", "it is not to be", 0.0),
        ("cat", "concatenate", 0.0),
    ],
)
def test_words_are_compared_by_their_stems(cue: str, said: str, share: float) -> None:
    assert word_share(cue, said) == share


async def test_without_a_model_most_words_of_a_cue_have_to_be_said() -> None:
    cues = Cues(None)
    said = "Tom plans his birthday party"
    assert await met(cues, said, "Tom's birthday", "party tents", "dogs") == ["Tom's birthday"]
    assert await met(cues, " ", "Tom's birthday") == []


async def test_what_has_no_cue_is_passed_over() -> None:
    assert await Cues(None).met([reminder("a", None)], "anything") == ([], [])


async def test_a_cue_counts_from_its_similarity_on() -> None:
    embedder = Meanings(said=1.0, near=0.7, far=0.699)
    assert await met(Cues(embedder), "said", "near", "far") == ["near"]


async def test_a_word_that_is_said_counts_beside_the_meaning() -> None:
    embedder = Meanings(said=1.0, far=0.1)
    assert await met(Cues(embedder), "the dentist said so", "far", "dentist") == ["dentist"]


async def test_each_cue_is_embedded_once() -> None:
    embedder = Meanings(said=1.0, more=1.0, near=0.9)
    cues = Cues(embedder)
    await met(cues, "said", "near")
    before = len(embedder.asked)
    await met(cues, "more", "near")
    assert embedder.asked[before:] == ["more"]


async def test_a_cue_that_other_turns_push_out_meanwhile_is_compared_all_the_same() -> None:
    others = {f"other{number}": 0.0 for number in range(MAX_KEPT)}
    embedder = Held(said=1.0, later=1.0, near=0.9, **others)
    cues = Cues(embedder)
    assert await met(cues, "said", "near") == ["near"]
    waiting = asyncio.create_task(met(cues, "later", "near"))
    await embedder.waits.wait()
    assert await met(cues, "said", *others) == []
    embedder.go.set()
    assert await waiting == ["near"]


async def test_a_model_that_puts_all_texts_near_each_other_has_to_show_more() -> None:
    embedder = Meanings(common=0.8, said=1.0, usual=0.82, near=0.9)
    assert await met(Cues(embedder), "said", "usual", "near") == ["near"]


def test_unrelated_texts_say_what_near_means_for_a_model() -> None:
    assert least_similarity(np.eye(4, dtype=np.float32)) == pytest.approx(0.3)
    assert least_similarity(np.ones((3, 1), np.float32)) == pytest.approx(1.0)


async def test_a_model_that_is_down_leaves_the_words() -> None:
    embedder = Meanings(said=1.0, near=0.9)
    embedder.down = True
    cues = Cues(embedder)
    waiting = [reminder("near", "near"), reminder("said", "said")]
    found, warnings = await cues.met(waiting, "said")
    assert [item.id for item in found] == ["said"]
    assert warnings[0].startswith("CUES_WITHOUT_VECTORS")
    embedder.down = False
    assert [item.id for item in (await cues.met(waiting, "said"))[0]] == ["near", "said"]
