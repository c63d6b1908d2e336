"""Words → subwords or ids, and back: with learned codes, with resampling."""
