#!/usr/bin/env python3
"""The GitHub action and the GitLab component of docs/ci, run for recorded events against a mock of the APIs.

usage: ci_test.py BUILD_DIRECTORY [unittest arguments]"""
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import yaml

import pipelines
from mock_api import MockApi
from pipelines import must

SOURCE = Path(__file__).resolve().parents[2]
ACTION = SOURCE / "docs/ci/github"
COMPONENT = SOURCE / "docs/ci/gitlab/templates/reckon.yml"
EXAMPLE = SOURCE / "docs/ci/example"
EVENTS = Path(__file__).resolve().parent / "events"
PROGRAM = Path(sys.argv.pop(1)).resolve() / "bin/reckon"
QUESTION = "scenarios/resnet.yaml"


def archive():
    """A release whose program is the one that was built."""
    script = f"#!/bin/sh\nRECKON_CATALOGS='{SOURCE}/catalogs' exec '{PROGRAM}' \"$@\"\n".encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        entry = tarfile.TarInfo("reckon-0.1.0/bin/reckon")
        entry.size, entry.mode = len(script), 0o755
        tar.addfile(entry, io.BytesIO(script))
    return packed.getvalue()


ARCHIVE = archive()
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
GIT = {**os.environ, "GIT_AUTHOR_NAME": "e", "GIT_AUTHOR_EMAIL": "e@example.com", "GIT_COMMITTER_NAME": "e",
       "GIT_COMMITTER_EMAIL": "e@example.com", "RECKON_CATALOGS": str(SOURCE / "catalogs")}


class Repository:
    """The example's repository: main with its lock, and a branch; a checkout of depth 1 of the branch, as runners make."""

    def __init__(self, directory, edit, locked=True):
        tree, bare = directory / "tree", directory / "bare"
        shutil.copytree(EXAMPLE, tree)
        must(["git", "init", "-q", "-b", "main"], tree, GIT)
        if locked:
            must([str(PROGRAM), "plan", QUESTION, "--lock"], tree, GIT)
        self.base = self.commit(tree, "main")
        must(["git", "checkout", "-q", "-b", "edit"], tree, GIT)
        edit(tree)
        self.head = self.commit(tree, "edit")
        must(["git", "clone", "-q", "--bare", str(tree), str(bare)], directory, GIT)
        must(["git", "config", "uploadpack.allowAnySHA1InWant", "true"], bare, GIT)
        self.checkout = directory / "checkout"
        must(["git", "clone", "-q", "--depth", "1", "--branch", "edit", f"file://{bare}", str(self.checkout)], directory, GIT)

    @staticmethod
    def commit(tree, message):
        must(["git", "add", "-A"], tree, GIT)
        must(["git", "commit", "-q", "-m", message, "--allow-empty"], tree, GIT)
        return must(["git", "rev-parse", "HEAD"], tree, GIT)

    def event(self, name):
        text = (EVENTS / f"{name}.json").read_text()
        return json.loads(text.replace("BASE_SHA", self.base).replace("HEAD_SHA", self.head))


def longer(tree):
    """The edit of the example's README."""
    file = tree / QUESTION
    file.write_text(file.read_text().replace("epochs: 2", "epochs: 3"))


def only_a_comment(tree):
    file = tree / QUESTION
    file.write_text("# Reviewed.\n" + file.read_text())


class Pipeline(unittest.TestCase):
    def setUp(self):
        self.temp = Path(tempfile.mkdtemp(prefix="reckon-ci-"))
        self.addCleanup(shutil.rmtree, self.temp)

    def api(self, **how):
        api = MockApi(ARCHIVE, **how)
        self.addCleanup(api.close)
        return api

    def inputs(self, api, **more):
        said = yaml.safe_load((EXAMPLE / ".github/workflows/reckon.yml").read_text())
        steps = said["jobs"]["reckon"]["steps"]
        (given,) = [s["with"] for s in steps if "docs/ci/github" in s["uses"]]
        return {**given, "url": f"{api.url}/reckon.tar.xz", "sha256": SHA256, **more}

    def act(self, repository, event, api, token="secret", **more):
        return pipelines.run_action(ACTION, repository.checkout, repository.event(event), self.inputs(api, **more), api.url,
                                    token, self.temp / "runner")


