"""Words → subwords or ids, and back: with learned codes, by each kind of inference, with resampling."""
