"""A finished experiment → one HTML page that needs nothing but itself, with its figures and statistics beside it.

The page is made from ``page.html.jinja``, ``page.css`` and ``word_box.js`` in this folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_scaffold.apply import BPE
from mt_scaffold.compare_vocab import compare_at_sizes, compare_vocabularies
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.compare import SYNTHETIC_NOTE
from mt_scaffold.experiment.configuration import Config, load_config
from mt_scaffold.experiment.provenance import versions
from mt_scaffold.experiment.score import LABELS, NOT_COMPARABLE, read_lines
from mt_scaffold.files import PathLike, explain_os_error, open_input, write_text
from mt_scaffold.learn import InputFiles
from mt_scaffold.reference import END_OF_WORD
from mt_scaffold.stats import Vocabulary, count_text, summarise, table, use_of_vocabulary

if TYPE_CHECKING:
    from mt_scaffold.experiment.figures import Interval

# What the paper reports of other texts, or of the same where the experiment is WMT'14: (original BPE, Scaffold-BPE).
PAPER = {
    "bytes per token": {
        "Pile": ("3.879", "3.889"),
        "WMT'14 En-De": ("4.830", "4.861"),
        "WMT'14 En-Fr": ("5.012", "5.042"),
    },
    "entropy H, bits": {"Pile": ("11.2382", "11.2443")},
    "redundancy": {"Pile": ("0.2491", "0.2487")},
    "BLEU": {"WMT'14 En-De": ("29.31", "29.76"), "WMT'14 En-Fr": ("43.20", "43.81")},
    "BLEU, BPE-dropout": {"WMT'14 En-De": ("29.50", "29.78"), "WMT'14 En-Fr": ("43.44", "43.83")},
}
PAPER_GAINS = {32_000: 0.7640, 64_000: 0.6858, 128_000: 0.5899}  # on the Pile


class _Experiment:
    """The folder of a finished experiment, read as the page needs it."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)
        if not (self.folder / "comparison.json").exists():
            raise MTScaffoldError(f"{self.folder}: has no comparison.json: run the experiment to its end first")
        self.config: Config = load_config(self.folder / "config.yaml")
        self.comparison: dict[str, Any] = self.json("comparison.json")
        self.source, self.target = self.config.languages.source, self.config.languages.target
        self.note = SYNTHETIC_NOTE if self.config.synthetic else ""

    def json(self, name: str) -> dict[str, Any]:
        """What is in a JSON file of the experiment."""
        path = self.folder / name
        with open_input(path) as stream:
            try:
                content = json.load(stream)
            except ValueError as error:
                raise MTScaffoldError(f"{path}: not JSON ({error}); run the step that writes it again") from error
        assert isinstance(content, dict)
        return content

    def lines(self, name: str) -> list[str]:
        return read_lines(self.folder / name)

    def text(self, name: str) -> str:
        with open_input(self.folder / name) as stream:
            return stream.read().decode("utf-8")

    def codes(self, system: str) -> Path:
        return self.folder / "codes" / f"{self.config.systems[system].algorithm}.codes"

    def run(self, system: str, seed: int) -> str:
        """The folder of one training, from the experiment's."""
        return f"{system}/seed-{seed}"


