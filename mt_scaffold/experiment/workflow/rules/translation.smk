# The rules of translation: from raw parallel text to words and dictionaries, and from models to scores and the report.

from mt_scaffold.experiment.tasks import translation
from mt_scaffold.methods import Unigram

SRC, TGT = LANGUAGES = layout.languages
CACHE = f"--cache {shlex.quote(str(cache))}" if cache else ""


wildcard_constraints:
    trained_on=common_steps.one_of(TRAINED_ON),
    lang=common_steps.one_of(LANGUAGES),


# -- raw text → words: fetched, tokenised, cleaned


rule get_data:
    output:
        [layout.raw("train", lang) for lang in LANGUAGES],
        [layout.raw("valid", lang) for lang in LANGUAGES if "valid" in translation.raw_parts(experiment)],
        layout.step_record("get-data"),
    params: depends_on=staleness.depends_on(layout, "get-data"), test=""
    log: layout.log("get-data")
    shell: "{STEP} get-data {CONFIG} {params.test} {CACHE} > {log:q} 2>&1"


# A separate rule, so that a test set can be added at any time. It looks for the set's sentences in the training text,
# which is not an input, so that a new test set does not wait for it.
use rule get_data as get_test_set with:
    input: layout.step_record("get-data")
    output:
        [layout.raw("{test}", lang) for lang in LANGUAGES],
        layout.step_record("get-data-{test}"),
    params: depends_on=lambda wildcards: staleness.depends_on(layout, "get-data", wildcards.test), test="--test-set {test}"
    log: layout.log("get-data-{test}")


# The slowest step for a large corpus.
rule tokenise:
    input: layout.raw("{trained_on}", "{lang}")
    output: temp(layout.uncleaned("{trained_on}", "{lang}")), layout.step_record("tokenise-{trained_on}.{lang}")
    params:
        depends_on=lambda wildcards: staleness.depends_on(layout, "tokenise", wildcards.trained_on),
        part="{trained_on}",
    log: layout.log("tokenise-{trained_on}.{lang}")
    threads: HALF
    shell:
        "{STEP} tokenise {CONFIG} --part {params.part:q} --language {wildcards.lang} --num-workers {threads} "
        "> {log:q} 2>&1"


# Test sets are never cleaned: every sentence is translated and scored.
use rule tokenise as tokenise_test with:
    input: layout.raw("{test}", "{lang}")
    output: layout.words("{test}", "{lang}"), layout.step_record("tokenise-{test}.{lang}")
    params: depends_on=lambda wildcards: staleness.depends_on(layout, "tokenise", wildcards.test), part="{test}"
    log: layout.log("tokenise-{test}.{lang}")
    threads: 1


# With data.valid_every, cleaning train also writes the validation set.
CLEANED = "{trained_on}" if experiment.data.valid_every is None else "train"

rule clean:
    input: [layout.uncleaned(CLEANED, lang) for lang in LANGUAGES]
    output:
        [layout.words(CLEANED, lang) for lang in LANGUAGES],
        translation.held_out(layout),
        layout.step_record(f"clean-{CLEANED}"),
    params: depends_on=staleness.depends_on(layout, "clean"), part=CLEANED
    log: layout.log(f"clean-{CLEANED}")
    shell: "{STEP} clean {CONFIG} --part {params.part} > {log:q} 2>&1"


rule report_data:
    input: translation.data_records(layout)
    output: layout.data_record
    log: layout.log("report-data")
    shell: "{STEP} report-data {CONFIG} > {log:q} 2>&1"


# -- words and codes → dictionaries; learning codes and binarising data are common to all tasks


# For models that are not codes files, which have another suffix.
use rule learn as learn_model with:
    output:
        layout.model(f"{{codes,{common_steps.one_of(codes.learned_codes(experiment, Unigram.suffix))}}}", Unigram.suffix),
        layout.step_record(f"learn-{{codes,{common_steps.one_of(codes.learned_codes(experiment, Unigram.suffix))}}}"),


