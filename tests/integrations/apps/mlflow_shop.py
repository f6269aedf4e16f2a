"""A shop's assistant that is traced into MLflow: `mlflow_shop.py EXPERIMENT COUNT`. Prints the traces' ids."""

import os
import sys

import mlflow
from mlflow.entities import Document, SpanType

experiment, count = sys.argv[1], int(sys.argv[2])
mlflow.set_tracking_uri(os.environ["SERVER"])
mlflow.set_experiment(experiment)


@mlflow.trace(span_type=SpanType.RETRIEVER)
def search(query):
    text = "parcels leave our warehouse before noon"
    return [Document(page_content=text, metadata={"doc_uri": "handbook", "score": 0.75}, id="handbook")]


@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def model(messages):
    number = int(messages[-1]["content"].split()[3])
    text = "parcels leave our warehouse before noon" if number % 2 else f"bananas are yellow {number}"
    return {"id": "r", "model": "small-1", "choices": [{"message": {"role": "assistant", "content": text}}]}


@mlflow.trace
def ask(question):
    search(question)
    system = {"role": "system", "content": "Answer from the handbook."}
    return model([system, {"role": "user", "content": question}])["choices"][0]["message"]["content"]


for n in range(count):
    ask(f"When does parcel {n} leave?")
    print(mlflow.get_last_active_trace_id())
mlflow.flush_trace_async_logging()
