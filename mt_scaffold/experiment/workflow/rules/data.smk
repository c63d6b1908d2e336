# Raw text → words: fetched, tokenised, cleaned.


scattergather: words=CHUNKS


rule get_data:
    output:
        [text(layout.raw("train", lang)) for lang in LANGUAGES],
        [layout.raw("valid", lang) for lang in LANGUAGES if "valid" in steps.raw_parts(experiment)],
        report=layout.step_report("get-data"),
    params: depends_on=layout.depends_on("get_data")
    log: layout.log("get-data")
    shell:
        "{MT} get-data --config {CONFIG} --parts train valid --output-dir {OUT:q}/raw {CACHE} "
        "--report {output.report:q} > {log:q} 2>&1"


# A rule of its own, so that a test set can be added at any time. It looks for its sentences in the training text, which
# is not an input because it may be gone by then.
rule get_test_set:
    input: layout.step_report("get-data")
    output:
        [layout.raw("{test}", lang) for lang in LANGUAGES],
        report=layout.step_report("get-data-{test}"),
    params: depends_on=lambda wildcards: layout.depends_on("get_data", wildcards.test)
    log: layout.log("get-data-{test}")
    shell:
        "{MT} get-data --config {CONFIG} --parts {wildcards.test:q} --output-dir {OUT:q}/raw {CACHE} "
        "--report {output.report:q} > {log:q} 2>&1"


# The slowest step for a large corpus, so it is split into prepare.chunks jobs, each reading its own part of the file.
rule tokenise_chunk:
    input: layout.raw("train", "{lang}")
    output:
        temp(layout.chunk("{lang}", "{scatteritem}")),
        report=temp(layout.chunk("{lang}", "{scatteritem}", "json")),
    params: flags=steps.tokenise_flags(experiment, "train")
    log: layout.log("tokenise-train.{lang}.{scatteritem}")
    threads: HALF if CHUNKS == 1 else 1
    shell:
        "{MT} tokenise --language {wildcards.lang} {params.flags} --num-workers {threads} "
        "--chunk {wildcards.scatteritem} "
        "--input {input:q} --output {output[0]:q} --report {output.report:q} > {log:q} 2>&1"


rule gather_words:
    input:
        chunks=gather.words(str(layout.chunk("{{lang}}", "{scatteritem}"))),
        reports=gather.words(str(layout.chunk("{{lang}}", "{scatteritem}", "json"))),
    output:
        temp(layout.uncleaned("train", "{lang}")),
        report=layout.step_report("tokenise-train.{lang}"),
    run: or_one_line(steps.gather_training_text, input.chunks, input.reports, output[0], output.report)


# Test sets are never cleaned: every sentence is translated and scored.
rule tokenise_test:
    input: layout.raw("{test}", "{lang}")
    output:
        layout.words("{test}", "{lang}"),
        report=layout.step_report("tokenise-{test}.{lang}"),
    params: flags=lambda wildcards: steps.tokenise_flags(experiment, wildcards.test)
    log: layout.log("tokenise-{test}.{lang}")
    shell:
        "{MT} tokenise --language {wildcards.lang} {params.flags} "
        "--input {input:q} --output {output[0]:q} --report {output.report:q} > {log:q} 2>&1"


use rule tokenise_test as tokenise_valid with:
    input: layout.raw("valid", "{lang}")
    output:
        temp(layout.uncleaned("valid", "{lang}")),
        report=layout.step_report("tokenise-valid.{lang}"),
    params: flags=steps.tokenise_flags(experiment, "valid")
    log: layout.log("tokenise-valid.{lang}")


# With data.valid_every, the validation set comes out of train here.
CLEANED = "{trained_on}" if experiment.data.valid_every is None else "train"

rule clean:
    input: source=layout.uncleaned(CLEANED, SRC), target=layout.uncleaned(CLEANED, TGT)
    output:
        source=layout.words(CLEANED, SRC),
        target=layout.words(CLEANED, TGT),
        held_out=steps.held_out(layout),
        report=layout.step_report(f"clean-{CLEANED}"),
    params: **vars(experiment.clean), hold_out=steps.hold_out_flags(layout)
    log: layout.log(f"clean-{CLEANED}")
    shell:
        "{MT} clean --source {input.source:q} --target {input.target:q} "
        "--output-source {output.source:q} --output-target {output.target:q} "
        "--min-tokens {params.min_tokens} --max-tokens {params.max_tokens} --max-ratio {params.max_ratio} "
        "{params.hold_out} --report {output.report:q} > {log:q} 2>&1"


rule report_data:
    input: steps.data_reports(layout)
    output: layout.data_report
    run: or_one_line(steps.write_data_report, layout)