def html_report(experiment: PathLike, output: PathLike | None = None, examples: int = 20) -> Path:
    """Make the page of a finished experiment (a folder that the workflow wrote) and return its path.

    output: the page (default: ``report.html`` in the folder). ``figures/`` and ``statistics.json`` are written in the
    folder of the page. examples: so many sentences, spread evenly over the first test set, are shown.

    Raises MTScaffoldError where the experiment is not finished or one of its files is missing or malformed.
    """
    import jinja2

    if examples < 0:
        raise UsageError(f"the number of examples must not be negative, not {examples}")
    found = _Experiment(experiment)
    page = Path(output) if output is not None else found.folder / "report.html"
    figures = page.parent / "figures"
    try:
        figures.mkdir(exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, figures) from error

    counts = count_text(InputFiles(found.folder / "words" / f"train.{code}" for code in (found.source, found.target)))
    algorithms = list(dict.fromkeys(system.algorithm for system in found.config.systems.values()))
    vocabularies: dict[str, Vocabulary] = {
        algorithm: use_of_vocabulary(found.folder / "codes" / f"{algorithm}.codes", counts) for algorithm in algorithms
    }
    summaries = [summarise(vocabularies[name]) | {"codes": name} for name in algorithms]
    statistics: dict[str, Any] = {"text": "training words, source and target", "stats": summaries}
    if {"bpe", "scaffold"} <= set(algorithms):
        statistics["vocabularies"] = compare_vocabularies(vocabularies["bpe"], vocabularies["scaffold"])
        statistics["vocabularies"] |= {"bpe": "bpe", "scaffold": "scaffold"}
        symbols = found.config.codes.symbols
        sizes = sorted({max(1, symbols // 4), max(1, symbols // 2), symbols, symbols * 2})
        statistics["sizes"] = compare_at_sizes(counts, sizes, found.config.codes.min_frequency)
    intervals = _intervals(found)
    statistics["bleu_intervals"] = [vars(interval) for interval in intervals]
    statistics |= {"synthetic": found.config.synthetic, "experiment": found.config.name, "versions": versions()}
    write_text(page.parent / "statistics.json", json.dumps(statistics, indent=2, ensure_ascii=False) + "\n")

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mt_scaffold.experiment.html_report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    here = Path(__file__).parent
    boxes = _codes(found)
    text = environment.get_template("page.html.jinja").render(
        config=found.config,
        synthetic_note=found.note,
        comparison=found.comparison,
        score_rows=_score_rows(found),
        metrics=[name for name in LABELS if any(name in row for row in found.comparison["rows"])],
        labels=LABELS,
        not_comparable=NOT_COMPARABLE,
        data=_data_rows(found),
        statistics=statistics,
        statistics_table=table(summaries),
        paper=_paper_rows(found),
        paper_gains=PAPER_GAINS,
        figures=_figures(found, figures, vocabularies, statistics, intervals),
        examples=_examples(found, examples),
        runs=_runs(found),
        config_text=found.text("config.yaml"),
        versions=found.comparison["versions"],
        surface=_surface,
        css=(here / "page.css").read_text(encoding="utf-8"),
        script=(here / "word_box.js").read_text(encoding="utf-8"),
        systems_of_codes=[box["systems"] for box in boxes],
        has_dropout=any(system.dropout for system in found.config.systems.values()),
        codes_json=_script_json(boxes),
    )
    write_text(page, text)
    return page


def _score_rows(found: _Experiment) -> list[dict[str, Any]]:
    base = {row["test_set"]: row for row in found.comparison["rows"] if row["system"] == found.comparison["baseline"]}
    rows = []
    for row in found.comparison["rows"]:
        reference = base.get(row["test_set"])
        is_base = row["system"] == found.comparison["baseline"]
        difference = None if is_base or reference is None else row["bleu"]["mean"] - reference["bleu"]["mean"]
        rows.append({**row, "difference": difference})
    return rows


def _data_rows(found: _Experiment) -> list[dict[str, Any]]:
    """One row a part (train, valid, each test set): pairs and words at every step."""
    report = found.json("data-report.json")
    rows = []
    for part in ["train", "valid", *found.config.test_sets]:
        corpus = report["get-data"]["corpora"][part]
        tokenised = [report["tokenise"][f"{part}.{code}"] for code in (found.source, found.target)]
        cleaned = report["clean"].get(part)
        rows.append(
            {
                "part": part,
                "raw_pairs": corpus["lines"],
                "raw_words": [corpus["words"][code] for code in (found.source, found.target)],
                "tokenised_words": [entry["words"] for entry in tokenised],
                "kept_pairs": cleaned["pairs_kept"] if cleaned else corpus["lines"],
                "kept_words": cleaned["words_kept"] if cleaned else None,
                "dropped": cleaned["dropped"] if cleaned else None,
            }
        )
    return rows


def _paper_rows(found: _Experiment) -> list[tuple[str, str, str, str, bool]]:
    """The paper's figures: what, on which text, original BPE, Scaffold-BPE, whether it is this experiment's text."""
    own = None
    if "wmt14" in found.config.name.lower():
        own = {"de": "WMT'14 En-De", "fr": "WMT'14 En-Fr"}.get(found.target)
    return [
        (figure, text, bpe, scaffold, text == own)
        for figure, texts in PAPER.items()
        for text, (bpe, scaffold) in texts.items()
    ]


def _intervals(found: _Experiment) -> list[Interval]:
    from mt_scaffold.experiment.figures import Interval, bootstrap_interval

    intervals = []
    for test_set in found.config.test_sets:
        references = found.lines(f"raw/{test_set}.{found.target}")
        for system in found.config.systems:
            for seed in found.config.seeds:
                translations = f"{found.run(system, seed)}/translations/{test_set}.{found.target}"
                score, half_width = bootstrap_interval(
                    found.lines(translations), references, found.config.score.bootstrap_samples
                )
                intervals.append(Interval(test_set, system, seed, score, half_width))
    return intervals


def _figures(
    found: _Experiment,
    folder: Path,
    vocabularies: Mapping[str, Vocabulary],
    statistics: Mapping[str, Any],
    intervals: Sequence[Interval],
) -> dict[str, list[Any]]:
    """Draw every figure into ``folder``; section of the page → its figures: SVG to stand in the page, and caption."""
    from mt_scaffold.experiment import figures

    drawn: dict[str, list[Any]] = {"scores": [], "training": [], "vocabularies": [], "embeddings": []}

    def show(section: str, svg: Path, caption: str, wide: bool = False) -> None:
        drawn[section].append({"svg": _inline(svg), "caption": caption, "wide": wide})

    show(
        "scores",
        figures.scores(intervals, folder / "bleu", found.note),
        "BLEU with the 95 % confidence interval of sacreBLEU's bootstrap over the sentences of the test set. Systems "
        "are compared by the paired test in the table, not by whether these intervals overlap.",
    )
    trainings = {
        f"{system}, seed {seed}": found.folder / found.run(system, seed) / "train.log"
        for system in found.config.systems
        for seed in found.config.seeds
    }
    show(
        "training",
        figures.training_curves(trainings, folder / "training", found.note),
        "Training and validation loss, in bits per subword. Systems with other subwords share out the text among other "
        "numbers of them: compare the course, not the height.",
    )
    frequencies = {name: vocabulary.sorted_frequencies for name, vocabulary in vocabularies.items()}
    show(
        "vocabularies",
        figures.token_frequencies(frequencies, folder / "token-frequencies", found.note),
        "Sorted token frequencies in the training text.",
    )
    compared = statistics.get("vocabularies")
    if compared is None:
        return drawn
    if any(row["gain"] is not None for row in statistics["sizes"]):
        show(
            "vocabularies",
            figures.replaced_tokens(statistics["sizes"], folder / "replaced-tokens", found.note),
            "Average frequency of the tokens that Scaffold-BPE removes from BPE's vocabulary and of the new ones in "
            "their place, for codes of several sizes learned from the same text.",
        )
    if parts := _parts_to_show(vocabularies["bpe"], compared):
        show(
            "vocabularies",
            figures.inside_longer_tokens(parts, vocabularies["bpe"].frequencies, folder / "inside-longer", found.note),
            "Where a string stands in the text as BPE segments it: as a token of its own (orange), or in longer ones.",
            wide=True,
        )
    removed = frozenset(_surface(entry["token"]) for entry in compared["removed"])
    new = frozenset(_surface(entry["token"]) for entry in compared["new"])
    for system, choice in found.config.systems.items():
        run = found.folder / found.run(system, found.config.seeds[0])
        if not (run / "averaged.pt").exists():
            continue
        marked = {"tokens Scaffold-BPE removes": removed} if choice.algorithm == "bpe" else {"new tokens": new}
        dictionary = found.folder / system / "binarised" / f"dict.{found.source}.txt"
        model = figures.read_embeddings(run / "averaged.pt", dictionary, marked)
        show(
            "embeddings",
            figures.embeddings({system: model}, folder / f"embeddings-{system}", found.note),
            f"Source embeddings of {system}, seed {found.config.seeds[0]}, less their mean, projected by SVD.",
        )
    return drawn


def _parts_to_show(bpe: Vocabulary, compared: Mapping[str, Any]) -> list[str]:
    """Two strings that BPE made on the way to longer ones, the earliest first, and one that stayed a frequent token."""
    removed = {entry["token"].removesuffix(END_OF_WORD) for entry in compared["removed"] if entry["scaffold"]}
    in_order = list(dict.fromkeys(merge.token.removesuffix(END_OF_WORD) for merge in bpe.merges))
    occurs = {token.removesuffix(END_OF_WORD) for token, frequency in bpe.frequencies.items() if frequency}
    parts = [part for part in in_order if part in removed and len(part) >= 4 and any(part in o for o in occurs)][:2]
    kept = [part for part in in_order if part not in removed and len(part) == 3]
    frequent = max(kept, key=lambda part: bpe.frequencies.get(part + END_OF_WORD, 0), default=None)
    return parts + ["ing" if "ing" in kept else frequent] if parts and frequent else parts


def _surface(token: str) -> str:
    return token.removesuffix(END_OF_WORD) if token.endswith(END_OF_WORD) else f"{token}@@"


def _inline(svg: Path) -> Any:
    """An SVG to stand within the page: in the colour of its text, and with names of its own."""
    from markupsafe import Markup

    text = svg.read_text(encoding="utf-8")
    text = text[text.index("<svg") :].replace("#000000", "currentColor")
    # matplotlib leaves text black by saying nothing.
    text = text.replace("<svg ", '<svg role="img" fill="currentColor" ', 1)
    name = re.sub(r"\W", "-", svg.stem)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    return Markup(text)


def _examples(found: _Experiment, number: int) -> list[dict[str, Any]]:
    """Sentences of the first test set: source, reference, and what each system (first seed) makes of them."""
    test_set, seed = found.config.test_sets[0], found.config.seeds[0]
    words = found.lines(f"words/{test_set}.{found.source}")
    sources = found.lines(f"raw/{test_set}.{found.source}")
    references = found.lines(f"raw/{test_set}.{found.target}")
    translations = {}
    for system in found.config.systems:
        prefix = f"{found.run(system, seed)}/translations/{test_set}.{found.target}"
        bpe = BPE(found.codes(system))
        translations[system] = (bpe, found.lines(prefix), found.lines(f"{prefix}.subwords"))
    count = min(number, len(words))
    chosen = [index * len(words) // count for index in range(count)]
    return [
        {
            "number": index + 1,
            "words": words[index],
            "source": sources[index],
            "reference": references[index],
            "systems": [
                {
                    "name": system,
                    "source_subwords": bpe.segment(words[index]),
                    "subwords": subwords[index],
                    "translation": text[index],
                }
                for system, (bpe, text, subwords) in translations.items()
            ],
        }
        for index in chosen
    ]


def _runs(found: _Experiment) -> list[dict[str, Any]]:
    return [
        {
            "system": system,
            "seed": seed,
            "command": found.text(f"{found.run(system, seed)}/command.txt"),
            "training": found.json(f"{found.run(system, seed)}/training.json"),
        }
        for system in found.config.systems
        for seed in found.config.seeds
    ]


def _codes(found: _Experiment) -> list[dict[str, Any]]:
    """Each codes file that a system uses, with the names of the systems that use it."""
    systems: dict[Path, list[str]] = {}
    for system in found.config.systems:
        systems.setdefault(found.codes(system), []).append(system)
    boxes = []
    for path, names in systems.items():
        with open_input(path) as stream:
            boxes.append({"systems": names, "codes": stream.read().decode("utf-8")})
    return boxes


def _script_json(value: Any) -> Any:
    """JSON that may stand within a script element: nothing in it can end the element."""
    from markupsafe import Markup

    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))
