"""Figures in the text of the results and of the page on fair comparison, from what is stored."""

from __future__ import annotations

import csv
import itertools
import json
import re
from typing import Any

from paths import ROOT

RESULTS = ROOT / "docs" / "results"


def text_of(page: str) -> str:
    """Return a page of docs/ as one line, with minus signs as Python writes them."""
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").replace("\u2212", "-").split())


def rows_of(path: str) -> list[dict[str, str]]:
    with open(RESULTS / path, encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def comparison(name: str) -> Any:
    return json.loads((RESULTS / name / "comparison.json").read_text(encoding="utf-8"))


def test_the_answers_have_the_ranges_of_their_tables() -> None:
    """Language models after equal tokens and equal text; subwords at every N that both methods reach."""
    page = text_of("results/README.md")
    found: dict[str, list[float]] = {"scaffold": [], "control": []}
    for row in rows_of("lm_german/comparison.csv"):
        if row["baseline"]:
            found[row["system"]].append(-float(row["bits_per_byte_difference"]))
            assert (float(row["bits_per_byte_p_holm"]) < 0.05) == (row["system"] == "control")
    scaffold, control = (f"{min(each):.3f} to {max(each):.3f}" for each in found.values())
    assert f"{scaffold} fewer bits per byte, not significant; random tokens {control} fewer, significant" in page
    measured = {(row["text"], row["N"], row["on"], row["method"]): row for row in rows_of("intrinsic/measures.csv")}
    gains: dict[str, list[float]] = {"unseen": [], "other": []}
    for (text, n, part, method), row in measured.items():
        learned = [int(measured[text, n, "train", each]["vocabulary_size"]) for each in ("bpe", "scaffold")]
        if method == "scaffold" and part in gains and min(learned) >= int(n):
            other = int(measured[text, n, part, "bpe"]["tokens"])
            gains[part].append(100 * (int(row["tokens"]) / other - 1))
    same = f"{-max(gains['unseen']):.1f} to {-min(gains['unseen']):.1f} % fewer"
    assert (
        f"{same} on text of the same kind, {-min(gains['other']):.1f} % fewer to {max(gains['other']):.1f} % more"
        in page
    )
    assert f"Scaffold-BPE has {same} subwords than BPE" in page


def test_trainings_on_multi30k_read_the_same_text_in_fewer_subwords() -> None:
    """Also in the page on fair comparison: text, updates, rows, and how many were still improving."""
    page, fair = text_of("results/README.md"), text_of("fair_comparison.md")
    stored = comparison("multi30k_en_de")
    systems = {training["system"]: training for training in stored["trainings"]}
    bpe, scaffold = systems["bpe"], systems["scaffold"]
    assert bpe["text_bytes"] == scaffold["text_bytes"]
    megabytes = f"{bpe['text_bytes'] / 1e6:.1f} MB"
    fewer = 100 * (1 - scaffold["subwords"] / bpe["subwords"])
    assert f"read the same {megabytes} of text as {fewer:.1f} % fewer subwords" in page
    assert f"after {bpe['epochs']} epochs of the same {megabytes}, BPE has made {bpe['updates']:,} updates" in fair
    assert f"and Scaffold-BPE {scaffold['updates']:,} ([table]" in fair
    improving = sum(warning["kind"] == "not-converged" for warning in stored["warnings"])
    assert (improving, len(stored["trainings"])) == (9, 10) and "nine of ten were still improving" in page
    lowercased = [f"{row['scores']['tokenised_bleu_lc']['mean']:.2f}" for row in stored["rows"][:2]]
    assert "they have {} and {} BLEU on test_2016_flickr; the four".format(*lowercased) in page
    rows = [training["dictionary"]["entries"][0] for training in (bpe, scaffold)]
    more = f"{100 * (rows[1] / rows[0] - 1):.1f} %"
    assert f"Scaffold-BPE's models have {more} more rows of embeddings" in page
    assert f"differ by {more} in rows of embeddings" in text_of("../README.md")
    far = {row["test_set"]: row["left_out"] for row in comparison("multi30k_control")["far"]}
    assert "training text: {}, {} and {} of the three test sets".format(*far.values()) in page


def test_power_and_what_half_a_bleu_is_worth() -> None:
    """The smallest differences that five trainings detect on any test set; and the slopes along a training."""
    page = text_of("results/README.md")
    rows = [row["tests"] for row in comparison("multi30k_en_de")["rows"] if row["tests"]]
    ends = []
    for metric, digits in (("bleu", 1), ("reference_bits_per_byte", 3)):
        detected = [tests[metric]["detectable"] for tests in rows]
        ends.append(f"{min(detected):.{digits}f} to {max(detected):.{digits}f}")
    assert "true difference of {} BLEU, or {} bits per byte".format(*ends) in page
    worth = (RESULTS / "multi30k_en_de" / "worth-of-bleu.txt").read_text(encoding="utf-8")
    found = {
        name: re.search(rf"^{name} +([+-]\S+)", worth, re.MULTILINE)
        for name in ("chrF", "bits per byte of the reference")
    }
    chrf, bits = (float(match[1]) for match in found.values() if match)
    assert f"with {chrf:.2f} more chrF and {-bits:.4f} fewer bits per byte" in page


def test_the_german_table_is_the_stored_one() -> None:
    """Means, differences, intervals and p of both systems in every row."""
    page = text_of("results/README.md")
    names = {"documents": "documents", "descriptions": "descriptions", "typos": "descriptions with typos"}
    rows = {(row["group"], row["test_set"], row["system"]): row for row in rows_of("lm_german/comparison.csv")}
    assert len(rows) == 18
    for (group, test, system), bpe in rows.items():
        if system != "bpe":
            continue
        cells = [names[test], f"{float(bpe['bits_per_byte_mean']):.4f} ± {float(bpe['bits_per_byte_sd']):.4f}"]
        for other in ("scaffold", "control"):
            row = rows[group, test, other]
            difference, low, high = (float(row[f"bits_per_byte_{name}"]) for name in ("difference", "low", "high"))
            p = float(row["bits_per_byte_p_holm"])
            cells += [f"{difference:+.4f}, {low:+.4f} to {high:+.4f}", "< 0.001" if p < 0.001 else f"{p:.3f}"]
        assert f"| {' | '.join(cells)} |" in page


def test_the_finding_on_mdn_is_in_its_table() -> None:
    """Differences, bits, more text and more parameters."""
    page = text_of("results/README.md")
    bits = {row["system"]: float(row["bits_per_byte_mean"]) for row in rows_of("lm_mdn/comparison.csv")}
    trainings = {each["system"]: each for each in comparison("lm_mdn")["trainings"]}
    assert f"needs {bits['bpe_4k'] - bits['scaffold_4k']:.4f} fewer bits per byte of German" in page
    assert (
        f"({bits['scaffold_4k']:.4f} against {bits['bpe_4k']:.4f}), and {bits['bpe_8k'] - bits['scaffold_8k']:.4f}"
        in page
    )
    more = [
        100 * (trainings[f"scaffold_{size}"]["text_bytes"] / trainings[f"bpe_{size}"]["text_bytes"] - 1)
        for size in ("4k", "8k")
    ]
    assert "read {:.1f} % more text at 4,000 tokens and {:.1f} % more at 8,000".format(*more) in page
    parameters = [trainings[f"bpe_{size}"]["parameters"] for size in ("4k", "8k")]
    gained = f"to 8,000 tokens gains {bits['bpe_4k'] - bits['bpe_8k']:.4f}"
    assert (
        f"{gained}, six times as much, with {100 * (parameters[1] / parameters[0] - 1):.0f} % more parameters" in page
    )
    assert 5.5 < (bits["bpe_4k"] - bits["bpe_8k"]) / (bits["bpe_4k"] - bits["scaffold_4k"]) < 6.5


def test_single_trainings_are_quoted_with_their_p() -> None:
    """Those of study_methods that would be significant over sentences, in both directions."""
    page = text_of("results/README.md")
    rows = {(row["system"], row["test_set"]): row for row in rows_of("study_methods/comparison.csv")}

    def quoted(system: str) -> str:
        shown = []
        for test in ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"):
            row = rows[system, test]
            p = float(row["bleu_p_holm"])
            shown.append(f"{float(row['bleu_difference']):+.2f}" + (f" (X{p:.3f})" if p < 0.05 else ""))
        return "{}, {} and {}".format(*shown)

    assert f"Scaffold-BPE has {quoted('scaffold')} BLEU".replace("X", "p with Holm's correction ") in page
    assert f"against BPE with dropout, {quoted('scaffold+dropout')}.".replace("X", "") in page


def test_the_largest_jump_between_neighbouring_sizes() -> None:
    """Of one system on test_2016_flickr; and the model with most repetitions."""
    page = text_of("results/README.md")
    rows = rows_of("multi30k_vocabulary/comparison.csv")
    bleu = {row["system"]: float(row["bleu_mean"]) for row in rows if row["test_set"] == "test_2016_flickr"}
    sizes = sorted({int(name.rpartition("-")[2]) for name in bleu})
    jumps = [
        abs(bleu[f"{system}-{small}"] - bleu[f"{system}-{large}"])
        for system in ("bpe", "scaffold")
        for small, large in itertools.pairwise(sizes)
    ]
    assert f"jumps of up to {max(jumps):.1f} between neighbouring sizes" in page
    stats = json.loads((RESULTS / "multi30k_vocabulary" / "statistics.json").read_text(encoding="utf-8"))["stats"]
    sized = {each["codes"]: each["bytes_per_token"] for each in stats}
    more = [100 * (sized[f"scaffold-{size}"] / sized[f"bpe-{size}"] - 1) for size in sizes]
    assert f"Scaffold-BPE has {min(more):.1f} to {max(more):.1f} % more bytes per token" in page
    repeating = {
        int(row["repeating"])
        for row in rows_of("multi30k_vocabulary/output.csv")
        if (row["system"], row["test_set"], row["beam"]) == ("scaffold-8000", "test_2016_flickr", "1")
    }
    assert f"{max(repeating)} of 1,000 translations of Scaffold-BPE at 8,000 tokens repeat" in page


def test_a_limit_of_the_dictionary_costs_what_was_counted() -> None:
    """On German text, with and without dropout."""
    fair, paper = text_of("fair_comparison.md"), text_of("paper.md")
    entries = {
        (row["system"], row["dictionary"]): int(row["entries"])
        for row in rows_of("dictionaries/dictionaries.csv")
        if row["text"] == "mdn.de"
    }
    limit = "at most 32,768"
    dropout = entries["bpe + dropout", limit], entries["scaffold + dropout", limit]
    assert "BPE has {:,} rows there and Scaffold-BPE {:,}".format(*dropout) in fair
    whole, cut = entries["scaffold", "all"], entries["scaffold", limit]
    assert f"{whole - cut:,} of {whole:,} entries, and BPE none" in paper
    assert entries["bpe", "all"] == entries["bpe", limit]
