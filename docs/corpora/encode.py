"""Encode in datatrove: docs/corpora.md."""

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizerMerger

from mt_scaffold.integrations.datatrove import CodesTokenizer
from mt_scaffold.integrations.documents import DocumentEncoder

if __name__ == "__main__":
    encoder = DocumentEncoder("codes", append="<|endoftext|>")
    LocalPipelineExecutor(
        [JsonlReader("shards"), CodesTokenizer("ids", encoder, shuffle_documents=False)],
        tasks=4,
        logging_dir="logs/ids",
    ).run()
    LocalPipelineExecutor(
        [DocumentTokenizerMerger("ids", "merged", "train", shuffle=False)], logging_dir="logs/merged"
    ).run()
