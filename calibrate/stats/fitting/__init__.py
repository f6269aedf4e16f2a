"""Models fitted to labelled scores: ridge logistic, smoothed curves, probability maps, prevalence, baselines."""
