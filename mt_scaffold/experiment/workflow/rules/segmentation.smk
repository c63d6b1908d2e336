# Words → codes → dictionaries → fairseq's data folders; shared by all systems that segment alike.


rule learn:
    input:
        words=lambda wildcards: steps.learned_from(layout, wildcards.codes),
        development=lambda wildcards: steps.compared_on(layout, wildcards.codes),
    output: layout.codes(f"{{codes,{steps.one_of(steps.learned_codes(experiment))}}}")
    params:
        flags=lambda wildcards: steps.learn_flags(experiment, wildcards.codes),
        development=lambda wildcards, input: shlex.join(["--dev", *input.development] if input.development else []),
    log: layout.log("learn-{codes}")
    threads: HALF
    shell:
        "{MT} learn-bpe {params.flags} {params.development} --num-workers {threads} --input {input.words:q} "
        "--output {output:q} > {log:q} 2>&1"


# Unigram, by SentencePiece, from the same words.
rule learn_unigram:
    input: lambda wildcards: steps.learned_from(layout, wildcards.codes)
    output: layout.unigram_model(f"{{codes,{steps.one_of(steps.unigram_models(experiment))}}}")
    params: flags=lambda wildcards: steps.learn_flags(experiment, wildcards.codes)
    log: layout.log("learn-{codes}")
    threads: HALF
    shell:
        "{MT} learn-unigram {params.flags} --num-workers {threads} --input {input:q} --output {output:q} > {log:q} 2>&1"


# Vocabulary trimming: rare tokens of BPE codes become scaffold.
rule mark:
    input:
        codes=lambda wildcards: layout.codes(steps.untrimmed_codes(experiment, wildcards.codes)),
        words=lambda wildcards: steps.learned_from(layout, wildcards.codes),
    output: layout.codes(f"{{codes,{steps.one_of(steps.trimmed_codes(experiment))}}}")
    params: flags=lambda wildcards: steps.mark_flags(experiment, wildcards.codes)
    log: layout.log("mark-{codes}")
    threads: HALF
    shell:
        "{MT} trim {input.codes:q} {params.flags} --num-workers {threads} --input {input.words:q} --output {output:q} "
        "> {log:q} 2>&1"


rule copy_codes:
    input: lambda wildcards: experiment.all_codes[wildcards.codes].file
    output: layout.codes(f"{{codes,{steps.one_of(steps.given_codes(experiment))}}}")
    run: or_one_line(steps.copy_codes, input[0], output[0])


# For a vocabulary threshold: the frequencies of the subwords in the training text of one language.
rule vocabulary:
    input:
        words=layout.words("train", "{lang}"),
        codes=lambda wildcards: steps.codes_of_side(layout, wildcards.segmentation, wildcards.lang),
    output: layout.vocabulary("{segmentation}", "{lang}")
    log: layout.log("vocabulary-{segmentation}.{lang}")
    threads: HALF
    shell:
        "({MT} apply-bpe --codes {input.codes:q} --num-workers {threads} --input {input.words:q} "
        "| {MT} get-vocab --output {output:q}) > {log:q} 2>&1"


# The subwords as text, for people.
rule segment:
    input:
        words=layout.words("{part}", "{lang}"),
        segmentation=lambda wildcards: steps.segmented_with(layout, wildcards.segmentation, wildcards.lang),
    output: layout.subwords("{segmentation}", "{part}", "{lang}")
    params:
        command=lambda wildcards: steps.apply_command(layout, wildcards.segmentation),
        flags=lambda wildcards: steps.apply_flags(layout, wildcards.segmentation, wildcards.lang),
    log: layout.log("segment-{segmentation}-{part}.{lang}")
    threads: HALF
    shell:
        "{MT} {params.command} {params.flags} --num-workers {threads} --input {input.words:q} --output {output:q} "
        "> {log:q} 2>&1"


rule dictionary:
    input:
        words=[layout.words("train", lang) for lang in LANGUAGES],
        segmentation=lambda wildcards: steps.segmented_with(layout, wildcards.segmentation, *LANGUAGES),
    output: [layout.dictionary("{segmentation}", lang) for lang in LANGUAGES]
    params:
        train=str(layout.words_prefix("train")),
        flags=lambda wildcards: steps.segmentation_flags(layout, wildcards.segmentation),
        limits=lambda wildcards: steps.dictionary_flags(experiment, wildcards.segmentation),
        folder=lambda wildcards: str(layout.dictionaries(wildcards.segmentation)),
    log: layout.log("dictionary-{segmentation}")
    threads: HALF
    shell:
        "{MT} dictionary --source-lang {SRC} --target-lang {TGT} --train {params.train:q} {params.flags} {params.limits} "
        "--output {params.folder:q} --num-workers {threads} > {log:q} 2>&1"


rule binarise:
    input:
        words=[layout.words(part, lang) for part in TRAINED_ON for lang in LANGUAGES],
        segmentation=lambda wildcards: steps.segmented_with(layout, wildcards.segmentation, *LANGUAGES),
        dictionaries=[layout.dictionary("{segmentation}", lang) for lang in LANGUAGES],
    output: directory(layout.binarised("{segmentation}"))
    params:
        command="binarise",
        texts="--train {} --valid {}".format(*(shlex.quote(str(layout.words_prefix(part))) for part in TRAINED_ON)),
        flags=lambda wildcards: steps.segmentation_flags(layout, wildcards.segmentation),
        dictionaries=lambda wildcards: str(layout.dictionaries(wildcards.segmentation)),
    log: layout.log("binarise-{segmentation}")
    threads: HALF
    shell:
        "{MT} {params.command} --source-lang {SRC} --target-lang {TGT} {params.texts} {params.flags} "
        "--dictionaries {params.dictionaries:q} --output {output:q} --num-workers {threads} > {log:q} 2>&1"


use rule binarise as binarise_words with:
    output: directory(layout.binarised("{segmentation}", words=True))
    params:
        command="binarise-words",
        texts=rules.binarise.params.texts,
        flags=rules.binarise.params.flags,
        dictionaries=rules.binarise.params.dictionaries,
    log: layout.log("binarise-words-{segmentation}")


use rule binarise as binarise_test_set with:
    input:
        words=[layout.words("{test}", lang) for lang in LANGUAGES],
        segmentation=rules.binarise.input.segmentation,
        dictionaries=rules.binarise.input.dictionaries,
    output: directory(layout.binarised_test("{segmentation}", "{test}"))
    params:
        command="binarise",
        texts=lambda wildcards: f"--test {shlex.quote(str(layout.words_prefix(wildcards.test)))}",
        flags=rules.binarise.params.flags,
        dictionaries=rules.binarise.params.dictionaries,
    log: layout.log("binarise-{segmentation}-{test}")
