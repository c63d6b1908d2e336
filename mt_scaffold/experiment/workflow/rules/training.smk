# Data folders → checkpoints → averaged models → translations; once for each system and seed.


# A profile sets the resources for one or more nodes with GPUs; see configs/profiles.
# The checkpoints are not a declared output, because Snakemake would delete them when the training is stopped.
rule train:
    input: lambda wildcards: layout.binarised_of(wildcards.system)
    output: layout.training_report("{system}", "{seed}")
    params:
        depends_on=lambda wildcards: layout.depends_on("train", wildcards.system),
        dropout=lambda wildcards: steps.dropout_options(experiment, wildcards.system),
        gpus=lambda wildcards, resources: steps.gpus_per_node(resources.gpu, resources.nodes),
        folder=str(layout.training("{system}", "{seed}")),
    log: layout.log("train-{system}-{seed}")
    threads: steps.training_threads(experiment, CORES)
    resources: gpu=0, nodes=1, launcher="fairseq"
    shell:
        "{MT} train --config {CONFIG} --system {wildcards.system:q} --data {input:q} --output {params.folder:q} "
        "--seed {wildcards.seed} --launcher {resources.launcher:q} --nodes {resources.nodes} --gpus {params.gpus} "
        "{params.dropout} > {log:q} 2>&1 || {REQUEUE}"


rule average:
    input: layout.training_report("{system}", "{seed}")
    output: layout.averaged("{system}", "{seed}")
    params: which=steps.average_flags(experiment), folder=str(layout.checkpoints("{system}", "{seed}"))
    log: layout.log("average-{system}-{seed}")
    shell:
        "{MT} average --checkpoints {params.folder:q} {params.which} --output {output:q} > {log:q} 2>&1"


rule thin:
    input:
        layout.averaged("{system}", "{seed}"),
        [layout.checkpoint("{system}", "{seed}", checkpoint) for checkpoint in layout.last_checkpoints],
    output: layout.thinned("{system}", "{seed}")
    params: folder=str(layout.checkpoints("{system}", "{seed}"))
    log: layout.log("thin-{system}-{seed}")
    shell: "{MT} strip-optimizer --checkpoints {params.folder:q} > {output:q} 2> {log:q}"


rule translate:
    input:
        data=lambda wildcards: layout.binarised_test(layout.segmentation_of(wildcards.system), wildcards.test),
        model=layout.averaged("{system}", "{seed}"),
        words=layout.words("{test}", SRC),
    output:
        text=layout.translation("{system}", "{seed}", "{test}"),
        words=layout.translation("{system}", "{seed}", "{test}", "words"),
        subwords=layout.translation("{system}", "{seed}", "{test}", "subwords"),
        source=layout.translated_source("{system}", "{seed}", "{test}"),
    params:
        depends_on=layout.depends_on("translate"),
        folder=str(layout.training("{system}", "{seed}", "translations")),
    log: layout.log("translate-{system}-{seed}-{test}")
    threads: steps.training_threads(experiment, CORES)
    resources: gpu=0
    shell:
        "{MT} translate --config {CONFIG} --data {input.data:q} --subset {wildcards.test:q} --model {input.model:q} "
        "--source-words {input.words:q} --seed {wildcards.seed} --gpus {resources.gpu} --output {params.folder:q} "
        "> {log:q} 2>&1"


# One of the last checkpoints by itself, for score.last_checkpoints. It is kept: made again for a new test set, it would
# be newer than its translations of the others.
use rule average as take_checkpoint with:
    output: layout.checkpoint("{system}", "{seed}", "{checkpoint}")
    params:
        which=lambda wildcards: steps.checkpoint_flags(experiment, wildcards.checkpoint),
        folder=str(layout.checkpoints("{system}", "{seed}")),
    log: layout.log("take-checkpoint-{system}-{seed}-{checkpoint}")


use rule translate as translate_checkpoint with:
    input:
        data=rules.translate.input.data,
        model=layout.checkpoint("{system}", "{seed}", "{checkpoint}"),
        words=layout.words("{test}", SRC),
    output:
        text=layout.translation("{system}", "{seed}", "{test}", "", "{checkpoint}"),
        words=layout.translation("{system}", "{seed}", "{test}", "words", "{checkpoint}"),
        subwords=layout.translation("{system}", "{seed}", "{test}", "subwords", "{checkpoint}"),
        source=layout.translated_source("{system}", "{seed}", "{test}", "{checkpoint}"),
    params:
        depends_on=layout.depends_on("translate"),
        folder=str(layout.training("{system}", "{seed}", "translations") / "{checkpoint}"),
    log: layout.log("translate-{system}-{seed}-{test}-{checkpoint}")