class GitHub(Pipeline):
    def test_an_edit_fails_the_job_and_one_comment_tells_and_updates_itself(self):
        repository, api = Repository(self.temp, longer), self.api()
        api.comments = [{"id": k, "body": "<!-- other --> looks good"} for k in range(150)]  # two pages
        done = self.act(repository, "pull_request", api)
        self.assertEqual(done.code, 1, done.log)
        self.assertEqual(done.steps, ["Install", "Check", "Plan", "Tell", "Result"])
        self.assertEqual(len(api.comments), 151)
        body = api.comments[-1]["body"]
        self.assertTrue(body.startswith("<!-- reckon: reckon -->\n### resnet: worse than the baseline\n"), body)
        for part in ("| before | your edit | prices | evidence | reckon | now |", "| mean cost | ", "| mean time | ",
                     "by your edit", "### reckon check"):
            self.assertIn(part, body)
        self.assertEqual(done.summary, body)
        self.assertFalse(list(repository.checkout.glob("scenarios/*.before.*")))
        again = self.act(repository, "pull_request", api)
        self.assertEqual(again.code, 1, again.log)
        self.assertEqual(len(api.comments), 151)
        self.assertEqual(api.written(), ["POST", "PATCH"])
        self.assertTrue((repository.checkout / "reckon.xml").exists())
        self.assertTrue((repository.checkout / "reckon.sarif").exists())

    def test_a_comment_in_the_scenario_is_no_edit(self):
        repository, api = Repository(self.temp, only_a_comment), self.api()
        done = self.act(repository, "pull_request", api)
        self.assertEqual(done.code, 0, done.log)
        self.assertIn("within tolerance", api.comments[0]["body"])
        self.assertIn("as in scenarios/resnet.lock.json: no edit", done.log)

    def test_a_price_that_nobody_edited_does_not_fail_the_job(self):
        def dearer(tree):
            (tree / "prices").mkdir()
            (tree / "prices/prices.csv").write_text(
                "provider,region,zones,item,covers,count,on_demand_usd_per_hour,spot_usd_per_hour,date,flag,source,notes\n" +
                "".join(f"gcp,us-central1,us-central1-a us-central1-b us-central1-c us-central1-f,{gpu},accelerator,1,9,8,"
                        "2026-11-01,,skypilot-gcp-v8,\n" for gpu in ("T4", "P100-PCIE-16")))
        repository, api = Repository(self.temp, dearer), self.api()
        done = self.act(repository, "pull_request", api, options="--catalog=prices")
        self.assertEqual(done.code, 0, done.log)
        self.assertIn("worse than the baseline, not by an edit", api.comments[0]["body"])
        self.assertIn("by prices, not by an edit", api.comments[0]["body"])

    def test_a_fork_has_the_summary_and_says_so(self):
        repository, api = Repository(self.temp, longer), self.api(may_write=False)
        done = self.act(repository, "pull_request_fork", api)
        self.assertEqual(done.code, 1, done.log)
        self.assertEqual(api.comments, [])
        self.assertIn("HTTP 403", done.log)
        self.assertIn("summary only", done.log)
        self.assertIn("### resnet: worse than the baseline", done.summary)

    def test_a_push_makes_no_comment(self):
        repository, api = Repository(self.temp, only_a_comment), self.api()
        done = self.act(repository, "push", api)
        self.assertEqual(done.code, 0, done.log)
        self.assertEqual(api.calls, [])
        self.assertIn("within tolerance", done.summary)

    def test_comments_may_be_turned_off(self):
        repository, api = Repository(self.temp, only_a_comment), self.api()
        self.assertEqual(self.act(repository, "pull_request", api, comment="false").code, 0)
        self.assertEqual(api.calls, [])

    def test_a_question_without_a_lock_is_told(self):
        repository, api = Repository(self.temp, longer, locked=False), self.api()
        done = self.act(repository, "pull_request", api)
        self.assertEqual(done.code, 0, done.log)
        self.assertIn("No lock yet: `reckon plan scenarios/resnet.yaml --lock`", api.comments[0]["body"])

    def test_a_scenario_that_is_wrong_is_told_at_its_line(self):
        def wrong(tree):
            file = tree / QUESTION
            file.write_text(file.read_text().replace("batch_per_accelerator", "batch_per_acelerator"))
        repository, api = Repository(self.temp, wrong), self.api()
        done = self.act(repository, "pull_request", api)
        self.assertEqual(done.code, 2, done.log)
        self.assertIn("::error file=scenarios/resnet.yaml,line=7", done.log)
        self.assertIn("has errors", api.comments[0]["body"])

    def test_an_archive_of_another_sum_is_not_run(self):
        repository, api = Repository(self.temp, only_a_comment, locked=False), self.api()
        done = self.act(repository, "push", api, sha256="0" * 64)
        self.assertEqual((done.code, done.steps), (3, ["Install"]), done.log)
        self.assertIn("it is not run", done.log)
        self.assertNotIn("catalog of", done.log)  # of reckon --version
        self.assertEqual(self.act(repository, "push", api, sha256="abc").code, 3)

    def test_a_private_archive_takes_a_token(self):
        repository, api = Repository(self.temp, only_a_comment, locked=False), self.api()
        api.archive_token = "download"
        done = self.act(repository, "push", api)
        self.assertEqual(done.code, 3, done.log)
        self.assertIn("download-token", done.log)
        self.assertEqual(self.act(repository, "push", api, **{"download-token": "download"}).code, 0)

    def test_files_with_blanks_and_quotes_stay_what_they_are(self):
        def odd(tree):
            name = "scenarios/it's $(touch owned) & more.yaml"
            shutil.copy(tree / QUESTION, tree / name)
        repository, api = Repository(self.temp, odd, locked=False), self.api()
        done = self.act(repository, "push", api, plans="scenarios/it's $(touch owned) & more.yaml", scenarios=QUESTION)
        self.assertEqual(done.code, 0, done.log)
        self.assertFalse((repository.checkout / "owned").exists())
        self.assertIn("No lock yet", done.summary)


