# Language models: from documents to bits per byte; once for each system, comparison and seed.


TESTS = experiment.test_sets
CODES = experiment.all_codes
SHARDS = experiment.prepare.shards
DATA = list(dict.fromkeys(map(layout.binarised_of, SYSTEMS)))


wildcard_constraints:
    system=steps.one_of(SYSTEMS),
    comparison=steps.one_of(experiment.comparisons),
    seed=r"\d+",
    test=steps.one_of(TESTS),
    codes=steps.one_of(steps.made_codes(experiment)),


# Only what is generated, or taken out of the training documents: other files are read where they are.
if layout.written_parts:
    rule get_documents:
        output: [layout.documents(part) for part in layout.written_parts], layout.documents_report
        params: depends_on=layout.depends_on("documents")
        log: layout.log("get-documents")
        shell: "{MT} get-documents {OUT:q} > {log:q} 2>&1"


scattergather: words=SHARDS


rule count_words:
    input: lambda wildcards: steps.shard(layout, wildcards.scatteritem)
    output: temp(layout.counted("{scatteritem}"))
    params: flags=steps.word_flags(experiment), read=steps.read_flags(layout), memory=steps.memory_flags(experiment)
    log: layout.log("count-words-{scatteritem}")
    threads: CORES if SHARDS == 1 else 1
    shell:
        "{MT} count-words --input {input:q} {params.read} {params.flags} {params.memory} --num-workers {threads} "
        "--output {output:q} > {log:q} 2>&1"


rule gather_counts:
    input: gather.words(str(layout.counted("{scatteritem}")))
    output: layout.counts
    params: memory=steps.memory_flags(experiment)
    log: layout.log("gather-counts")
    shell: "{MT} count-words --merge {input:q} {params.memory} --output {output:q} > {log:q} 2>&1"


rule learn:
    input: layout.counts
    output: layout.codes(f"{{codes,{steps.one_of(steps.learned_codes(experiment))}}}")
    params: flags=lambda wildcards: steps.learn_flags(experiment, wildcards.codes), words=steps.word_flags(experiment)
    log: layout.log("learn-{codes}")
    threads: HALF
    shell:
        "{MT} learn-bpe --counts {input:q} {params.words} {params.flags} --num-workers {threads} --output {output:q} "
        "> {log:q} 2>&1"


# Vocabulary trimming: rare tokens of BPE codes become scaffold.
rule mark:
    input: codes=lambda wildcards: layout.codes(steps.untrimmed_codes(experiment, wildcards.codes)), counts=layout.counts
    output: layout.codes(f"{{codes,{steps.one_of(steps.trimmed_codes(experiment))}}}")
    params: flags=lambda wildcards: steps.mark_flags(experiment, wildcards.codes)
    log: layout.log("mark-{codes}")
    threads: HALF
    shell: "{MT} trim {input.codes:q} {params.flags} --counts {input.counts:q} --output {output:q} > {log:q} 2>&1"


rule copy_codes:
    input: lambda wildcards: CODES[wildcards.codes].file
    output: layout.codes(f"{{codes,{steps.one_of(steps.given_codes(experiment))}}}")
    run: or_one_line(steps.copy_codes, input[0], output[0])


rule binarise_documents:
    input: [layout.files(part) for part in steps.TRAINED_ON], codes=layout.codes("{codes}")
    output: directory(layout.binarised("{codes}"))
    params:
        texts=steps.text_flags(layout, *steps.TRAINED_ON),
        padding=experiment.binarise.padding_factor,
        text="",
    log: layout.log("binarise-{codes}")
    threads: HALF
    shell:
        "{MT} binarise-documents --codes {input.codes:q} {params.texts} {params.text} "
        "--padding-factor {params.padding} --output {output:q} --num-workers {threads} > {log:q} 2>&1"


use rule binarise_documents as binarise_text with:
    output: directory(layout.binarised("{codes}", text=True))
    params:
        texts=rules.binarise_documents.params.texts,
        padding=rules.binarise_documents.params.padding,
        text="--words",
    log: layout.log("binarise-text-{codes}")


use rule binarise_documents as binarise_test_set with:
    input: lambda wildcards: layout.files(wildcards.test), codes=layout.codes("{codes}")
    output: directory(layout.binarised_test("{codes}", "{test}"))
    params:
        texts=lambda wildcards: steps.text_flags(layout, wildcards.test),
        padding=rules.binarise_documents.params.padding,
        text="",
    log: layout.log("binarise-{codes}-{test}")


