"""Items with awkward texts for every built-in task of `braid eval`, and the harness's prompts of them.

    PYTHON built_in_tasks.py FOLDER    # writes NAME.jsonl and NAME.plain.jsonl for each task, prints {NAME: units}

NAME.plain.jsonl has what the harness scores, a line for each request: {"context", "target"}, or {"text"}; units: what
`wikitext` divides by, [words, bytes]; null for a task that generates.
"""
import json
import os
import random
import sys

import lm_eval.tasks
from lm_eval.tasks import TaskManager

ROOT = os.path.dirname(lm_eval.tasks.__file__)
SUBJECT = "high_school_us_history"
FILES = {"arc": "arc/arc_easy", "boolq": "super_glue/boolq/default", "gsm8k": "gsm8k/gsm8k", "hellaswag": "hellaswag/hellaswag",
         "lambada": "lambada/lambada_openai", "mmlu": f"mmlu/default/mmlu_{SUBJECT}", "openbookqa": "openbookqa/openbookqa",
         "piqa": "piqa/piqa", "sciq": "sciq/sciq", "wikitext": "wikitext/wikitext", "winogrande": "winogrande/default"}
PIECES = ["the", "fox", "ÉTÉ", "ß", "ﬁn", "ΣΑΣ", "東京", "İl", "\u00a0", "\u3000", "\x1c", "\u0085", "\n", "\r\n", "\t", "  ", " ",
          " [title]", "[step]", "[a\nb]", "]", "[", " @-@ ", " @,@ ", " @.@ ", " , ", " . ", " ; ", " : ", " ! ", " ? ", "( ", " )",
          "{ ", " }", "\" ", " \"", "' ", " '", "s '", " 's", "/' 5/", "= = ", " = = =", " ° ", " N ", " \n", "\n ", "\\", "|", "{x}"]


def items(name, draw):
    def text():
        return " ".join(draw.choice(PIECES) for _ in range(draw.randint(1, 4))) + draw.choice(["", ".", " ", "x"])

    def texts(n):
        return ["a" + text() for _ in range(n)]

    letters = ["A", "B", "C", "D"]
    forms = {
        "arc": lambda: {"question": text(), "choices": {"text": texts(4), "label": letters}, "answerKey": draw.choice(letters)},
        "boolq": lambda: {"passage": text(), "question": text(), "label": draw.randint(0, 1)},
        "gsm8k": lambda: {"question": text(), "answer": "a" + text() + "\n#### 1,200"},
        "hellaswag": lambda: {"activity_label": text(), "ctx_a": text(), "ctx_b": text(), "endings": texts(4), "label": "2"},
        "lambada": lambda: {"text": text()},
        "mmlu": lambda: {"question": text(), "subject": SUBJECT, "choices": texts(4), "answer": draw.randint(0, 3)},
        "openbookqa": lambda: {"question_stem": text(), "choices": {"text": texts(4), "label": letters},
                               "answerKey": " " + draw.choice(letters)},
        "piqa": lambda: {"goal": text(), "sol1": "a" + text(), "sol2": "b" + text(), "label": draw.randint(0, 1)},
        "sciq": lambda: {"support": text(), "question": text(), "distractor1": "a" + text(), "distractor2": "b" + text(),
                         "distractor3": "c" + text(), "correct_answer": "d" + text()},
        "wikitext": lambda: {"page": "a" + "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 40)))},
        "winogrande": lambda: {"sentence": text() + "_" + text() + "x", "option1": text(), "option2": text(), "answer": "1"},
    }
    return [forms[name]() for _ in range(60)]


def write_lines(path, lines):
    with open(path, "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)


def main():
    folder, units = sys.argv[1], {}
    draw = random.Random(3)
    for name, file in FILES.items():
        write_lines(f"{folder}/{name}.jsonl", items(name, draw))
        with open(f"{folder}/{name}.yaml", "w") as out:
            json.dump({"include": f"{ROOT}/{file}.yaml", "task": f"braid_{name}", "dataset_path": "json", "dataset_name": None,
                       "dataset_kwargs": {"data_files": {"test": f"{folder}/{name}.jsonl"}}, "training_split": None,
                       "validation_split": None, "fewshot_split": None, "test_split": "test"}, out)
    tasks = TaskManager(include_path=folder, include_defaults=False).load([f"braid_{name}" for name in FILES])["tasks"]
    for name in FILES:
        task, plain, sums = tasks[f"braid_{name}"], [], [0, 0]
        for doc in task.test_docs():
            made = task.construct_requests(doc, task.fewshot_context(doc, 0), metadata=(name, 0, 1), doc_id=0)
            requests = [request.args for request in (made if isinstance(made, list) else [made])]
            if name == "wikitext":
                plain.append({"text": requests[0][0]})
                counted = task.process_results(doc, [0.0])
                sums[0] += counted["word_perplexity"][1]
                sums[1] += counted["byte_perplexity"][1]
            elif name == "gsm8k":
                [(context, options)] = requests
                with open(os.path.join(os.path.dirname(__file__), "../../configs/eval/gsm8k.toml")) as file:
                    assert f"stop = {json.dumps(options['until'])}\n" in file.read(), options
                plain.append({"context": context, "target": doc["answer"]})
            else:
                plain += [{"context": context, "target": target} for context, target in requests]
        units[name] = None if name == "gsm8k" else sums
        write_lines(f"{folder}/{name}.plain.jsonl", plain)
    print(json.dumps(units))


main()
