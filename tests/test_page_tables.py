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
    assert "and {} with typos ({})".format(*others[3]) in page
    assert f"on the other two test sets ({tens[1][0]} and {tens[2][0]})" in page
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
    rows = [[cell.strip() for cell in line.split("|")] for line in stored.splitlines()]
    bleu, bits = (row for row in rows if row[1:3] == ["mean of 3 (primary)", "scaffold − bpe"])
    page = text_of("results/README.md")
    assert (
        f"Scaffold-BPE has {bleu[5]} BLEU there (95 % interval {bleu[6]}) and {bits[5]} bits per byte ({bits[6]})"
        in page
    )
    (first, at_first), (second, at_second) = re.findall(r"(\+0\.\d+) inside, found with (\d+) %", bleu[9])
    assert f"The paper's {first} and {second} are inside; five trainings would have found true differences" in page
    ends = re.findall(r"found with \d+ % \((\d+ to \d+)\)", bleu[9])
    assert f"with probabilities of about {at_first} and {at_second} %" in page
    assert f"of so few trainings: {ends[0]} and {ends[1]} %" in page
    people = re.findall(r"people agree in (\d+) %", bleu[9])
    assert (
        f"differ by 0.45 BLEU, they prefer the one with more in {people[0]} % of pairs, at 0.61 BLEU in {people[1]} %"
        in page
    )
    assert f"At +0.61 BLEU, [people prefer](docs/results/README.md) the higher score in {people[1]} %" in text_of(
        "../README.md"
    )
    bleu, bits = (row for row in rows if row[1:3] == ["mean of 3 (primary)", "control − bpe"])
    assert f"that measure: {bleu[5]} BLEU ({bleu[6]}) and {bits[5]} bits per byte ({bits[6]})" in page
    ahead = next(row for row in rows if row[1:3] == ["mean of 3 (primary)", "scaffold − control"])
    assert f"Scaffold-BPE is {ahead[5]} BLEU ({ahead[6]}) ahead of it" in page
    assert {row[8] for row in (bleu, bits, ahead)} == {"under 0.001"}
    assert "All of this is significant (p with Holm's correction under 0.001)" in page
    bpe, control = (json.loads((each / "comparison.json").read_text("utf-8"))["trainings"][0] for each in folders[:2])
    assert f"into {100 * control['subwords'] / bpe['subwords'] - 100:.1f} % more subwords than BPE" in page
    assert f"({control['updates']:,} instead of {bpe['updates']:,})" in page


def test_the_pilot_fixed_the_epochs_by_the_rule() -> None:
    """Of the configuration, which was written before; and the scores of the pilot are those that were stored."""
    with open(RESULTS / "multi30k_dropout" / "validation-loss.csv", encoding="utf-8") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    means = {epoch: sum(losses[epoch - 4 : epoch]) / 4 for epoch in range(4, len(losses) + 1)}
    found = [
        epoch
        for epoch in range(5, 65, 5)
        if all(means[epoch] - means[later] < 0.01 for later in range(epoch + 1, len(losses) + 1))
    ]
    assert len(losses) == 60 == found[0]
    rule = (ROOT / "configs" / "multi30k_en_de.yaml").read_text(encoding="utf-8")
    assert "The pilot has\n#   shown: 60." in rule
    page = text_of("results/README.md")
    assert f"had still not stopped falling (by {means[55] - means[60]:.3f} in the last five epochs" in page
    rows = json.loads((RESULTS / "multi30k_dropout" / "comparison.json").read_text(encoding="utf-8"))["rows"]
    first, second, third, typos = (f"{row['scores']['bleu']['by_seed']['1']:.2f}" for row in rows[::2])
    assert f"It has {first}, {second} and {third} BLEU on the three test sets and {typos} with typos" in page
    untouched = [row["scores"] for row in rows if not row["test_set"].endswith("_typos")]
    gains = []
    for seed in "12":
        for metric in METRICS:
            scores = [each[metric]["by_seed"][seed] for each in untouched]
            gains.append(statistics.fmean(scores[1::2]) - statistics.fmean(scores[::2]))
    told = "{:+.2f} BLEU and {:+.4f} bits per byte in the pair of seed 1, {:+.2f} and {:+.4f} in that of seed 2."
    assert "On the primary measure, Scaffold-BPE has " + told.format(*gains) in page
    assert all(row["tests"][metric]["p"] is None for row in rows[1::2] for metric in METRICS)


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
    lines = [[cell.strip() for cell in line.split("|")] for line in named.splitlines()]
    bleu, bits = (line for line in lines if line[1:2] == ["mean of 3 (primary)"])
    assert f"{bleu[5]} BLEU on the mean of the three test sets (95 % interval {bleu[6]})" in page
    assert f"and {bits[5]} bits per byte of the reference ({bits[6]}, more is worse)" in page
    (first, at_first), (second, at_second) = re.findall(r"(\+0\.\d+) inside, found with (\d+) %", bleu[9])
    assert f"The paper's {first} and {second} are inside, but three trainings would have found" in page
    assert f"with probabilities of only about {at_first} and {at_second} %" in page
    assert min(float(line[8]) for line in (bleu, bits)) > 0.05
    pair = [row["scores"]["bleu"]["by_seed"]["1"] for row in rows]
    gain = statistics.fmean(pair[1::2]) - statistics.fmean(pair[::2])
    assert f"had {gain:+.2f} BLEU on the primary measure" in page
    updates = [training["updates"] for training in stored["trainings"]]
    assert f"({min(updates):,} to {max(updates):,} updates)" in page
    lowercased = [f"{row['scores']['tokenised_bleu_lc']['mean']:.2f}" for row in rows[:2]]
    assert "they have {} and {} BLEU on test_2016_flickr; Wu".format(*lowercased) in page
    assert f"fell by {mean(range(51, 56)) - mean(range(56, 61)):.3f} bits per byte" in page


def test_scaffold_tokens_in_translation_are_as_they_were_stored() -> None:
    """Of the published size, for the tokens that are removed, those that replace them, and all three test sets."""
    text = (RESULTS / "multi30k_published" / "undertrained.txt").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    found = {(row[0], row[1]): row for row in rows}
    page = text_of("results/README.md")

    def shown(tokens: str, figure: str, between: str = ", ") -> str:
        return f"{found[tokens, figure][6]}{between}{found[tokens, figure][7]}"

    points = shown("removed", "percentile", " points of its percentile, 95 % interval ")
    assert f"({points}), and less clustered (uniformity {shown('removed', 'uniformity')})" in page
    assert f"({shown('new', 'percentile')}; {shown('new', 'uniformity')})" in page
    bits = [row[6] for row in rows if row[:2] == ["removed", "bits"]]
    assert "differ in no one direction: {}, {} and {} on the three test sets".format(*bits) in page
    times = [found[tokens, "percentile"][3] for tokens in ("removed", "new")]
    assert "occur {} times in an epoch, the new ones {} times".format(*times) in page
    assert {row[8] for row in rows if row[0] in ("removed", "new")} == {"3"}


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
    assert f"bits per occurrence do not differ significantly {shown('removed', 'bits')}" in page
    assert shown("removed", "uniformity", "uniformity ") in page
    assert f"a little less trained {shown('new', 'percentile')} and cost more bits {shown('new', 'bits')}" in page
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
