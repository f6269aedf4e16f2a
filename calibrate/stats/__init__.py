"""The statistics of a threshold: arrays and dataclasses in and out. No file, network, clock or global random state.

Higher means more suspicious in here; `calibrate.orientation` turns scores where they enter.

- `sweep`: precision, recall, false-positive rate and flag rate at every threshold, and the design of the labels.
- `intervals`: how well each of these is known.
- `fitting`: ridge logistic, smoothed curves, probability maps, folds, prevalence, baselines.
- `choosing`: policies, and the point that one chooses.
- `certification`: exact tests on labels drawn after the cuts were fixed.
- `ensembles`: several detectors as one decision, judged out of fold.
- `sampling`: designs, allocation and sample size.
- `labels`: agreement, likely errors, and what errors would do to figures.
- `monitoring`: drift without labels, sequential tests with labels.
"""
