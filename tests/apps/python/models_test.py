#!/usr/bin/env python3
"""Models and runs in Python: a small model is trained, stopped, resumed, read and asked. The numbers are checked against
what ops of the module make of the model's own parts."""
import concurrent.futures
import math
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import braid

STEPS = 40
WORDS = "the fox sees the hen and the hen sees the fox . the owl sleeps while the fox sees the moon . "
SETTINGS = {"model.dim": 32, "model.n_layer": 2, "model.n_head": 4, "model.block_size": 64, "train.steps": STEPS,
            "train.batch_size": 4, "optimizer.lr": 0.02, "schedule.warmup": 4, "eval.interval": 20, "log.interval": 1000,
            "checkpoint.best": True,
            "run.device": "cpu", "run.threads": 2}


def settings(out, **more):
    return SETTINGS | {"data.path": str(FOLDER / "data"), "run.out": str(FOLDER / out)} | more


def weights(run):
    (file,) = (run.folder / f"step-{STEPS:08d}").glob("model*.safetensors")
    return file.read_bytes()


def setUpModule():
    global SCRATCH, FOLDER, RUN, ROWS
    SCRATCH = tempfile.TemporaryDirectory()
    FOLDER = pathlib.Path(SCRATCH.name)
    (FOLDER / "text.txt").write_text(WORDS * 60)
    facts = braid.prepare([FOLDER / "text.txt"], FOLDER / "data")
    assert (facts["vocab_size"], facts["train_tokens"] > 4000) == (258, True), facts
    ROWS = []
    RUN = braid.train("", settings("run"), on_step=ROWS.append)


def tearDownModule():
    SCRATCH.cleanup()


