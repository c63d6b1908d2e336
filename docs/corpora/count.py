"""Count words in datatrove: docs/corpora.md."""

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader

from mt_scaffold.integrations.datatrove import WordCounter
from mt_scaffold.integrations.documents import WordCounting

if __name__ == "__main__":
    LocalPipelineExecutor(
        [JsonlReader("shards"), WordCounter("counts", WordCounting(pretokenise="gpt2"))],
        tasks=4,
        logging_dir="logs/counts",
    ).run()
