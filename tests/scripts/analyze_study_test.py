#!/usr/bin/env python3
"""scripts/analyze_study: means of reports written here, and intervals known by hand: analyze_study_test.py SCRIPTS"""
import csv
import os
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(sys.argv[1], "analyze_study")

# In place of braid: "analyze RUN ... -o FOLDER" writes the figures that the run's folder names.
ANALYZE = """#!/usr/bin/env python3
import os, sys
run, out = sys.argv[2], sys.argv[sys.argv.index("-o") + 1]
value = float(open(os.path.join(run, "value")).read())
os.makedirs(os.path.join(out, "figures"))
open(os.path.join(out, "figures/rank.csv"), "w").write(
    f"map,effective_rank,stable_rank\\nattn_scores,{value},1\\nattn_scores,{value + 2},1\\n")
open(os.path.join(out, "figures/diversity.csv"), "w").write(f"measure,of,mean\\ncosine,attn_probs,{value / 4}\\n")
"""


class AnalyzeStudy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.study = os.path.join(folder.name, "study")
        self.braid = os.path.join(folder.name, "braid")
        with open(self.braid, "w") as file:
            file.write(ANALYZE)
        os.chmod(self.braid, os.stat(self.braid).st_mode | stat.S_IXUSR)

    def run_script(self):
        return subprocess.run([sys.executable, SCRIPT, self.study, "--text", "none", "--braid", self.braid],
                              capture_output=True, text=True)

    def test_means_and_intervals(self):
        os.makedirs(os.path.join(self.study, "report"))
        with open(os.path.join(self.study, "report/runs.csv"), "w") as file:
            file.write("run,search,size,variant,budget,seed\nsearched,1,s,plain,20,1\n")
            for budget, seed, value in ((20, 1, 1), (20, 2, 2), (20, 3, 3), (40, 1, 8), (40, 2, 8)):
                run = f"plain-{budget}-{seed}"
                file.write(f"{run},0,s,plain,{budget},{seed}\n")
                os.makedirs(os.path.join(self.study, "runs", run))
                with open(os.path.join(self.study, "runs", run, "value"), "w") as of_run:
                    of_run.write(str(value))
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        # Layers average to 2, 3, 4; t of two degrees of freedom is 4.303, the standard error 1 / sqrt(3).
        self.assertIn("| s | 20 | effective rank | scores | 3.000 [0.516, 5.484] |", done.stdout)
        self.assertIn("| s | 20 | cosine | probabilities | 0.500 [-0.121, 1.121] |", done.stdout)
        self.assertIn("| s | 40 | effective rank | scores | 9.000 [9.000, 9.000] |", done.stdout)
        with open(os.path.join(self.study, "report/inside.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["run"], row["budget"]) for row in rows if row["measure"] == "cosine"],
                         [("plain-20-1", "20"), ("plain-20-2", "20"), ("plain-20-3", "20"), ("plain-40-1", "40"), ("plain-40-2", "40")])

    def test_a_missing_program_is_one_message(self):
        os.makedirs(os.path.join(self.study, "report"))
        with open(os.path.join(self.study, "report/runs.csv"), "w") as file:
            file.write("run,search,size,variant,budget,seed\nplain-1,0,s,plain,20,1\n")
        os.remove(self.braid)
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^scripts/analyze_study: there is no .*braid: scripts/demo builds it\n$")

    def test_a_study_that_was_not_run(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 2)
        self.assertIn("report/runs.csv is missing: expected a study that was run by braid study", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
