"""Fits LightGBM to the rows that lightgbm_test.go makes, and records what it predicts.

    go test ./simulator/predict/boost -run LightGBM -rows /tmp/rows.csv
    pip install lightgbm==4.7.0 numpy==2.4.6
    python simulator/predict/boost/testdata/record.py /tmp/rows.csv > simulator/predict/boost/testdata/lightgbm.json
"""

import json
import sys

import lightgbm
import numpy

TRAIN, SHOWN = 2000, 200
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]
PARAMETERS = {
    "objective": "quantile",
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "max_bin": 255,
    "learning_rate": 0.1,
    "lambda_l2": 0.0,
    "bagging_fraction": 1.0,
    "feature_fraction": 1.0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
TREES = 100

rows = numpy.loadtxt(sys.argv[1], delimiter=",")
x, y = rows[:, :-1], rows[:, -1]
losses, predictions = [], []
for level in LEVELS:
    model = lightgbm.train({**PARAMETERS, "alpha": level}, lightgbm.Dataset(x[:TRAIN], y[:TRAIN]), TREES)
    p = model.predict(x[TRAIN:])
    d = y[TRAIN:] - p
    losses.append(float(numpy.mean(numpy.maximum(level * d, (level - 1) * d))))
    predictions.append([round(float(v), 6) for v in p[:SHOWN]])
json.dump(
    {
        "version": f"lightgbm {lightgbm.__version__}, numpy {numpy.__version__}",
        "parameters": {**PARAMETERS, "num_iterations": TREES},
        "levels": LEVELS,
        "losses": losses,
        "predictions": predictions,
    },
    sys.stdout,
)
print()
