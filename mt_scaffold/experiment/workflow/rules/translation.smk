# Translation: from raw parallel text to the comparison of its systems.


SRC, TGT = LANGUAGES = layout.languages
TESTS = experiment.test_sets
SEGMENTATIONS = experiment.segmentations
CHUNKS = experiment.prepare.chunks


def text(path):
    """Mark a file that only the next steps need as temporary, unless prepare.keep_text is set."""
    return path if experiment.prepare.keep_text else temp(path)


wildcard_constraints:
    system=steps.one_of(SYSTEMS),
    seed=r"\d+",
    test=steps.one_of(TESTS),
    part=steps.one_of(layout.parts),
    trained_on=steps.one_of(TRAINED_ON),
    lang=steps.one_of(LANGUAGES),
    codes=steps.one_of(steps.made_codes(experiment)),
    segmentation=steps.one_of(SEGMENTATIONS),
    checkpoint=r"last-\d+",


include: "data.smk"
include: "segmentation.smk"
include: "training.smk"
include: "results.smk"
