"""Words → fairseq's data folders: segmentation, dictionaries, ids."""
