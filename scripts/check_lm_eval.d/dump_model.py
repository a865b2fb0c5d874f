"""The harness on logits of `braid dump`: no server, no scoring of Braid. Started by scripts/check_lm_eval.

    PYTHON dump_model.py BRAID MODEL FOLDER TASK,TASK LONGEST    # prints {task: {metric: value}}

LONGEST: most tokens of a sequence. Tokens are those of `braid tokenize`, log-probabilities are made here from all logits.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from lm_eval import simple_evaluate
from lm_eval.api.model import TemplateLM
from lm_eval.tasks import TaskManager
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window


def read_tensor(path, name):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begin = file.tell() + header[name]["data_offsets"][0]
        count = int(np.prod(header[name]["shape"]))
        return np.fromfile(path, "<f4", count, offset=begin).reshape(header[name]["shape"])


class DumpModel(TemplateLM):
    backend = "causal"

    def __init__(self, braid, model, longest, scratch):
        super().__init__()
        self.braid, self.model, self.longest, self.scratch = braid, model, longest, scratch
        self.known = {}
        self.end = self.tok_encode("<|endoftext|>")[0]

    def call(self, *arguments):
        done = subprocess.run([self.braid, *arguments], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{arguments}: {done.stderr}")

    @property
    def eot_token_id(self):
        return self.end

    def tok_encode(self, string, add_special_tokens=False, **_):
        if string not in self.known:
            with open(f"{self.scratch}/in.jsonl", "w") as file:
                file.write(json.dumps({"t": string}) + "\n")
            self.call("tokenize", self.model, "--jsonl", f"{self.scratch}/in.jsonl", f"{self.scratch}/out.jsonl")
            self.known[string] = json.load(open(f"{self.scratch}/out.jsonl"))["ids"]
        return self.known[string]

    def score(self, context, continuation):
        ids = (context + continuation)[-self.longest:]
        out = f"{self.scratch}/dump.safetensors"
        if os.path.exists(out):
            os.remove(out)
        self.call("dump", self.model, "--ids", ",".join(map(str, ids)), "--dtype", "f32", "-o", out)
        rows = read_tensor(out, "logits")[0].astype(np.float64)[-len(continuation) - 1:-1]
        largest = rows.max(axis=1)
        own = rows[np.arange(len(continuation)), continuation]
        logprobs = own - largest - np.log(np.exp(rows - largest[:, None]).sum(axis=1))
        return float(logprobs.sum()), bool((own == largest).all())

    def _loglikelihood_tokens(self, requests, disable_tqdm=False, **_):
        return [self.score(context, continuation) for _, context, continuation in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return [sum(self.score(*make_disjoint_window(window))[0]
                    for window in get_rolling_token_windows(self.tok_encode(request.args[0]), self.end, self.longest - 1, 1))
                for request in requests]

    def generate_until(self, requests, disable_tqdm=False):
        raise NotImplementedError("no task here generates")


def main():
    braid, model, folder, tasks, longest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        results = simple_evaluate(model=DumpModel(braid, model, int(longest), scratch), tasks=tasks.split(","),
                                  task_manager=TaskManager(include_path=folder, include_defaults=False), bootstrap_iters=0)
    print(json.dumps({task: {key.split(",")[0]: float(value) for key, value in values.items()
                             if isinstance(value, (int, float)) and "stderr" not in key}
                      for task, values in results["results"].items()}))


main()