class GitLab(Pipeline):
    def merge(self, repository, api, token="secret", iid="7", **more):
        said = yaml.safe_load((EXAMPLE / ".gitlab-ci.yml").read_text())
        inputs = {**said["include"][0]["inputs"], "url": f"{api.url}/reckon.tar.xz", "sha256": SHA256, **more}
        variables = {"CI_API_V4_URL": f"{api.url}/api/v4", "CI_MERGE_REQUEST_PROJECT_ID": "42"}
        if iid:
            variables |= {"CI_MERGE_REQUEST_IID": iid, "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.base}
        if token:
            variables["RECKON_TOKEN"] = token
        return pipelines.run_component(COMPONENT, repository.checkout, inputs, variables, self.temp / "runner")

    def test_an_edit_fails_the_job_and_one_note_tells_and_updates_itself(self):
        repository, api = Repository(self.temp, longer), self.api()
        api.comments = [{"id": k, "body": "fine"} for k in range(100)]
        done = self.merge(repository, api)
        self.assertEqual(done.code, 1, done.log)
        body = api.comments[-1]["body"]
        self.assertIn("### resnet: worse than the baseline", body)
        self.assertEqual(body, done.summary)
        self.assertEqual(self.merge(repository, api).code, 1)
        self.assertEqual(len(api.comments), 101)
        self.assertEqual(api.written(), ["POST", "PUT"])
        self.assertTrue((repository.checkout / "reckon.xml").exists())

    def test_without_a_token_or_a_merge_request_the_page_is_an_artifact(self):
        repository, api = Repository(self.temp, only_a_comment), self.api()
        done = self.merge(repository, api, token="")
        self.assertEqual(done.code, 0, done.log)
        self.assertIn("no RECKON_TOKEN, as in a merge request from a fork", done.log)
        self.assertIn("within tolerance", done.summary)
        self.assertIn("no merge request", self.merge(repository, api, iid="").log)
        self.assertEqual(api.calls, [])

    def test_a_token_that_may_not_write_does_not_fail_the_job(self):
        repository, api = Repository(self.temp, only_a_comment), self.api(may_write=False)
        done = self.merge(repository, api)
        self.assertEqual(done.code, 0, done.log)
        self.assertIn("HTTP 403", done.log)

    def test_an_archive_of_another_sum_is_not_run(self):
        repository, api = Repository(self.temp, only_a_comment, locked=False), self.api()
        done = self.merge(repository, api, sha256="0" * 64)
        self.assertEqual(done.code, 3, done.log)
        self.assertNotIn("catalog of", done.log)

    @unittest.skipUnless(shutil.which("shellcheck"), "no shellcheck")
    def test_the_shell_of_the_component_is_clean(self):
        script = pipelines.component_script(pipelines.component_job(COMPONENT, {"url": "u", "sha256": "s"}))
        done = pipelines.run(["shellcheck", "--shell", "bash", "-"], self.temp, stdin=script)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
