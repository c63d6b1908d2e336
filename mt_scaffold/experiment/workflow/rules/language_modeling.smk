# The rules of language modelling: from documents to word counts, and from models to bits per byte.

from mt_scaffold.experiment.tasks import language_modeling

SHARDS = experiment.prepare.shards


# Only documents that are generated, cut or joined are written; other files are read in place.
if layout.written_parts:
    rule get_documents:
        output: [layout.documents(part) for part in layout.written_parts], layout.documents_record
        params: depends_on=staleness.depends_on(layout, "get-documents")
        log: layout.log("get-documents")
        shell: "{STEP} get-documents {CONFIG} > {log:q} 2>&1"


scattergather: words=SHARDS


rule count_words:
    input: lambda wildcards: language_modeling.shard(layout, wildcards.scatteritem)
    output: temp(layout.counted("{scatteritem}"))
    params: depends_on=staleness.depends_on(layout, "count-words")
    log: layout.log("count-words-{scatteritem}")
    threads: CORES if SHARDS == 1 else 1
    shell: "{STEP} count-words {CONFIG} --shard {wildcards.scatteritem} --num-workers {threads} > {log:q} 2>&1"


rule gather_counts:
    input: gather.words(str(layout.counted("{scatteritem}")))
    output: layout.counts
    log: layout.log("gather-counts")
    shell: "{STEP} gather-counts {CONFIG} > {log:q} 2>&1"


rule evaluate:
    input:
        lambda wildcards: layout.binarised_test_of(wildcards.system, wildcards.test),
        layout.averaged(RUN),
        layout.counts,
    output: layout.scores(RUN, "{test}"), layout.losses(RUN, "{test}")
    params: run=run_flags, depends_on=staleness.depends_on(layout, "evaluate")
    log: layout.log(f"evaluate-{RUN.name}-{{test}}")
    priority: 1
    threads: SHARE
    resources: gpu=0
    shell:
        "{STEP} evaluate {CONFIG} {params.run} --test-set {wildcards.test:q} --gpus {resources.gpu} > {log:q} 2>&1"


# The scores of a model on all tasks of lm-evaluation-harness, which also name the tasks whose data cannot be loaded.
rule evaluate_tasks:
    input:
        lambda wildcards: layout.binarised_of(wildcards.system),
        layout.averaged(RUN),
        layout.task_files,
    output: layout.task_scores(RUN)
    params: run=run_flags, depends_on=staleness.depends_on(layout, "evaluate-tasks")
    log: layout.log(f"evaluate-tasks-{RUN.name}")
    threads: SHARE
    resources: gpu=0
    shell: "{STEP} evaluate-tasks {CONFIG} {params.run} --gpus {resources.gpu} > {log:q} 2>&1"


rule compare_tasks:
    input: shown.every_run(shown.task_scores), shown.every_run(shown.training_record), codes.records(shown)
    output: [layout.task_comparison(kind) for kind in COMPARISON_KINDS]
    params: depends_on=staleness.depends_on(shown, "compare-tasks"), systems=SHOWN
    log: layout.log("compare-tasks")
    shell: "{STEP} compare-tasks {CONFIG} {params.systems} > {log:q} 2>&1"


rule report:
    input:
        [layout.comparison("json"), layout.statistics, layout.figures],
        [layout.codes(layout.segmentation_of(system)) for system in shown.config.systems],
        shown.every_run(shown.training_record),
        layout.task_comparison("json") if experiment.tasks is not None else [],
    output: layout.report
    log: layout.log("report")
    shell: "{STEP} report {CONFIG} > {log:q} 2>&1"
