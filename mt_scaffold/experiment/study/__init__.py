"""The intrinsic study: every method at every size on every text, measured without training a model.

docs/results/intrinsic defines the measures and has the results.
"""

from mt_scaffold.experiment.study.running import study as study
