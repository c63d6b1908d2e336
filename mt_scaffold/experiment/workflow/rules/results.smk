# Translations → scores → comparison, statistics and the HTML report.


rule score:
    input:
        hypothesis=rules.translate.output.text,
        hypothesis_words=rules.translate.output.words,
        reference=layout.raw("{test}", TGT),
        reference_words=layout.words("{test}", TGT),
        source=layout.raw("{test}", SRC),
    output: layout.scores("{system}", "{seed}", "{test}")
    params: depends_on=layout.depends_on("score"), checkpoint=""
    log: layout.log("score-{system}-{seed}-{test}")
    shell:
        "{MT} score --config {CONFIG} --system {wildcards.system:q} --seed {wildcards.seed} "
        "--test-set {wildcards.test:q} --hypothesis {input.hypothesis:q} --reference {input.reference:q} "
        "--hypothesis-words {input.hypothesis_words:q} --reference-words {input.reference_words:q} "
        "--source {input.source:q} {params.checkpoint} --output {output:q} > {log:q} 2>&1"


use rule score as score_checkpoint with:
    input:
        hypothesis=rules.translate_checkpoint.output.text,
        hypothesis_words=rules.translate_checkpoint.output.words,
        reference=layout.raw("{test}", TGT),
        reference_words=layout.words("{test}", TGT),
        source=layout.raw("{test}", SRC),
    output: layout.scores("{system}", "{seed}", "{test}", "{checkpoint}")
    params: depends_on=layout.depends_on("score"), checkpoint="--checkpoint {checkpoint}"
    log: layout.log("score-{system}-{seed}-{test}-{checkpoint}")


rule compare:
    input: scores=layout.every_scores(), trainings=layout.every_run(layout.training_report)
    output: [layout.comparison(kind) for kind in COMPARISON_KINDS]
    params:
        samples=experiment.score.bootstrap_samples,
        title=f"{experiment.name}: {experiment.description}".removesuffix(": "),
        trainings=steps.trainings(layout),
        depends_on=layout.depends_on("compare"),
    log: layout.log("compare")
    shell:
        "{MT} compare {input.scores:q} --config {CONFIG} --samples {params.samples} --title {params.title:q} "
        "--trainings {params.trainings:q} --output {OUT:q}/comparison > {log:q} 2>&1"


# Words and codes are enough, so this is there before the first training.
rule compression:
    input:
        words=[layout.words("train", lang) for lang in LANGUAGES],
        codes=[layout.codes(codes) for codes in steps.papers_codes(experiment).values()],
    output: layout.compression
    run: or_one_line(steps.write_compression, layout)


rule statistics:
    input:
        words=[layout.words("train", lang) for lang in LANGUAGES],
        codes=[layout.codes(codes) for codes in experiment.all_codes],
        references=[layout.raw(test, TGT) for test in TESTS],
        translations=layout.every_run(layout.translation, TESTS),
        trainings=layout.every_run(layout.training_report),
        models=[layout.averaged(system, experiment.seeds[0]) for system in SYSTEMS],
        dictionaries=[layout.dictionary(name, SRC) for name in SEGMENTATIONS],
    output: layout.statistics, directory(layout.figures)
    params: depends_on=layout.depends_on("statistics")
    log: layout.log("statistics")
    shell:
        "{MT} statistics {OUT:q} > {log:q} 2>&1"


rule report:
    input:
        [layout.comparison("json"), layout.data_report, layout.statistics, layout.figures],
        codes=[layout.codes(codes) for codes in experiment.all_codes],
        sources=[layout.words(TESTS[0], SRC), layout.raw(TESTS[0], SRC), layout.raw(TESTS[0], TGT)],
        translations=layout.every_run(layout.translation, TESTS[:1]),
        trainings=layout.every_run(layout.training_report),
    output: layout.report
    log: layout.log("report")
    shell:
        "{MT} report {OUT:q} --output {output:q} > {log:q} 2>&1"
