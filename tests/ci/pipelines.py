"""Runs the shell of a composite action and of a GitLab component, step by step, as their runners do."""
import json
import os
import re
import subprocess
from pathlib import Path

import yaml


def run(command, cwd, env=None, stdin=None):
    return subprocess.run(command, cwd=cwd, env=env, input=stdin, text=True, capture_output=True, timeout=280)


def must(command, cwd, env=None):
    done = run(command, cwd, env)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


class Result:
    def __init__(self):
        self.code, self.log, self.summary, self.steps = 0, "", "", []


def run_action(action_directory, checkout, event, inputs, api_url, token, temp):
    """The steps of action.yml: bash as GitHub starts it, expressions of `inputs` and the token filled in."""
    action = yaml.safe_load((action_directory / "action.yml").read_text())
    unknown = set(inputs) - set(action["inputs"])
    assert not unknown, f"the action has no inputs {unknown}"
    values = {}
    for name, declared in action["inputs"].items():
        assert name in inputs or not declared.get("required"), f"input {name} is required"
        values[name] = str(inputs.get(name, declared.get("default", "")))

    def filled(text):
        text = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], str(text))
        text = text.replace("${{ github.token }}", token)
        assert "${{" not in text, f"an expression that a runner would fill in: {text}"
        return text

    temp.mkdir(parents=True, exist_ok=True)
    event_file, path_file, summary = temp / "event.json", temp / "path", temp / "summary.md"
    event_file.write_text(json.dumps(event))
    path_file.write_text("")
    summary.write_text("")
    result = Result()
    for step in action["runs"]["steps"]:
        added = os.pathsep.join(reversed(path_file.read_text().split()))
        env = {"PATH": (added + os.pathsep if added else "") + os.environ["PATH"], "HOME": str(temp),
               "GITHUB_ACTION_PATH": str(action_directory), "GITHUB_PATH": str(path_file),
               "GITHUB_EVENT_PATH": str(event_file), "GITHUB_STEP_SUMMARY": str(summary),
               "GITHUB_REPOSITORY": event["repository"]["full_name"], "GITHUB_API_URL": api_url,
               "RUNNER_TEMP": str(temp), **{k: filled(v) for k, v in step.get("env", {}).items()}}
        script = temp / "step.sh"
        script.write_text(step["run"])
        assert "${{" not in step["run"], "what is put into a shell's text is run by it"
        done = run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)], checkout, env)
        result.log += done.stdout + done.stderr
        result.steps.append(step["name"])
        if done.returncode != 0:
            result.code = done.returncode
            break
    result.summary = summary.read_text()
    return result


def component_job(component, inputs):
    """The job of a component with its inputs filled in."""
    head, body = re.split(r"^---\n", component.read_text(), flags=re.M)
    declared = yaml.safe_load(head)["spec"]["inputs"]
    assert not set(inputs) - set(declared)
    values = {}
    for name, said in declared.items():
        assert name in inputs or "default" in (said or {}), f"input {name} is required"
        values[name] = str(inputs.get(name, (said or {}).get("default", "")))
    body = re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda m: json.dumps(values[m[1]]), body)
    (job,) = yaml.safe_load(body).values()
    return job


def component_script(job):
    return "\n".join(["set -eo pipefail", *job["before_script"], *job["script"]]) + "\n"


def run_component(component, checkout, inputs, variables, temp):
    """One shell for before_script and script, as GitLab's runner has it."""
    job = component_job(component, inputs)
    temp.mkdir(parents=True, exist_ok=True)
    script = temp / "job.sh"
    script.write_text(component_script(job))
    env = {"PATH": os.environ["PATH"], "HOME": str(temp), "CI_PROJECT_DIR": str(checkout),
           **{k: str(v) for k, v in job["variables"].items()}, **variables}
    done = run(["bash", "--noprofile", "--norc", str(script)], checkout, env)
    result = Result()
    result.code, result.log = done.returncode, done.stdout + done.stderr
    page = Path(checkout) / "reckon.md"
    result.summary = page.read_text() if page.exists() else ""
    return result