# For a vocabulary threshold: the frequencies of the subwords in the training text of one language.
rule vocabulary:
    input:
        layout.words("train", "{lang}"),
        lambda wildcards: translation.codes_of_side(layout, wildcards.segmentation, wildcards.lang),
    output: layout.vocabulary("{segmentation}", "{lang}")
    log: layout.log("vocabulary-{segmentation}.{lang}")
    threads: HALF
    shell:
        "{STEP} vocabulary {CONFIG} --segmentation {wildcards.segmentation:q} --language {wildcards.lang} "
        "--num-workers {threads} > {log:q} 2>&1"


rule dictionary:
    input:
        [layout.words("train", lang) for lang in LANGUAGES],
        lambda wildcards: translation.segmented_with(layout, layout.segmentation_behind(wildcards.data), *LANGUAGES),
    output: [layout.dictionary("{data}", lang) for lang in LANGUAGES]
    params: depends_on=staleness.depends_on(layout, "dictionary")
    log: layout.log("dictionary-{data}")
    threads: HALF
    shell: "{STEP} dictionary {CONFIG} --data {wildcards.data:q} --num-workers {threads} > {log:q} 2>&1"


# -- models → translations → scores → the HTML report


rule translate:
    input:
        lambda wildcards: layout.binarised_test_of(wildcards.system, wildcards.test),
        layout.averaged(RUN),
        layout.words("{test}", SRC),
    output:
        [layout.translation(RUN, "{test}", form) for form in ("", "words", "subwords")],
        layout.translated_source(RUN, "{test}"),
    params: run=run_flags, depends_on=staleness.depends_on(layout, "translate")
    log: layout.log(f"translate-{RUN.name}-{{test}}")
    priority: 1
    threads: SHARE
    resources: gpu=0
    shell:
        "{STEP} translate {CONFIG} {params.run} --test-set {wildcards.test:q} --gpus {resources.gpu} > {log:q} 2>&1"


rule score:
    input:
        [layout.translation(RUN, "{test}", form) for form in ("", "words")],
        layout.words("{test}", TGT),
        [layout.raw("{test}", lang) for lang in LANGUAGES],
    output: layout.scores(RUN, "{test}")
    params: run=run_flags, depends_on=lambda wildcards: staleness.depends_on(layout, "score", wildcards.test)
    log: layout.log(f"score-{RUN.name}-{{test}}")
    priority: 1
    shell: "{STEP} score {CONFIG} {params.run} --test-set {wildcards.test:q} > {log:q} 2>&1"


rule losses:
    input:
        lambda wildcards: layout.binarised_test_of(wildcards.system, wildcards.test),
        layout.averaged(RUN),
        layout.words("{test}", TGT),
        layout.raw("{test}", TGT),
        layout.words("train", TGT),
    output: layout.losses(RUN, "{test}")
    params: run=run_flags
    log: layout.log(f"losses-{RUN.name}-{{test}}")
    priority: LAST
    threads: SHARE
    resources: gpu=0
    shell:
        "{STEP} losses {CONFIG} {params.run} --test-set {wildcards.test:q} --gpus {resources.gpu} > {log:q} 2>&1"


rule report:
    input:
        [layout.comparison("json"), layout.data_record, layout.statistics, layout.figures],
        [layout.codes(name) for name in shown.config.all_codes],
        [layout.words(TESTS[0], SRC), layout.raw(TESTS[0], SRC), layout.raw(TESTS[0], TGT)],
        shown.every_run(shown.translation, TESTS[:1]),
        shown.every_run(shown.training_record),
    output: layout.report
    log: layout.log("report")
    shell: "{STEP} report {CONFIG} > {log:q} 2>&1"


rule compare_with_losses:
    input: shown.every_run(shown.losses, TESTS), layout.comparison("json"), layout.report
    output: touch(layout.compared_with_losses)
    params: depends_on=staleness.depends_on(shown, "compare"), systems=SHOWN
    log: layout.log("compare-with-losses")
    priority: LAST
    shell: "{STEP} compare-with-losses {CONFIG} {params.systems} > {log:q} 2>&1"
