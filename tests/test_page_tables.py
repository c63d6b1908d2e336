"""The pages' tables, and figures in their text."""

import csv
import json
import math
import re
import statistics
from pathlib import Path

import pytest
from paths import ROOT

from mt_scaffold.cli import main
from mt_scaffold.experiment.configuration import load_experiment
from mt_scaffold.experiment.report.paper import read_paper

RESULTS = ROOT / "docs" / "results"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_row_is_cut_off_from_its_table(page: Path) -> None:
    """After a blank line, rows without a heading are printed as text with pipes."""
    fenced, lines = False, [""]
    for line in page.read_text(encoding="utf-8").split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append("" if fenced else line.strip())
    cut = [
        line
        for before, line, after in zip(lines[:-1], lines[1:], [*lines[2:], ""], strict=True)
        if line.startswith("|") and not before.startswith("|") and not after.startswith(("|-", "|:", "| -", "| :"))
    ]
    assert not cut


@pytest.mark.parametrize("text", [b"x" * 17 + b"\xe4\n", b"a\n"], ids=["latin-1", "no-pair"])
def test_troubleshooting_quotes_the_messages(text: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Who searches the page for the message finds its row."""
    path = tmp_path / "text"
    path.write_bytes(text)
    main(["learn-bpe", "--symbols", "1", "--input", str(path), "--output", str(tmp_path / "codes")])
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    printed = capfd.readouterr().err
    assert [message for message in quoted if message in printed]


# Of the primary measure, with their digits.
METRICS = {"bleu": 2, "reference_bits_per_byte": 4}
STORED = sorted(ROOT.glob("docs/results/*/comparison.txt"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_a_p_of_single_trainings_says_what_it_is_about(path: Path) -> None:
    """``compare`` writes it below them; tables that were stored before it did have it above them."""
    text = path.read_text(encoding="utf-8")
    said = "One training of a system does not show how far trainings differ by chance: p and interval are about these "
    compared = not text.split("\n\n")[1].startswith("Nothing is compared: ")
    assert (said in text) == (compared and "one training per system" in text)


def test_the_rows_of_a_fair_comparison_are_those_that_were_counted() -> None:
    """The sizes of the dictionaries in the text, from the stored statistics and counts."""
    page = " ".join((ROOT / "docs" / "fair_comparison.md").read_text(encoding="utf-8").split())
    results = ROOT / "docs" / "results"
    bpe, scaffold = json.loads((results / "multi30k_en_de" / "statistics.json").read_text(encoding="utf-8"))["stats"]
    assert bpe["vocabulary_size"] == scaffold["vocabulary_size"]
    assert f"both vocabularies have {bpe['vocabulary_size']:,} tokens, but {bpe['frequency_0']} of BPE's" in page
    assert f"and {scaffold['frequency_0']} of Scaffold-BPE's" in page
    assert f"{bpe['types']:,} rows and Scaffold-BPE's {scaffold['types']:,}" in page
    with open(results / "dictionaries" / "dictionaries.csv", encoding="utf-8") as file:
        counts = {(row["text"], row["system"], row["dictionary"]): row for row in csv.DictReader(file)}
    entries = [int(counts["mdn.de", system, "all"]["entries"]) for system in ("bpe", "scaffold")]
    assert "it is {:,} and {:,}.".format(*entries) in page
    cut = {system: counts["mdn.de", system, "at most 32,768"] for system in ("bpe", "scaffold")}
    assert f"leaves {int(cut['scaffold']['unk_in_train']):,} running" in page and cut["bpe"]["unk_in_train"] == "0"


def text_of(page: str) -> str:
    """Return a page of docs/ as one line, with minus signs as Python writes them."""
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").replace("\u2212", "-").split())


def test_gain_and_entropy_over_n_are_those_that_were_counted() -> None:
    """The gain rises throughout on English alone; only at one N can a figure of the text be compared with the paper."""
    page = text_of("results/README.md")
    paths = {
        "English": "vocabulary_sizes/english_documentation.json",
        "German": "vocabulary_sizes/mdn_de.json",
        "Multi30k": "multi30k_en_de/statistics.json",
    }
    stored = {name: json.loads((RESULTS / path).read_text(encoding="utf-8")) for name, path in paths.items()}
    rows = stored | {"Multi30k": stored["Multi30k"]["sizes"]}
    gains = {name: {row["symbols"]: row["gain"] for row in each} for name, each in rows.items()}
    rising = {name: [*gain.values()] == sorted(gain.values()) for name, gain in gains.items()}
    assert rising == {"English": True, "German": False, "Multi30k": False}
    percent = "{:.2f}, {:.2f} and {:.2f} %".format(*(100 * gain for gain in gains["English"].values()))
    assert f"rises with N on English documentation ({percent} at 32,000, 64,000 and 128,000 tokens)" in page
    from_4000 = [gain for symbols, gain in gains["German"].items() if symbols >= 4000]
    assert from_4000 == sorted(from_4000) and gains["German"][2000] > from_4000[0]
    assert "On German prose it rises from 4,000 tokens on, and on [Multi30k]" in page

    def higher(name: str, key: str) -> list[int]:
        return [row["symbols"] for row in rows[name] if row["scaffold"][key] > row["bpe"][key]]

    assert all(higher(name, "bytes_per_token") == [*gains[name]] for name in ("English", "German"))
    assert higher("English", "entropy_bits") == [*gains["English"]] and higher("German", "entropy_bits") == [1000, 2000]
    assert "On German its entropy is higher only at 1,000 and 2,000 tokens, and so it is on English with words" in page
    with open(RESULTS / "intrinsic" / "measures.csv", encoding="utf-8") as file:
        entropy = {
            (row["method"], int(row["N"])): float(row["entropy_bits"])
            for row in csv.DictReader(file)
            if (row["text"], row["on"]) == ("documentation_en", "train")
        }
    sizes = sorted(size for method, size in entropy if method == "scaffold")
    assert [size for size in sizes if entropy["scaffold", size] > entropy["bpe", size]] == sizes[:2] == [1000, 2000]
    paper = read_paper().texts["Pile"].symbols
    assert paper == [32_000] and "the paper has both for the Pile at 32,000 tokens only" in page


def test_the_losses_by_frequency_are_those_that_were_stored() -> None:
    """With the significant class that a first reading left out: rarer words cost more."""
    found: dict[str, list[tuple[str, str]]] = {}
    for block in (RESULTS / "multi30k_en_de" / "losses.txt").read_text(encoding="utf-8").split("\n\n"):
        for line in block.splitlines():
            if match := re.match(
                r"(?:frequency|occurrences in the training text)  +(.+?)  .*  ([+-]\S+)  .*  (\S+)$", line
            ):
                found.setdefault(match[1], []).append((match[2], match[3]))
    others, tens = found["other words"], found["10 to 99"]
    page = text_of("results/README.md")
    assert "all words but the 2,500 most frequent {} on test_2016_flickr (Holm's p {})".format(*others[0]) in page
    assert "{} with typos ({}, the same references)".format(*others[3]) in page
    assert f"{others[1][0]} and {others[2][0]} on the other two ({others[1][1]} and {others[2][1]})" in page
    assert f"cost it less there ({tens[1][0]} and {tens[2][0]})" in page
    assert [float(p) < 0.05 for _, p in others] == [True, False, False, True]
    assert [float(p) < 0.05 for _, p in tens] == [False, True, True, False]


def test_scaffold_loses_on_rarer_words_in_german() -> None:
    """In every table, which its gain on more frequent ones does not say."""
    differences, significant = [], []
    group = ""
    for line in (RESULTS / "lm_german" / "losses.txt").read_text(encoding="utf-8").splitlines():
        group = line.rpartition(": ")[2] if line.startswith("Words by") else group
        cells = re.split(r"  +", line)
        if cells[:2] == ["occurrences in the training text", "10 to 99"] and len(cells) > 9:
            differences.append(cells[7])
            significant += [group] if float(cells[9].removeprefix("< ")) < 0.05 else []
    assert len(differences) == 6 and significant == ["equal_text, documents"]
    shown = f"({min(differences)} to {max(differences)}, significant on documents after equal text)"
    assert f"on those of 10 to 99 it loses in every table {shown}" in text_of("results/README.md")


def primary_rows(stored: str) -> dict[str, list[list[str]]]:
    """Return the rows of the primary measure in BLEU and in bits per byte, by comparison."""
    rows = [[cell.strip() for cell in line.split("|")] for line in stored.splitlines()]
    found: dict[str, list[list[str]]] = {}
    for row in rows:
        if row[1:2] == ["mean of 3 (primary)"]:
            found.setdefault(row[2], []).append(row)
    return found


def effect(row: list[str]) -> tuple[str, str]:
    """Return a difference with its interval, and its corrected p, as the page has them."""
    return ", ".join(filter(None, row[5:7])), row[9].replace("under", "<")


def test_the_primary_measure_is_what_the_stored_scores_give() -> None:
    """The stored tables are those of the stored scores, and the page has their first rows."""
    pytest.importorskip("scipy", reason="comes with the extra 'workflow'")
    from studies.named_comparisons import NAMED, UNTOUCHED, report

    folders = [RESULTS / f"multi30k_{name}" for name in ("en_de", "control", "dropout")]
    stored = (folders[0] / "named-comparisons.txt").read_text(encoding="utf-8")
    assert (
        report(NAMED["multi30k_en_de"], [folder / "comparison.json" for folder in folders], UNTOUCHED, range(1, 6))
        == stored
    )
    primary = primary_rows(stored)
    assert {comparison: bleu[7] for comparison, (bleu, _) in primary.items()} == {
        "scaffold − bpe": "trainings, sentences",
        "scaffold+dropout − bpe+dropout": "trainings, sentences",
        "control − bpe": "trainings",
        "scaffold − control": "trainings",
    }
    names = {
        "scaffold − bpe": "Scaffold-BPE - BPE",
        "scaffold+dropout − bpe+dropout": "Scaffold-BPE - BPE, both with dropout",
        "control − bpe": "control - BPE",
        "scaffold − control": "Scaffold-BPE - control",
    }
    page = text_of("results/README.md")
    _, table, _ = re.split("<!-- (?:end of )?named comparisons -->", page)
    lines = [
        " | ".join((f"| {names[comparison]}", bleu[3], *(cell for row in (bleu, bits) for cell in effect(row))))
        for comparison, (bleu, bits) in primary.items()
    ]
    assert table.split("|---| ")[1].split() == " ".join(f"{line} |" for line in lines).replace("−", "-").split()
    bleu, _ = primary["scaffold − bpe"]
    (first, at_first), (second, at_second) = re.findall(r"(\+0\.\d+) inside, found with (\d+) %", bleu[10])
    assert f"The paper's {first} and {second} are inside the first interval. At the first step of Holm's" in page
    ends = re.findall(r"found with \d+ % \((\d+ to \d+)\)", bleu[10])
    assert f"of that size with probabilities of about {at_first} and {at_second} %, which are" in page
    assert f"of so few trainings: {ends[0]} and {ends[1]} %" in page
    published = primary_rows((RESULTS / "multi30k_published" / "named-comparisons.txt").read_text(encoding="utf-8"))
    with_dropout, _ = published["scaffold+dropout − bpe+dropout"]
    found = re.findall(r"found with (\d+) %", with_dropout[10])
    assert f"was about {at_first} and {at_second} % without dropout, " in page
    assert f", and {found[0]} and {found[1]} % with it in the published size" in page
    people = [re.findall(r"people agree in (\d+) %", row[10]) for row in (bleu, with_dropout)]
    assert (
        f"differ by 0.45 BLEU, they prefer the one with more in {people[0][0]} % of pairs, at 0.61 BLEU in "
        f"{people[0][1]} %, at 0.28 and 0.39 in {people[1][0]} and {people[1][1]} %" in page
    )
    assert f"| [Multi30k](#translation-multi30k): {bleu[5]} BLEU (95 % interval {bleu[6]}), not significant" in page
    assert f"[in the published size](#published-size) {with_dropout[5]} ({with_dropout[6]}), not significant" in page
    start = text_of("../README.md")
    small, _ = primary["scaffold+dropout − bpe+dropout"]
    assert f"On the mean of the first three: {bleu[5]} ({bleu[6]}). With BPE-dropout, three trainings:" in start
    assert f"{small[5]} ({small[6]}); larger models: {with_dropout[5]} ({with_dropout[6]})" in start
    assert f"people prefer such gains in {people[0][0]} and {people[0][1]} % of pairs" in start
    bpe, control = (json.loads((each / "comparison.json").read_text("utf-8"))["trainings"][0] for each in folders[:2])
    assert f"into {100 * control['subwords'] / bpe['subwords'] - 100:.1f} % more subwords than BPE" in page
    assert f"({control['updates']:,} instead of {bpe['updates']:,})" in page


def test_the_pilot_fixed_the_epochs_by_the_rule() -> None:
    """Of the configuration, which was written before; and no training had stopped falling by then."""
    losses: dict[tuple[str, str], list[float]] = {}
    with open(RESULTS / "multi30k_dropout" / "validation.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            losses.setdefault((row["system"], row["seed"]), []).append(float(row["loss"]))
    means = {
        run: {epoch: sum(each[epoch - 4 : epoch]) / 4 for epoch in range(4, len(each) + 1)}
        for run, each in losses.items()
    }
    assert len(losses) == 6 and {len(each) for each in losses.values()} == {60}
    pilot = means["bpe+dropout", "1"]
    found = [
        epoch for epoch in range(5, 65, 5) if all(pilot[epoch] - pilot[later] < 0.01 for later in range(epoch + 1, 61))
    ]
    assert found[0] == 60
    rule = (ROOT / "configs" / "multi30k_en_de.yaml").read_text(encoding="utf-8")
    assert "The pilot has\n#   shown: 60." in rule
    fell = [each[55] - each[60] for each in means.values()]
    shown = (
        f"by {pilot[55] - pilot[60]:.3f} bits per subword in the pilot and by {min(fell):.3f} to {max(fell):.3f} in all"
    )
    assert min(fell) > 0.01 and shown in text_of("results/README.md")


def test_the_pairs_with_dropout_have_the_stored_scores() -> None:
    """Each pair's difference on the primary measure, and whether the paper's gains are inside."""
    page = text_of("results/README.md")
    rows = json.loads((RESULTS / "multi30k_dropout" / "comparison.json").read_text(encoding="utf-8"))["rows"]
    untouched = [row["scores"] for row in rows if not row["test_set"].endswith("_typos")]
    pairs = []
    for metric in METRICS:
        for seed in "123":
            scores = [each[metric]["by_seed"][seed] for each in untouched]
            pairs.append(statistics.fmean(scores[1::2]) - statistics.fmean(scores[::2]))
    told = "each pair has {:+.2f}, {:+.2f} and {:+.2f} BLEU, and {:+.4f}, {:+.4f} and {:+.4f} bits per byte"
    assert told.format(*pairs) in page
    stored = (RESULTS / "multi30k_en_de" / "named-comparisons.txt").read_text(encoding="utf-8")
    bleu, bits = primary_rows(stored)["scaffold+dropout − bpe+dropout"]
    (first, *at_first), (second, *at_second) = re.findall(
        r"(\+0\.\d+) inside, found with (\d+) % \((\d+ to \d+)\)", bleu[10]
    )
    ends = f"({at_first[1]} and {at_second[1]} %)"
    assert f"The paper's {first} and {second} are inside the interval, but would have been found" in page
    assert f"only about {at_first[0]} and {at_second[0]} % {ends}" in page
    assert f"{at_first[0]} and {at_second[0]} % with it, and 5 and 9 % with it in the published size" in page
    assert f"| With BPE-dropout? | [Multi30k](#with-bpe-dropout): {bleu[5]} BLEU ({bleu[6]}), and [in the" in page
    assert min(float(row[9]) for row in (bleu, bits)) > 0.05
    assert stored.rstrip().endswith("Missing: scaffold+dropout, seeds 4, 5; bpe+dropout, seeds 4, 5.")
    assert "Not done: seeds 4 and 5 of both systems with dropout in this size" in page


def test_the_published_size_has_the_stored_scores() -> None:
    """Of three pairs on the test sets and on the validation text, with the primary measure that was named."""
    stats = pytest.importorskip("scipy.stats", reason="comes with the extra 'workflow'")
    from studies.named_comparisons import NAMED, UNTOUCHED, report

    folder, page = RESULTS / "multi30k_published", text_of("results/README.md")
    stored = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    rows = stored["rows"]
    for bpe, scaffold in zip(rows[::2], rows[1::2], strict=True):
        scores = [each["scores"]["bleu"] for each in (bpe, scaffold)]
        cells = [bpe["test_set"], *(f"{score['mean']:.2f} ± {score['sd']:.2f}" for score in scores)]
        for metric, digits in METRICS.items():
            difference, low, high = (scaffold["tests"][metric][key] for key in ("difference", "low", "high"))
            cells.append(f"{difference:+.{digits}f}, {low:+.{digits}f} to {high:+.{digits}f}")
        assert " | ".join(cells) in page
    with open(folder / "validation.csv", encoding="utf-8") as file:
        validated = [
            (row["system"], row["seed"], int(row["epoch"]), row["bits_per_byte"]) for row in csv.DictReader(file)
        ]

    def mean(epochs: range, *run: str) -> float:
        found = [float(bits) for *of, epoch, bits in validated if epoch in epochs and of[: len(run)] == [*run]]
        return statistics.fmean(found)

    last = [[mean(range(51, 61), system, seed) for seed in "123"] for system in ("scaffold+dropout", "bpe+dropout")]
    welch = stats.ttest_ind(*last, equal_var=False).confidence_interval()
    wanted = f"{statistics.fmean(last[0]) - statistics.fmean(last[1]):+.4f} bits"
    assert wanted in page
    assert f"{welch.low:+.4f} to {welch.high:+.4f}" in page
    named = (folder / "named-comparisons.txt").read_text(encoding="utf-8")
    assert report(NAMED["study_multi30k_en_de"], [folder / "comparison.json"], UNTOUCHED, range(1, 4)) == named
    bleu, bits = primary_rows(named)["scaffold+dropout − bpe+dropout"]
    assert f"{bleu[5]} BLEU on the mean of the three test sets (95 % interval {bleu[6]}, p {bleu[8]})" in page
    assert f"and {bits[5]} bits per byte of the reference ({bits[6]}, p {bits[8]}; more is worse)" in page
    (first, *at_first), (second, *at_second) = re.findall(
        r"(\+0\.\d+) inside, found with (\d+) % \((\d+ to \d+)\)", bleu[10]
    )
    assert f"The paper's {first} and {second} are inside, but at the first step of Holm's correction three" in page
    shown = f"about {at_first[0]} and {at_second[0]} % ({at_first[1]} and {at_second[1]} %)"
    assert f"with probabilities of only {shown}" in page
    assert bleu[7] == bits[7] == "trainings, sentences" and min(float(line[9]) for line in (bleu, bits)) > 0.05
    assert f"with Holm's correction for the two comparisons that were named, p is {bleu[9]} and {bits[9]}" in page
    by_pair = []
    for metric in METRICS:
        for seed in "123":
            scores = [row["scores"][metric]["by_seed"][seed] for row in rows]
            by_pair.append(statistics.fmean(scores[1::2]) - statistics.fmean(scores[::2]))
    told = "has {:+.2f}, {:+.2f} and {:+.2f} BLEU, and {:+.4f}, {:+.4f} and {:+.4f} bits per byte"
    assert told.format(*by_pair) in page
    far = [row["tests"]["bleu"]["difference"] for row in stored["far"][1::2]]
    assert "differences are {:+.2f}, {:+.2f} and {:+.2f} BLEU".format(*far) in page
    assert "({}, {} and {} of the three test sets)".format(*(row["left_out"] for row in stored["far"][1::2])) in page
    with open(folder / "validation-again.csv", encoding="utf-8") as file:
        again = [*csv.DictReader(file)]
    with open(folder / "validation.csv", encoding="utf-8") as file:
        assert again == [
            row for row in csv.DictReader(file) if row["system"] == "scaffold+dropout" and row["seed"] != "1"
        ]
    updates = [training["updates"] for training in stored["trainings"]]
    assert f"({min(updates):,} to {max(updates):,} updates)" in page
    lowercased = [f"{row['scores']['tokenised_bleu_lc']['mean']:.2f}" for row in rows[:2]]
    assert "they have {} and {} BLEU on test_2016_flickr; Wu".format(*lowercased) in page
    assert f"it fell by {mean(range(51, 56)) - mean(range(56, 61)):.3f} bits per byte" in page


def trained_tokens(experiment: str) -> dict[tuple[str, str], list[str]]:
    """Return the rows of a table of ``studies.undertrained``, by tokens and figure."""
    text = (RESULTS / experiment / "undertrained.txt").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")][2:]
    return {(row[0], row[1]): row for row in rows}


def bits_of(found: dict[tuple[str, str], list[str]], tokens: str) -> list[str]:
    """Return the differences in bits with their intervals, of every test set."""
    return [
        f"{row[6]} ({row[7]})" for (of, figure), row in found.items() if of == tokens and figure.startswith("bits:")
    ]


def kinds_of(found: dict[tuple[str, str], list[str]]) -> str:
    """Return how many tokens of a class the test sets have."""
    kinds = [int(row[2].split(" of ")[1]) for (_, figure), row in found.items() if figure.startswith("bits:")]
    return f"not over the {min(kinds)} to {max(kinds)} tokens"


def test_scaffold_tokens_in_translation_are_as_they_were_stored() -> None:
    """Of the published size, for the tokens that are removed, those that replace them, and all three test sets."""
    found, page = trained_tokens("multi30k_published"), text_of("results/README.md")

    def shown(tokens: str, figure: str, between: str = ", ") -> str:
        return f"{found[tokens, figure][6]}{between}{found[tokens, figure][7]}"

    points = shown("removed", "percentile", " points of its percentile (95 % interval ")
    assert f"have {points}) next to others" in page
    assert f"{found['removed', 'percentile'][2]} have such peers" in page
    assert f"(uniformity {shown('removed', 'uniformity')})" in page
    assert "bits per occurrence differ by {}, {} and {} on the three".format(*bits_of(found, "removed")) in page
    replacing = f"the indicator is {shown('new', 'percentile', ' (')}), uniformity {shown('new', 'uniformity', ' (')})"
    assert "{}, and bits are {}, {} and {}".format(replacing, *bits_of(found, "new")) in page
    assert kinds_of(found) in page
    times = [found[tokens, "percentile"][3] for tokens in ("removed", "new")]
    assert "with peers occur {} times in an epoch on average, the new ones {} times".format(*times) in page
    assert {row[8] for row in found.values()} == {"3"}


def test_scaffold_tokens_in_the_small_models_are_as_they_were_stored() -> None:
    """With dropout; the answer at the top has the indicator of all three tables."""
    found, page = trained_tokens("multi30k_dropout"), text_of("results/README.md")

    def shown(tokens: str, figure: str) -> str:
        return f"{found[tokens, figure][6]} ({found[tokens, figure][7]})"

    removed = shown("removed", "percentile").replace("(", "points (95 % interval ")
    assert f"the removed tokens is {removed} from that of others" in page
    assert f"their uniformity {shown('removed', 'uniformity')}; of the tokens" in page
    assert f"that replace them, {shown('new', 'percentile')} and {shown('new', 'uniformity')}." in page
    assert "all three test sets: {}, {} and {}".format(*bits_of(found, "new")) in page
    assert "the removed ones {}, {} and {}".format(*bits_of(found, "removed")) in page
    assert kinds_of(found) in page
    points = {
        experiment: trained_tokens(experiment)["removed", "percentile"][6]
        for experiment in ("lm_german", "multi30k_dropout", "multi30k_published")
    }
    assert f"{points['lm_german']} points in [German" in page
    assert f"{points['multi30k_dropout']} and {points['multi30k_published']}, not significant, in [translation]" in page


@pytest.mark.parametrize("experiment", ["lm_german", "multi30k_published", "multi30k_dropout"])
def test_tables_of_trained_tokens_follow_from_every_training(experiment: str) -> None:
    """Means over the seeds, and the interval of their difference."""
    stats = pytest.importorskip("scipy.stats", reason="comes with the extra 'workflow'")
    with open(RESULTS / experiment / "undertrained.csv", encoding="utf-8") as file:
        each = [*csv.DictReader(file)]
    lines = (RESULTS / experiment / "undertrained.txt").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")][2:]
    assert [*dict.fromkeys((row["tokens"], row["figure"]) for row in each)] == [(row[0], row[1]) for row in rows]
    for row in rows:
        own = [one for one in each if (one["tokens"], one["figure"]) == (row[0], row[1])]
        digits = {"percentile": 1, "uniformity": 3}.get(row[1], 2)
        theirs, peers = ([float(one[name]) for one in own] for name in ("theirs", "peers"))
        differences = [one - other for one, other in zip(theirs, peers, strict=True)]
        margin = stats.t.ppf(0.975, len(own) - 1) * stats.sem(differences)
        values = [statistics.fmean(theirs), statistics.fmean(peers), statistics.fmean(differences)]
        values += [values[2] - margin, values[2] + margin]
        told = [float(value) for value in (*row[4:7], *row[7].split(" to "))]
        assert told == pytest.approx(values, abs=0.5001 * 10**-digits) and int(row[8]) == len(own)
        assert row[2] == f"{int(own[0]['with_peers']):,} of {int(own[0]['of']):,}"


def test_what_dropout_cost_is_said_of_each_system() -> None:
    """Two systems were once one range."""
    text = (RESULTS / "multi30k_en_de" / "one-seed-dropout.txt").read_text(encoding="utf-8")
    behind = {
        system: sorted(map(float, re.findall(rf"{re.escape(system)}\+dropout +[\d.]+ +-([\d.]+)", text)))
        for system in ("bpe", "scaffold")
    }
    shown = {system: f"{each[0]:.1f} to {each[-1]:.1f}" for system, each in behind.items()}
    page = text_of("results/README.md")
    assert (
        f"BPE with dropout is {shown['bpe']} BLEU behind BPE, and Scaffold-BPE with dropout {shown['scaffold']}."
        in page
    )


def test_what_scaffold_tokens_learned_is_what_was_stored() -> None:
    """Whichever way it came out."""
    text = (RESULTS / "lm_german" / "undertrained.txt").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    found = {(row[0], row[1]): row for row in rows}
    page = text_of("results/README.md")

    def shown(tokens: str, figure: str, before: str = "") -> str:
        return f"({before}{found[tokens, figure][6]}, {found[tokens, figure][7]})"

    points = shown("removed", "percentile").replace(", ", " points of its percentile, 95 % interval ", 1)
    assert f"by the indicator of Land and Bartolo 2024 {points}" in page
    assert f"bits per occurrence do not differ significantly {shown('removed', 'bits:documents')}" in page
    assert shown("removed", "uniformity", "uniformity ") in page
    assert (
        f"a little less trained {shown('new', 'percentile')} and cost more bits {shown('new', 'bits:documents')}"
        in page
    )
    assert {row[8] for row in rows[2:]} == {"5"} and "from five new trainings of each system" in page


def test_the_control_has_the_lowest_entropy_and_the_fewest_bits() -> None:
    """Which does not bear out the paper's argument from entropy; also how many bytes its tokens have."""
    text = (RESULTS / "lm_german" / "statistics.txt").read_text(encoding="utf-8")
    measures = {line[:27].strip(): [*map(float, line[27:].replace(",", "").split())] for line in text.splitlines()[2:]}
    entropy, redundancy, size = (
        measures[name] for name in ("entropy H, bits", "redundancy", "bytes per token, no </s>")
    )
    with open(RESULTS / "lm_german" / "comparison.csv", encoding="utf-8") as file:
        bits = {
            (row["group"], row["test_set"], row["system"]): float(row["bits_per_byte_mean"])
            for row in csv.DictReader(file)
        }
    ahead = [bits[(*key[:2], "scaffold")] - bits[(*key[:2], "control")] for key in bits]
    shown = " to ".join(f"{end:.3f}" for end in (min(ahead), max(ahead)))
    assert f"The control is also {shown} ahead of Scaffold-BPE." in text_of("results/README.md")
    fewest = {key[:2]: min(("bpe", "scaffold", "control"), key=lambda system: bits[(*key[:2], system)]) for key in bits}
    assert min(entropy) == entropy[2] and max(redundancy) == redundancy[2] and {*fewest.values()} == {"control"}
    page = text_of("results/README.md")
    assert "The control has the lowest entropy and the highest redundancy, yet the fewest bits per byte." in page
    assert f"it has {100 - 100 * size[2] / size[0]:.0f} % fewer bytes per token" in page


def test_which_differences_of_every_method_are_significant() -> None:
    """Over the sentences of one training each, without resampling."""
    with open(RESULTS / "study_methods" / "comparison.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["baseline"] == "bpe" and row["system"] != "bpe+dropout"]
    differences = [float(row["bleu_difference"]) for row in rows]
    significant = sum(float(row["bleu_p_holm"]) < 0.05 for row in rows)
    page = text_of("results/README.md")
    assert f"within {min(differences):.1f} and +{max(differences):.1f} BLEU of BPE, and {significant} of these" in page
    assert (
        f"{significant} of these {len(rows)} differences are significant over the sentences of one training each"
        in page
    )


def test_the_size_of_the_vocabulary_follows_from_entropy_and_redundancy() -> None:
    """The intersection of both systems' intervals, and what 388 GB are in tokens."""
    figures = {(each.quantity, each.text): each for each in read_paper().figures}
    entropy, redundancy = figures["entropy H, bits", "Pile"], figures["redundancy", "Pile"]

    def interval(of_entropy: float) -> tuple[int, int]:
        ends = []
        for h, r in ((entropy.bpe, redundancy.bpe), (entropy.scaffold, redundancy.scaffold)):
            ends.append([2 ** ((float(h) + sign * of_entropy) / (1 - float(r) - sign * 0.00005)) for sign in (-1, 1)])
        return math.ceil(max(low for low, _ in ends)), math.floor(min(high for _, high in ends))

    page = text_of("paper.md")
    assert "{:,} to {:,} (by the rounding of the redundancy".format(*interval(0)) in page
    assert "{:,} to {:,} with that of the entropy too".format(*interval(0.00005)) in page
    bytes_per_token = float(figures["bytes per token", "Pile"].bpe)
    assert f"are {388 / bytes_per_token:.2f} billion tokens" in page
    assert f"where 388 × 2³⁰ would be {388 * 2**30 / 1e9 / bytes_per_token:.1f} billion" in page
    assert (
        load_experiment(ROOT / "configs" / "lm_468m.yaml").to_dict()["comparisons"]["equal_text"]["text"] == 388 * 10**9
    )