class Runs(unittest.TestCase):
    def test_each_step_is_seen(self):
        self.assertEqual([row["step"] for row in ROWS], list(range(1, STEPS + 1)))
        self.assertLess(ROWS[-1]["loss"], 0.7 * ROWS[0]["loss"])

    def test_the_log_as_columns(self):
        self.assertEqual(RUN.log["step"], list(range(1, STEPS + 1)))
        self.assertEqual(RUN.log["loss"], [row["loss"] for row in ROWS])
        steps, losses = RUN.curve("val_loss")
        self.assertEqual(steps, [20, 40])
        self.assertEqual(losses, [row["val_loss"] for row in ROWS if "val_loss" in row])
        self.assertEqual(RUN.curve("val_top1"), ([], []))

    def test_settings_state_and_chart(self):
        self.assertEqual(RUN.config["train"]["steps"], STEPS)
        self.assertEqual(RUN.status["state"], "finished")
        self.assertTrue(RUN._repr_svg_().startswith("<svg"))
        self.assertIn("40 steps", repr(RUN))

    def test_stopped_by_the_caller_and_resumed_it_has_the_same_weights(self):
        stopped = braid.train("", settings("resumed"), on_step=lambda row: row["step"] < 7)
        self.assertEqual((stopped.log["step"][-1], stopped.status["state"]), (7, "stopped"))
        resumed = braid.train("", settings("resumed"))
        self.assertEqual(weights(resumed), weights(RUN))
        self.assertEqual(resumed.log["loss"], RUN.log["loss"])

    def test_an_exception_of_the_callback_comes_after_saving(self):
        def fails(row):
            if row["step"] == 5:
                raise KeyError("five")

        with self.assertRaisesRegex(KeyError, "five"):
            braid.train("", settings("fails"), on_step=fails)
        self.assertEqual(weights(braid.train(FOLDER / "fails")), weights(RUN))

    def test_ctrl_c_saves(self):
        code = ("import braid, sys\ntry:\n  braid.train('', eval(sys.argv[1]), "
                "on_step=lambda row: print('step', row['step'], flush=True))\n"
                "except KeyboardInterrupt as e:\n  print('interrupted:', e, flush=True)\n")
        with subprocess.Popen([sys.executable, "-c", code, repr(settings("signal", **{"train.steps": 100000}))],
                              stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("step 3"):
                    process.send_signal(signal.SIGINT)
                    break
            rest = process.stdout.read()
        self.assertEqual(process.returncode, 0, rest)
        self.assertIn("interrupted: the state is saved; the same call resumes the run", rest)
        self.assertEqual(weights(braid.train("", settings("signal"))), weights(RUN))

    def test_what_is_wrong_has_its_class(self):
        with self.assertRaisesRegex(braid.SettingError, "optimizer.lr"):
            braid.train("", settings("bad", **{"optimizer.lr": -1}))
        with self.assertRaisesRegex(braid.SettingError, "did you mean|unknown"):
            braid.train("", settings("bad", **{"optimizer.rate": 1}))
        with self.assertRaises(braid.InputError):
            braid.train(FOLDER / "missing.toml")
        with self.assertRaisesRegex(braid.InputError, "no run folder"):
            braid.Run(FOLDER / "data")
        with self.assertRaises(braid.Error):
            braid.load(FOLDER / "data")

    def test_tables_of_a_study(self):
        report = FOLDER / "study" / "report"
        report.mkdir(parents=True)
        (report / "losses.csv").write_text("variant,loss\nplain,1.5\n\"a, b\",\n")
        study = braid.Study(FOLDER / "study")
        self.assertEqual(study.tables(), ["losses"])
        self.assertEqual(study["losses"], {"variant": ["plain", "a, b"], "loss": [1.5, None]})
        with self.assertRaisesRegex(KeyError, "expected one of losses"):
            study["differences"]


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = RUN.model()

    def greedy(self, prompt, count):
        ids = self.model.tokenizer.encode(prompt)
        for _ in range(count):
            logits = self.model.module(braid.tensor([ids]))
            ids.append(braid.argmax(logits[0, -1], 0).item())
        return self.model.tokenizer.decode(ids[-count:])

    def test_greedy_text_is_that_of_the_logits(self):
        self.assertEqual(self.model.generate("the fox ", 20, temperature=0), self.greedy("the fox ", 20))

    def test_many_prompts_and_pieces(self):
        prompts = ["the fox ", "the owl ", "moon "]
        alone = [self.model.generate(prompt, 12, seed=5 + i) for i, prompt in enumerate(prompts)]
        self.assertEqual(self.model.generate(prompts, 12, seed=5), alone)
        self.assertEqual(self.model.generate(prompts, 12, seed=5, rows=1), alone)
        pieces = list(self.model.stream("the fox ", 12, seed=5))
        self.assertEqual(("".join(pieces), len(pieces) > 1), (alone[0], True))
        self.assertEqual("".join(RUN.model().stream("the fox ", 12, seed=5)), alone[0])  # which outlives its model
        self.assertEqual(self.model.generate("the fox ", 40, temperature=0, stop=["hen"]),
                         self.model.generate("the fox ", 40, temperature=0).split("hen")[0])
        with self.assertRaises(TypeError):
            self.model.stream(prompts)
        with self.assertRaisesRegex(braid.SettingError, "temperature"):
            self.model.generate("a", temperature=-1)

    def test_a_stream_is_read_by_one_thread_at_a_time(self):
        stream, made = self.model.stream("the fox ", 50, seed=5, ignore_eos=True), []

        def read():
            try:
                for piece in stream:
                    made.append(piece)
            except braid.MisuseError as error:
                self.assertIn("another thread", str(error))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(read) for _ in range(4)]:
                done.result()
        text = self.model.generate("the fox ", 50, seed=5, ignore_eos=True)
        self.assertEqual(sorted("".join(made)), sorted(text))

    def test_a_score_is_the_log_softmax(self):
        score = self.model.score("the fox sees")
        ids = self.model.tokenizer.encode("the fox sees")
        self.assertEqual((score.tokens, "".join(score.pieces), score.logprobs[0]), (ids, "the fox sees", None))
        logs = braid.log_softmax(self.model.module(braid.tensor([ids])), -1)
        expected = [logs[0, t - 1, ids[t]].item() for t in range(1, len(ids))]
        for got, value in zip(score.logprobs[1:], expected):
            self.assertAlmostEqual(got, value, 5)
        self.assertAlmostEqual(score.loss, -sum(expected) / len(expected), 5)
        self.assertAlmostEqual(score.perplexity, math.exp(score.loss), 9)
        self.assertEqual(self.model.score("ö").pieces, ["\ufffd", "\ufffd"])

    def test_only_ids_of_the_model_have_a_score(self):
        self.assertEqual(self.model.score([5, 3]).tokens, [5, 3])
        with self.assertRaisesRegex(braid.MisuseError, "ids that are integers"):
            self.model.score([5.7, 3.2])
        for wrong in (2**32 + 5, -1, 258):
            with self.assertRaisesRegex(braid.InputError, f"expected token ids from 0 to 257, found {wrong}"):
                self.model.score([wrong, 3])

    def test_a_dump_holds_together(self):
        text = "the hen sees the moon"
        got = self.model.dump(text, attention=True)
        T = len(text)
        self.assertEqual(got["logits"].shape, (1, T, 258))
        self.assertEqual(got["layers.1.attn_probs"].shape, (1, 4, T, T))
        self.assertAlmostEqual(got["loss"].item(), self.model.score(text).loss, 5)
        sums = braid.sum(got["layers.0.attn_probs"], -1)
        self.assertLess(braid.max(braid.abs(sums - 1)).item(), 1e-5)
        maps = self.model.attention(text)
        self.assertEqual(len(maps), 2)
        for layer, map in enumerate(maps):
            self.assertEqual(map.tolist(), got[f"layers.{layer}.attn_probs_composed"][0].tolist())
        self.assertNotIn("layers.1.attn_probs", self.model.dump(text))

    def test_gradients_are_those_of_the_loss(self):
        with self.assertRaisesRegex(braid.MisuseError, "trainable=True"):
            self.model.dump("the fox", gradients=True)
        model = RUN.model(trainable=True)
        ids = braid.tensor([model.tokenizer.encode("the fox")])
        got = model.dump(ids, gradients=True)
        self.assertTrue(all(weight.grad is None for weight in model.module.parameters().values()))
        model.module.loss(ids[:, :-1], ids[:, 1:]).backward()
        name, weight = list(model.module.parameters().items())[-1]
        self.assertLess(braid.max(braid.abs(weight.grad - got["grad." + name])).item(),
                        1e-5 * braid.max(braid.abs(weight.grad)).item() + 1e-9)

    def test_a_head_is_switched_off(self):
        text = "the fox sees the hen"
        with_it = [-value for value in self.model.score(text).logprobs[1:]]
        without = self.model.losses_without(text, layer=1, head=0)
        self.assertEqual(len(without), len(with_it))
        self.assertGreater(max(abs(a - b) for a, b in zip(with_it, without)), 1e-3)
        self.assertNotEqual(self.model.losses_without(text), without)
        heads = [(layer, head) for layer in range(2) for head in range(2)]
        alone = [self.model.losses_without(text, layer=layer, head=head) for layer, head in heads]
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            beside = list(threads.map(lambda at: self.model.losses_without(text, layer=at[0], head=at[1]), heads * 20))
        self.assertEqual(beside, alone * 20)
        self.assertEqual([-value for value in self.model.score(text).logprobs[1:]], with_it)
        for part in ({"layer": -1}, {"layer": 0, "head": 64}):
            with self.assertRaisesRegex(braid.SettingError, "expected one from 0"):
                self.model.losses_without(text, **part)

    def test_best_and_saved_models(self):
        best = RUN.model("best")
        self.assertEqual(best.generate("the ", 8, temperature=0), self.model.generate("the ", 8, temperature=0))
        self.model.save(FOLDER / "saved")
        again = braid.load(str(FOLDER / "saved"), dtype=braid.float64)
        self.assertEqual(again.module.dtype, braid.float64)
        self.assertEqual(again.generate("the ", 8, temperature=0), self.model.generate("the ", 8, temperature=0))
        self.model.save(FOLDER / "saved")  # the same once more
        other = FOLDER / "other"
        other.mkdir()
        for name, words in ("config.json", "holds a model"), ("adapter_config.json", "holds LoRA"):
            (other / name).write_text("{}")
            with self.assertRaisesRegex(braid.Error, words):
                self.model.save(other)
            self.assertEqual([file.name for file in other.iterdir()], [name])
            (other / name).unlink()
        with self.assertRaisesRegex(braid.SettingError, "the folder of a training run"):
            self.model.save(RUN.folder)

    def test_a_changed_model_replaces_its_own_weights_alone(self):
        self.model.save(FOLDER / "origin")
        model = braid.load(str(FOLDER / "origin"))
        for value in (0.25, 0.5):
            for weight in model.module.parameters().values():
                weight.fill_(value)
            with self.assertRaisesRegex(braid.Error, "already holds model.safetensors, which would be replaced"):
                model.save(FOLDER / "origin")  # another object wrote it
            model.save(FOLDER / "changed")
            for weight in braid.load(str(FOLDER / "changed")).module.parameters().values():
                self.assertEqual(braid.max(braid.abs(weight - value)).item(), 0)
        (FOLDER / "changed/config.json").write_text("{}")
        with self.assertRaisesRegex(braid.Error, "already holds a model"):
            model.save(FOLDER / "changed")

    def test_weights_that_another_object_has_saved_stay(self):
        def filled(model, value):
            for weight in model.module.parameters().values():
                weight.fill_(value)
            return model

        def refused(model):
            with self.assertRaisesRegex(braid.Error, "already holds model.safetensors, which would be replaced"):
                model.save(folder)

        folder = FOLDER / "shared"
        first = RUN.model()
        first.save(folder)
        second = braid.load(str(folder))
        second.save(folder)  # the same bytes: nothing is written
        (folder / "tokenizer.json").unlink()
        second.save(folder)  # its tokenizer beside the weights of the first
        refused(filled(second, 0.5))
        first.save(folder)
        filled(first, 0.25).save(folder)  # its own, also after a call that wrote nothing
        shutil.rmtree(folder)
        third = filled(RUN.model(), 0.75)
        third.save(folder)
        refused(filled(first, 1.0))
        filled(third, 0.5).save(folder)

    def test_a_model_learns_from_python(self):
        net = braid.nn.make_model("dcformer-tiny", key=3, settings={"n_layer": "1"})
        self.assertIn("dcformer", net.model_type)
        ids = braid.tensor([braid.load_tokenizer(FOLDER / "data").encode("the fox sees the hen")])
        optimizer = braid.nn.Optimizer(net, lr=1e-2)
        losses = []
        for _ in range(12):
            loss = net.loss(ids[:, :-1], ids[:, 1:])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_ctrl_c_ends_generation(self):
        code = ("import braid, sys\nmodel = braid.load(sys.argv[1])\nprint('ready', flush=True)\n"
                "while True:\n  model.generate(['the '] * 400, 60, ignore_eos=True)\n")
        with subprocess.Popen([sys.executable, "-c", code, str(RUN.folder)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", errors)

    def test_maps_as_a_chart(self):
        maps = self.model.attention("the fox")
        chart = braid.heat_map(maps[0], [f"head {i}" for i in range(4)], list("the fox"), list("the fox"))
        self.assertEqual((chart._repr_svg_()[:4], chart.svg.count("head ")), ("<svg", 4))
        with self.assertRaisesRegex(braid.MisuseError, "expected 4 titles, found 1"):
            braid.heat_map(maps[0], ["head 0"])
        with self.assertRaisesRegex(braid.MisuseError, "expected values, found none"):
            braid.heat_map(maps[0][:0])


if __name__ == "__main__":
    unittest.main()
