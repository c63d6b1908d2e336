"""Write the invented tasks of configs/lm_demo.yaml: python tools/demo_tasks.py [FOLDER].

Default: configs/lm_demo_tasks. Both tasks ask for the end of a sentence in the demo's languages. The sentences are from
the demo's test documents, on which no model is trained.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from mt_scaffold.experiment.data.synthetic import sentence_pairs

QUESTIONS = 150
# As in configs/lm_demo.yaml.
SEED, STEMS = 1, 300


def questions() -> dict[str, list[dict[str, object]]]:
    """Return the questions of each task: start of a sentence, three choices for its end, index of the right one.

    ``ending``: the wrong ones are the ends of other sentences. ``word_order``: its own words in another order.
    """
    random = Random(SEED)
    halves: list[tuple[int, str, list[str]]] = []
    for number, pair in enumerate(sentence_pairs(SEED, STEMS)):
        side = number % 2
        words = pair[side].split()
        end = words[len(words) // 2 :]
        # The last word, which ends the sentence, stays; three others have enough orders.
        if len(set(end[:-1])) >= 3:
            halves.append((side, " ".join(words[: len(words) // 2]), end))
        if len(halves) == QUESTIONS:
            break
    found: dict[str, list[dict[str, object]]] = {"ending": [], "word_order": []}
    for side, text, words in halves:
        others = random.sample([other for of, _, other in halves if of == side and other != words], 2)
        orders = [words]
        while len(orders) < 3:
            order = [*random.sample(words[:-1], len(words) - 1), words[-1]]
            if order not in orders:
                orders.append(order)
        for task, wrong in (("ending", others), ("word_order", orders[1:])):
            answer = random.randrange(3)
            choices = [" ".join(each) for each in wrong]
            choices.insert(answer, " ".join(words))
            found[task].append({"text": text, "choices": choices, "answer": answer})
    return found


def main() -> None:
    """Write a file of JSONL for each task."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "configs/lm_demo_tasks")
    for task, several in questions().items():
        lines = "".join(json.dumps(question, ensure_ascii=False) + "\n" for question in several)
        (folder / f"{task}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