# A profile sets the resources for one or more nodes with GPUs; see configs/profiles. The checkpoints are not a declared
# output, because Snakemake would delete them when the training is stopped.
rule train:
    input:
        data=lambda wildcards: layout.binarised_of(wildcards.system),
        baseline=lambda wildcards: steps.trained_after(layout, *wildcards),
    output: layout.training_report("{system}", "{comparison}", "{seed}")
    params:
        depends_on=lambda wildcards: layout.depends_on("train", wildcards.system, wildcards.comparison),
        flags=lambda wildcards: steps.training_flags(layout, *wildcards),
        dropout=lambda wildcards: steps.dropout_flags(experiment, wildcards.system),
        gpus=lambda wildcards, resources: steps.gpus_per_node(resources.gpu, resources.nodes),
        folder=str(layout.training("{system}", "{comparison}", "{seed}")),
    log: layout.log("train-{system}-{comparison}-{seed}")
    threads: steps.training_threads(experiment, CORES)
    resources: gpu=0, nodes=1, launcher="fairseq"
    shell:
        "{MT} train --config {CONFIG} {params.flags} --data {input.data:q} --output {params.folder:q} "
        "--seed {wildcards.seed} --launcher {resources.launcher:q} --nodes {resources.nodes} --gpus {params.gpus} "
        "{params.dropout} > {log:q} 2>&1 || {REQUEUE}"


rule average:
    input: layout.training_report("{system}", "{comparison}", "{seed}")
    output: layout.averaged("{system}", "{comparison}", "{seed}")
    params: which=steps.average_flags(experiment), folder=str(layout.checkpoints("{system}", "{comparison}", "{seed}"))
    log: layout.log("average-{system}-{comparison}-{seed}")
    shell: "{MT} average --checkpoints {params.folder:q} {params.which} --output {output:q} > {log:q} 2>&1"


rule thin:
    input: layout.averaged("{system}", "{comparison}", "{seed}")
    output: layout.thinned("{system}", "{comparison}", "{seed}")
    params: folder=str(layout.checkpoints("{system}", "{comparison}", "{seed}"))
    log: layout.log("thin-{system}-{comparison}-{seed}")
    shell: "{MT} strip-optimizer --checkpoints {params.folder:q} > {output:q} 2> {log:q}"


rule evaluate:
    input:
        data=lambda wildcards: layout.binarised_test(experiment.codes_of(wildcards.system).name, wildcards.test),
        model=layout.averaged("{system}", "{comparison}", "{seed}"),
    output: layout.scores("{system}", "{comparison}", "{seed}", "{test}")
    params: flags=steps.evaluate_flags(experiment)
    log: layout.log("evaluate-{system}-{comparison}-{seed}-{test}")
    threads: steps.training_threads(experiment, CORES)
    resources: gpu=0
    shell:
        "{MT} evaluate --checkpoint {input.model:q} --data {input.data:q} --split test --system {wildcards.system:q} "
        "--test-set {wildcards.test:q} --seed {wildcards.seed} --gpus {resources.gpu} {params.flags} "
        "--output {output:q} > {log:q} 2>&1"


rule prompts:
    output: layout.prompts
    params: prompts=experiment.samples.prompts
    run: or_one_line(steps.write_prompts, experiment, output[0])


rule sample:
    input:
        data=lambda wildcards: layout.binarised_of(wildcards.system),
        model=layout.averaged("{system}", "{comparison}", "{seed}"),
        prompts=layout.prompts,
    output: layout.samples("{system}", "{comparison}", "{seed}")
    params: flags=steps.sample_flags(experiment)
    log: layout.log("sample-{system}-{comparison}-{seed}")
    threads: steps.training_threads(experiment, CORES)
    resources: gpu=0
    shell:
        "{MT} sample --checkpoint {input.model:q} --data {input.data:q} --prompts {input.prompts:q} {params.flags} "
        "--gpus {resources.gpu} --output {output:q} > {log:q} 2>&1"


rule compare_models:
    input:
        scores=layout.every_run(layout.scores, TESTS),
        trainings=layout.every_run(layout.training_report),
    output: [layout.comparison(kind) for kind in COMPARISON_KINDS]
    params:
        flags=steps.compare_flags(layout),
        title=f"{experiment.name}: {experiment.description}".removesuffix(": "),
    log: layout.log("compare")
    shell:
        "{MT} compare-models {params.flags} --title {params.title:q} --output {OUT:q}/comparison > {log:q} 2>&1"


rule statistics:
    input: DATA
    output: layout.statistics, layout.vocabulary_table, directory(layout.figures)
    log: layout.log("statistics")
    shell: "{MT} statistics {OUT:q} > {log:q} 2>&1"
