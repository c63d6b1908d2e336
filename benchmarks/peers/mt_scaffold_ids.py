"""mt_scaffold: a text, or its lines in one call."""

from ids_program import THREADS, main

from mt_scaffold import BPE

if __name__ == "__main__":
    main(
        lambda model, text: BPE(model).encode_batch([text], num_workers=THREADS)[0],
        lambda model, lines: [BPE(model).encode_batch(lines, num_workers=THREADS)[0]],
        lambda model, ids: BPE(model).decode_bytes(ids),
    )
